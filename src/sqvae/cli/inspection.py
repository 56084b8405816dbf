"""What `sqvae inspect` puts together."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from sqvae.cli.evaluation import data_of
from sqvae.data import Pictures, Progress
from sqvae.experiment import Tokenizer, code_atlas, code_distances, load, map_size, new_model, read_experiment
from sqvae.reports import Section, save_atlas, save_curves, save_distances, save_use, summarize
from sqvae.training import CheckpointError, RunFolder, read_json, read_records


@dataclass(frozen=True)
class Plots:
    """Which plots are wanted."""

    out: Path | None
    """The folder that they go to; None for the run's own."""
    source: str | None
    """The data; None for the run's own."""
    codes: int
    """How many codes to show one by one,"""
    pictures: int
    """on how many held-out pictures at most."""
    progress: Progress
    announce: Callable[[str], None]


def inspect_run(run: Path, plots: Plots | None) -> list[Section]:
    """A run in plain words, and in plots if they are wanted."""
    folder = RunFolder(run)
    if not folder.config.exists() or (run / "model.safetensors").exists():
        raise CheckpointError(f"{run} is no run: give the folder that `sqvae train` has written")
    saved = folder.holds_something()
    experiment = read_experiment(folder)[0]
    tokenizer = load(run) if saved else Tokenizer(new_model(experiment), experiment, "")
    return summarize(
        folder,
        read_json(folder.config)["experiment"],
        shape=tokenizer.shape,
        code_shape=map_size(tokenizer),
        parameters=sum(p.numel() for p in tokenizer.model.parameters() if p.requires_grad),
        fingerprint=tokenizer.fingerprint if saved else None,
        steps=_steps(folder),
        plots=() if plots is None else tuple(_drawn(folder, tokenizer if saved else None, plots)),
    )


def _steps(folder: RunFolder) -> int:
    """How far the newest checkpoint is, or before the first, the records."""
    state = folder.last / "training.json"
    if state.exists():
        return int(read_json(state)["step"])
    return max((record["step"] for record in read_records(folder.log)), default=0)


def _drawn(folder: RunFolder, tokenizer: Tokenizer | None, plots: Plots) -> Iterator[str]:
    """Draw what can be drawn, and say what was and what was not."""
    out = plots.out or folder.inspection
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        if plots.out is not None:
            raise
        yield f"no plots: can't write to {out} ({failure.strerror}). Choose another folder with -o"
        return
    records = read_records(folder.log)
    quantizer = read_experiment(folder)[0].quantizer
    continuous = quantizer.name == "gaussian-latent"
    if continuous:
        yield "a continuous latent has no codes, so there are no plots of them"
    elif tokenizer is None:
        yield "there is no checkpoint yet, so there are no plots of codes"
    else:
        yield from _codes_drawn(folder, tokenizer, plots, out)
    if records:
        save_curves(out / "annealing.png", records, 0 if continuous else quantizer.codebook_size)
        yield f"{out / 'annealing.png'}: self-annealing, error and use of codes, by step"
    else:
        yield "annealing.png is left out: nothing has been recorded yet"


def _codes_drawn(folder: RunFolder, tokenizer: Tokenizer, plots: Plots, out: Path) -> Iterator[str]:
    counts, where = _recorded_use(folder)
    held_out, name, missing = _held_out(folder, tokenizer, plots)
    if held_out is None:
        which = "codes.png is" if counts is not None else "use.png and codes.png are"
        yield f"{which} left out: {missing}"
    else:
        atlas = code_atlas(tokenizer, held_out, codes=plots.codes, at_most=plots.pictures, progress=plots.progress)
        number = f"{atlas.pictures:,}" + (f" of {atlas.available:,}" if atlas.pictures < atlas.available else "")
        counts, where = atlas.counts, f"{number} validation pictures of {name}"
        save_atlas(
            out / "codes.png",
            atlas.codes,
            counts,
            atlas.seen,
            atlas.drawn,
            atlas.places,
            stride=atlas.stride,
            where=where,
        )
        yield f"{out / 'codes.png'}: what each code stands for"
    if counts is not None:
        save_use(out / "use.png", counts, where)
        yield f"{out / 'use.png'}: how often each code is used"
    distances = code_distances(tokenizer, counts=counts, pictures=held_out)
    save_distances(
        out / "distances.png",
        distances.codes,
        distances.matrix,
        distances.nearest,
        counts=counts,
        codebook_size=tokenizer.codebook_size,
        directions=distances.directions,
        scale=distances.scale,
    )
    yield f"{out / 'distances.png'}: how far codes are from each other"


def _held_out(folder: RunFolder, tokenizer: Tokenizer, plots: Plots) -> tuple[Pictures | None, str, str]:
    """Validation pictures with the name of their set; or none, and why."""
    try:
        source, data = data_of(folder.path, tokenizer, plots.source, plots.progress, plots.announce)
    except (OSError, ValueError, ImportError) as failure:
        if plots.source is not None:
            raise
        advice = "" if "--data" in str(failure) else "; say where the data is with --data"
        return None, "", f"{failure}{advice}"
    return data.validation, Path(source).name, ""


def _recorded_use(folder: RunFolder) -> tuple[Tensor | None, str]:
    """How often each code was used when the checkpoint in use was validated, and on what; none before that."""
    validated = [record for record in read_records(folder.log) if record.get("counts") and record["best"]]
    if not validated:
        return None, ""
    best = validated[-1]
    return torch.tensor(best["counts"]), f"the validation pictures, as recorded after epoch {best['epoch']}"
