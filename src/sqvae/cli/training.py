"""Training where a person can watch, and what is said of it."""

import dataclasses
from collections.abc import Callable
from typing import Any

import typer
from rich.table import Table

from sqvae.analysis import evaluate_run
from sqvae.cli import console
from sqvae.cli.results import show_evaluation
from sqvae.cli.root import is_first_process
from sqvae.config import Experiment
from sqvae.data import Progress, TakenAs
from sqvae.data.named import SETS
from sqvae.modality import modality_of
from sqvae.reports import Drawings
from sqvae.runs import evaluate_prior, forecast, is_own_prior, read_experiment
from sqvae.tokenizers import quantizer_settings
from sqvae.training import RunFolder, TrainingStoppedError, in_words, leave_other_processes

MEASURES = {
    "bits_per_code": "bits per code",
    "nats_per_code": "nats per code",
    "histogram_bits_per_code": "bits per code, by the histogram of training codes",
    "uniform_bits_per_code": "bits per code, all codes equally likely",
}


def say_taken_as(taken_as: TakenAs, source: str) -> None:
    """As what the data is taken, and why; where that is in doubt, loudly, with what settles it."""
    console.note(f"data: {taken_as}")
    if taken_as.doubt is not None:
        as_maps = f"To take them as label maps: sqvae train label-maps --data {source}"
        if taken_as.conversion is not None:
            as_maps = f"To train on classes, {taken_as.conversion}, and then: sqvae train label-maps --data DIR"
        console.warning(f"{taken_as.doubt}. {as_maps}; as pictures: sqvae train pictures --data {source}")


def show_forecast(experiment: Experiment, minutes: float | None) -> None:
    """Say what a run would do and how long that takes here; and every setting, as JSON, on standard output."""
    source = experiment.data.source
    try:
        with console.progress_bar() as progress:
            ahead = forecast(experiment, minutes=minutes, announce=console.note, progress=progress)
    except FileNotFoundError as failure:
        if source not in SETS:
            raise
        console.warning(f"{failure}. What is decided from the data is not known yet, and null below")
    else:
        experiment = ahead.experiment
        console.note(
            f"a step takes {ahead.seconds_a_step:.2g} seconds on this machine, so training takes about "
            f"{in_words(ahead.seconds)}"
        )
    complete = dataclasses.replace(experiment, quantizer=quantizer_settings(experiment))
    console.out.print_json(data=dataclasses.asdict(complete))


def _observers(run: RunFolder, progress: Progress) -> dict[str, Any]:
    """Who watches, and who hears about the data: nobody but in the first process."""
    if not is_first_process():
        return {"announce": lambda text: None}
    return {"watchers": [console.TrainingBar(), Drawings(run)], "announce": console.note, "progress": progress}


def watched(run: RunFolder, work: Callable[..., Any]) -> None:
    """Train a model where a person can watch, and say what came of it and what to do next.

    Arguments:
        work: trains; it takes `watchers`, `announce` and `progress`.
    """
    _trained(run, work)
    if not is_first_process():
        return
    with console.progress_bar() as progress:
        result = evaluate_run(run.path, progress=progress, announce=lambda note: None)
    show_evaluation(result)
    what = modality_of(read_experiment(run)[0].kind).inputs
    use = f"encode {run} {what} -o codes.safetensors"
    if not result.codebook_size:
        use = f"reconstruct {run} {what} -o rebuilt"
    console.out.print(f"Done: {run}. Use it with: sqvae {use}", soft_wrap=True)


def watched_prior(folder: RunFolder, work: Callable[..., Any]) -> None:
    """Train a prior where a person can watch, and say what came of it and what to do next."""
    _trained(folder, work)
    if not is_first_process():
        return
    with console.progress_bar() as progress:
        result = evaluate_prior(folder.path, progress=progress)
    table = Table("what", "value", title=result.setting, title_justify="left")
    for measure, words in MEASURES.items():
        table.add_row(words, f"{result.measures[measure]:.3f}")
    console.out.print(table)
    for finding in result.findings:
        console.warning(finding)
    run = result.experiment.tokenizer
    own = "" if is_own_prior(run, folder.path) else f" --prior {folder}"
    out = "samples" if result.experiment.sequences else "samples.png"
    console.out.print(f"Done: {folder}. Use it with: sqvae sample {run}{own} -o {out}", soft_wrap=True)


def _trained(run: RunFolder, work: Callable[..., Any]) -> None:
    """Train where a person can watch, to the end, or until they stop it."""
    try:
        with console.progress_bar() as progress:
            work(**_observers(run, progress))
    except TrainingStoppedError as stop:
        if is_first_process():
            console.err.print(f"Stopped at {stop.position}, and saved. Go on with: sqvae resume {run}", soft_wrap=True)
        raise typer.Exit(128 + stop.signal_number if stop.signal_number else 1) from None
    leave_other_processes()
