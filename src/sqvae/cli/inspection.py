"""What `sqvae inspect` puts together."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from sqvae.analysis import code_distances
from sqvae.cli.evaluation import data_of
from sqvae.cli.wording import as_typed
from sqvae.config import Experiment
from sqvae.data import Pictures, Progress
from sqvae.data.speech import Utterances
from sqvae.modalities.images.codebook import code_atlas, map_size, quantized_pictures
from sqvae.modalities.images.data import new_model
from sqvae.modalities.images.tokenizer import ImageTokenizer
from sqvae.modalities.speech.codebook import quantized_utterances
from sqvae.modalities.speech.tokenizer import SpeechTokenizer, untrained_speech_tokenizer
from sqvae.modalities.speech.units import unit_spectra
from sqvae.modalities.views import recorded_use
from sqvae.quantizers import Quantized
from sqvae.reports import (
    Section,
    about_pictures,
    about_speech,
    save_atlas,
    save_curves,
    save_distances,
    save_spectra,
    save_use,
    summarize,
)
from sqvae.runs import findings_of, read_experiment
from sqvae.tokenizers import Tokenizer, load, taken_as_of
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
    experiment, config = read_experiment(folder)
    described = config["experiment"]
    kind = SPEECH if experiment.data.kind == "speech" else PICTURES
    tokenizer: Tokenizer = load(run) if saved else kind.untrained(experiment)
    return summarize(
        folder,
        described,
        taken_as=taken_as_of(experiment, config).in_full,
        about=kind.about(described, tokenizer),
        parameters=sum(p.numel() for p in tokenizer.model.parameters() if p.requires_grad),
        fingerprint=tokenizer.fingerprint if saved else None,
        steps=_steps(folder),
        findings=findings_of(folder, experiment),
        plots=() if plots is None else tuple(_drawn(folder, kind, tokenizer if saved else None, plots)),
    )


def _steps(folder: RunFolder) -> int:
    """How far the newest checkpoint is, or before the first, the records."""
    state = folder.last / "training.json"
    if state.exists():
        return int(read_json(state)["step"])
    return max((record["step"] for record in read_records(folder.log)), default=0)


def _drawn(folder: RunFolder, kind: "Kind", tokenizer: Tokenizer | None, plots: Plots) -> Iterator[str]:
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
        yield from _codes_drawn(folder, kind, tokenizer, plots, out)
    if records:
        name, data = folder.path.resolve().name, Path(read_experiment(folder)[0].data.source).name
        title = f"How {name} trained on {data}"
        save_curves(out / "annealing.png", records, 0 if continuous else quantizer.codebook_size, title=title)
        yield f"{out / 'annealing.png'}: self-annealing, error and use of codes, by step"
    else:
        yield "annealing.png is left out: nothing has been recorded yet"


def _codes_drawn(folder: RunFolder, kind: "Kind", tokenizer: Tokenizer, plots: Plots, out: Path) -> Iterator[str]:
    counts, where = recorded_use(folder)
    held_out, name, missing = _held_out(folder, tokenizer, plots)
    quantized = None
    if held_out is None:
        which = kind.atlas if counts is not None else f"use.png and {kind.atlas}"
        yield f"{which} {'is' if counts is not None else 'are'} left out: {missing}"
    else:
        quantized = kind.quantized(tokenizer, held_out)
        counts, where, line = kind.draw(tokenizer, held_out, name, plots, out)
        yield line
    if counts is not None:
        save_use(out / "use.png", counts, where)
        yield f"{out / 'use.png'}: how often each code is used"
    distances = code_distances(tokenizer, counts=counts, quantized=quantized)
    save_distances(
        out / "distances.png",
        distances.codes,
        distances.matrix,
        distances.nearest,
        counts=counts,
        codebook_size=tokenizer.codebook_size,
        directions=distances.directions,
        scale=distances.scale,
        where=f"the codebook of {folder.path.resolve().name}" + (f"; use on {where}" if counts is not None else ""),
    )
    yield f"{out / 'distances.png'}: how far codes are from each other"


@dataclass(frozen=True)
class Kind:
    """What differs between pictures and speech, where a run is looked at."""

    untrained: Callable[[Experiment], Tokenizer]
    about: Callable[[dict[str, Any], Any], tuple[str, ...]]
    quantized: Callable[[Any, Any], Quantized]
    """What the quantizer makes of some of the data."""
    draw: Callable[[Any, Any, str, Plots, Path], tuple[Tensor, str, str]]
    """Draw what codes stand for; returns how often each was taken, on what, and a line about the drawing."""
    atlas: str
    """The drawing's name."""


def _draw_patches(
    tokenizer: ImageTokenizer, pictures: Pictures, name: str, plots: Plots, out: Path
) -> tuple[Tensor, str, str]:
    atlas = code_atlas(tokenizer, pictures, codes=plots.codes, at_most=plots.pictures, progress=plots.progress)
    number = f"{atlas.pictures:,}" + (f" of {atlas.available:,}" if atlas.pictures < atlas.available else "")
    where = f"{number} validation {tokenizer.medium.noun}s of {name}"
    save_atlas(
        out / "codes.png",
        atlas.codes,
        atlas.counts,
        atlas.seen,
        atlas.drawn,
        atlas.places,
        stride=atlas.stride,
        where=where,
        classes=tokenizer.medium.legend(),
    )
    return atlas.counts, where, f"{out / 'codes.png'}: what each code stands for"


def _draw_spectra(
    tokenizer: SpeechTokenizer, utterances: Utterances, name: str, plots: Plots, out: Path
) -> tuple[Tensor, str, str]:
    spectra = unit_spectra(tokenizer, utterances, at_most=plots.pictures, progress=plots.progress)
    where = f"{spectra.utterances:,} validation utterances of {name}"
    save_spectra(out / "units.png", spectra.counts, spectra.mean, codes=plots.codes, where=where)
    return spectra.counts, where, f"{out / 'units.png'}: the mean spectrum where each unit is heard"


def _about_speech(described: dict[str, Any], tokenizer: SpeechTokenizer) -> tuple[str, ...]:
    features = tokenizer.features
    return about_speech(
        described,
        rate=features.rate,
        mels=features.mels,
        frames_per_second=features.rate / features.shift,
        codes_per_second=tokenizer.codes_per_second,
    )


PICTURES = Kind(
    untrained=lambda experiment: ImageTokenizer(new_model(experiment), experiment, ""),
    about=lambda described, tokenizer: about_pictures(described, tokenizer.shape, map_size(tokenizer)),
    quantized=quantized_pictures,
    draw=_draw_patches,
    atlas="codes.png",
)
SPEECH = Kind(
    untrained=untrained_speech_tokenizer,
    about=_about_speech,
    quantized=quantized_utterances,
    draw=_draw_spectra,
    atlas="units.png",
)


def _held_out(folder: RunFolder, tokenizer: Tokenizer, plots: Plots) -> tuple[Any, str, str]:
    """Validation data with the name of their set and of the weights in use; or none, and why."""
    try:
        source, prepared = data_of(folder.path, tokenizer, plots.source, plots.progress, plots.announce)
    except (OSError, ValueError, ImportError) as failure:
        if plots.source is not None:
            raise
        reason = as_typed(str(failure))
        return None, "", reason if "--data" in reason else f"{reason}; say where the data is with --data"
    epoch = tokenizer.history.epochs
    after = "" if epoch is None else f", after epoch {epoch}"
    return prepared.part("validation"), f"{Path(source).name}, with the best checkpoint{after}", ""
