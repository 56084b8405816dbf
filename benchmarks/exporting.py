"""Speed of the exported encoder in onnxruntime against the eager library, as ratios measured side by side in one run.

    python -m benchmarks.exporting                 prints the table
    python -m benchmarks.exporting --out FILE.md   writes it as well

The networks are the paper's for MNIST (28x28), CIFAR10 (32x32) and CelebA (64x64), on the same batches of pictures as
floats, with one thread each.
"""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnxruntime
import torch
from torch import Tensor
from torch.nn.functional import interpolate

from benchmarks.side_by_side import Result, arguments, at_least, median_seconds, report
from sqvae.config import override
from sqvae.export.description import described
from sqvae.export.exportable import encoder_and_decoder
from sqvae.export.exporting import FORMATS, traced
from sqvae.modalities.images.data import new_model
from sqvae.modalities.images.tokenizer import ImageTokenizer
from sqvae.models import LatentModel
from sqvae.recipes import RECIPES

NETWORKS = {"mnist": (1, 28), "cifar10": (3, 32), "celeba": (3, 64)}
"""Recipes, with channels and side of their pictures."""

SAME = 0.999
"""The share of codes that must be the library's for times to mean anything: others lie on the border of two."""


@dataclass(frozen=True)
class Sizes:
    """How long to measure."""

    rounds: int = 31
    batches: tuple[int, ...] = (1, 64)
    networks: tuple[str, ...] = tuple(NETWORKS)

    @classmethod
    def quick(cls) -> "Sizes":
        """Short enough for a test: it shows that the benchmark runs, not what it measures."""
        return cls(rounds=2, batches=(2,), networks=("mnist",))


def smooth_pictures(number: int, channels: int, side: int) -> Tensor:  # -> (number, channels, side, side), in [0, 1]
    """What they show does not matter for the time; that their encodings differ does, for the search."""
    return interpolate(torch.rand(number, channels, side // 4, side // 4), size=side, mode="bilinear").contiguous()


def tokenizer_of(recipe: str) -> ImageTokenizer:
    """A model with statistics of batches behind it, and with encodings of pictures for its codes."""
    channels, side = NETWORKS[recipe]
    experiment = override(RECIPES[recipe](), [f"data.size={side}", f"data.channels={channels}"])
    model = new_model(experiment).train()
    assert isinstance(model, LatentModel)
    pictures = smooth_pictures(64, channels, side)
    with torch.no_grad():
        for _ in range(10):
            model(pictures)
        rows = model.eval().encodings(pictures).flatten(0, -2)
        codebook = model.quantizer.get_parameter("codebook")
        codebook.copy_(rows[torch.randperm(len(rows))[: len(codebook)]])
    return ImageTokenizer(model, experiment, "")


def session_of(path: Path) -> Any:
    """A program in onnxruntime, with as many threads as torch has."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def of_encoding(recipe: str, sizes: Sizes) -> Iterator[Result]:
    tokenizer = tokenizer_of(recipe)
    channels, side = NETWORKS[recipe]
    halves = encoder_and_decoder(tokenizer)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "encoder.onnx"
        FORMATS["onnx"].save(halves[0], traced(halves[0]), path, described(tokenizer, halves))
        session = session_of(path)
    for number in sizes.batches:
        pictures = smooth_pictures(number, channels, side)
        array = pictures.numpy()

        def eager(pictures: Tensor = pictures) -> None:
            tokenizer.encode(pictures)

        def exported(array: Any = array) -> None:
            session.run(None, {"pictures": array})

        codes = torch.from_numpy(session.run(None, {"pictures": array})[0])
        same = (codes == tokenizer.encode(pictures)).float().mean().item()
        if same < SAME:
            raise RuntimeError(f"{recipe}: only {100 * same:.2f}% of the codes are the library's")
        library, onnx = median_seconds([eager, exported], sizes.rounds, f"{recipe}, {number}")
        what = f"{recipe}, {side}x{side}, batches of {number}: eager / ONNX encoder"
        yield at_least(what, library, onnx, 1.0)


def main(argv: Sequence[str] | None = None) -> int:
    options = arguments(__doc__, argv)
    sizes = Sizes.quick() if options.quick else Sizes()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    results = [result for recipe in sizes.networks for result in of_encoding(recipe, sizes)]
    setting = (
        f"The first is `Tokenizer.encode`, the second the exported encoder in onnxruntime {onnxruntime.__version__}, "
        f"both on the same smooth random pictures in float32, seed 0, with one thread each, {sizes.rounds} rounds. "
        "Networks and codebooks have the paper's sizes; the codes are encodings of such pictures."
    )
    report("Benchmarks of exported programs", setting, results, options.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
