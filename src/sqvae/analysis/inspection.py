"""What a run is, how it trained and which codes it uses: in words, and in plots."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from sqvae.analysis.distances import code_distances
from sqvae.config import Experiment
from sqvae.data import Pictures, Progress
from sqvae.data.speech import Utterances
from sqvae.files import check_all_free
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
from sqvae.reports.wording import as_typed
from sqvae.runs import Announce, check_run, data_of_run, findings_of, read_experiment, steps_of
from sqvae.tokenizers import Tokenizer, check_there, load, taken_as_of
from sqvae.training import RunFolder, read_records

PLOTS = ("use.png", "distances.png", "codes.png", "units.png", "annealing.png")
"""What is drawn."""


@dataclass(frozen=True)
class _Plots:
    """Which plots are wanted."""

    path: Path | None
    """The folder that they go to; None for the run's own."""
    source: str | None
    """The data; None for the run's own."""
    codes: int
    """How many codes to show one by one,"""
    pictures: int
    """on how many held-out pictures at most."""
    progress: Progress | None
    announce: Announce


def inspect_run(
    run: str | Path,
    *,
    plots: bool = True,
    path: str | Path | None = None,
    data: str | None = None,
    codes: int = 64,
    pictures: int = 2000,
    overwrite: bool = False,
    progress: Progress | None = None,
    announce: Announce = print,
) -> list[Section]:
    """Say what a run is in plain words, section by section, and draw what its codes stand for.

    Arguments:
        run: the run's folder.
        plots: whether to draw.
        path: the folder that plots go to; None: ``inspection`` in the run's folder.
        data: a path, or the name of a set; None: what the run was trained on.
        codes: how many codes to show one by one, at most.
        pictures: how many held-out examples to look at, at most.
        overwrite: whether plots may be replaced in a folder outside the run; in the run's own they are renewed.
        progress: called with what is being done, how many are done and how many there are.
        announce: takes sentences about the data.
    """
    run = Path(run)
    check_there(run)
    wanted = _Plots(None if path is None else Path(path), data, codes, pictures, progress, announce) if plots else None
    if wanted is not None and wanted.path is not None and run.resolve() not in wanted.path.resolve().parents:
        check_all_free((wanted.path / name for name in PLOTS), overwrite)
    folder = check_run(run)
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
        steps=steps_of(run),
        findings=findings_of(folder, experiment),
        plots=() if wanted is None else tuple(_drawn(folder, kind, tokenizer if saved else None, wanted)),
    )


def _drawn(folder: RunFolder, kind: "Kind", tokenizer: Tokenizer | None, plots: _Plots) -> Iterator[str]:
    """Draw what can be drawn, and say what was and what was not."""
    out = plots.path or folder.inspection
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        if plots.path is not None:
            raise
        yield f"no plots: can't write to {out} ({failure.strerror}). Choose another folder with `path=`"
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


def _codes_drawn(folder: RunFolder, kind: "Kind", tokenizer: Tokenizer, plots: _Plots, out: Path) -> Iterator[str]:
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
    draw: Callable[[Any, Any, str, _Plots, Path], tuple[Tensor, str, str]]
    """Draw what codes stand for; returns how often each was taken, on what, and a line about the drawing."""
    atlas: str
    """The drawing's name."""


def _draw_patches(
    tokenizer: ImageTokenizer, pictures: Pictures, name: str, plots: _Plots, out: Path
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
    tokenizer: SpeechTokenizer, utterances: Utterances, name: str, plots: _Plots, out: Path
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


def _held_out(folder: RunFolder, tokenizer: Tokenizer, plots: _Plots) -> tuple[Any, str, str]:
    """Validation data with the name of their set and of the weights in use; or none, and why."""
    try:
        source, prepared = data_of_run(
            folder.path, tokenizer, plots.source, progress=plots.progress, announce=plots.announce
        )
    except (OSError, ValueError, ImportError) as failure:
        if plots.source is not None:
            raise
        reason = str(failure)
        told = "--data" in as_typed(reason)
        return None, "", reason if told else f"{reason}; say where the data is with `data=`"
    epoch = tokenizer.history.epochs
    after = "" if epoch is None else f", after epoch {epoch}"
    return prepared.part("validation"), f"{Path(source).name}, with the best checkpoint{after}", ""
