"""Small real runs for tests: pictures that can be learned, and an experiment that takes a second."""

import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from sqvae.config import DataSettings, Experiment, NetworkSettings, QuantizerSettings
from sqvae.training import Plan


def write_pictures(path: Path, count: int = 96, side: int = 8, channels: int = 1) -> Path:
    """Bright squares on dark ground, as a .npy file."""
    random = np.random.default_rng(0)
    pictures = random.integers(0, 40, (count, side, side, channels), dtype=np.uint8)
    for picture in pictures:
        top, left = random.integers(0, side // 2, 2)
        picture[top : top + side // 2, left : left + side // 2] += 180
    np.save(path, pictures)
    return path


def tiny(source: str | Path, **training) -> Experiment:
    plan = {"epochs": 3, "batch_size": 8, "passes_per_epoch": 1, "log_every": 3, "learning_rate": 5e-3, "threads": 1}
    return Experiment(
        data=DataSettings(source=str(source)),
        network=NetworkSettings(widths=(4, 8), blocks=1),
        quantizer=QuantizerSettings(codebook_size=16, dim=8),
        training=Plan(**{**plan, **training}),
    )


def with_quantizer(experiment: Experiment, name: str) -> Experiment:
    return replace(experiment, quantizer=replace(experiment.quantizer, name=name))


def weights_of(folder: Path) -> dict[str, bytes]:
    """A checkpoint's weights, to the bit."""
    from safetensors.torch import load_file

    return {name: tensor.numpy().tobytes() for name, tensor in load_file(folder / "model.safetensors").items()}


def said(capsys) -> str:
    """What was printed, in one line: a narrow terminal breaks lines anywhere."""
    captured = capsys.readouterr()
    return " ".join((captured.out + captured.err).split())


def zipped(folder: Path) -> Path:
    """The same files in an archive, in the wrong order."""
    archive = folder.with_suffix(".zip")
    with zipfile.ZipFile(archive, "w") as file:
        for path in sorted(folder.rglob("*"), reverse=True):
            file.write(path, path.relative_to(folder))
    return archive
