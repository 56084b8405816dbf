"""What a run is, how it trained and which codes it uses: in words, and in plots."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqvae.analysis.distances import code_distances
from sqvae.data import Progress
from sqvae.files import check_all_free
from sqvae.modalities.inspecting import Inspection, Plots
from sqvae.modalities.views import recorded_use
from sqvae.modality import modality_of
from sqvae.reports import (
    Section,
    save_curves,
    save_distances,
    save_use,
    summarize,
)
from sqvae.reports.wording import as_typed
from sqvae.runs import Announce, check_run, data_of_run, findings_of, read_experiment, steps_of
from sqvae.tokenizers import Tokenizer, check_there, load, taken_as_of
from sqvae.training import RunFolder, read_records

PLOTS = ("use.png", "distances.png", "codes.png", "units.png", "annealing.png")
"""What is drawn."""


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
    wanted = Plots(None if path is None else Path(path), data, codes, pictures, progress, announce) if plots else None
    if wanted is not None and wanted.path is not None and run.resolve() not in wanted.path.resolve().parents:
        check_all_free((wanted.path / name for name in PLOTS), overwrite)
    folder = check_run(run)
    saved = folder.holds_something()
    experiment, config = read_experiment(folder)
    described = config["experiment"]
    kind: Inspection = modality_of(experiment.kind).inspection
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


def _drawn(folder: RunFolder, kind: Inspection, tokenizer: Tokenizer | None, plots: Plots) -> Iterator[str]:
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
    continuous = not quantizer.is_discrete
    if continuous:
        yield "a continuous latent has no codes, so there are no plots of them"
    elif tokenizer is not None and tokenizer.levels > 1:
        yield "plots of codes show those of one resolution, so there are none for a model with several levels of codes"
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


def _codes_drawn(folder: RunFolder, kind: Inspection, tokenizer: Tokenizer, plots: Plots, out: Path) -> Iterator[str]:
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


def _held_out(folder: RunFolder, tokenizer: Tokenizer, plots: Plots) -> tuple[Any, str, str]:
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
