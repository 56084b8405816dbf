"""Training with progress in the terminal, and the output before and after it."""

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
"""The labels of the measures of a prior."""


def show_kind_of_data(taken_as: TakenAs, source: str) -> None:
    """Print the detected kind of data with the reason. If it is in doubt, also print the commands that settle it."""
    console.note(f"data: {taken_as}")
    if taken_as.doubt is not None:
        hint = f"To take them as label maps: sqvae train label-maps --data {source}"
        if taken_as.conversion is not None:
            hint = f"To train on classes, {taken_as.conversion}, and then: sqvae train label-maps --data DIR"
        console.warning(f"{taken_as.doubt}. {hint}; as pictures: sqvae train pictures --data {source}")


def show_forecast(experiment: Experiment, minutes: float | None) -> None:
    """Print the expected duration of a run, and on standard output all its settings as JSON."""
    source = experiment.data.source
    try:
        with console.progress_bar() as progress:
            expected = forecast(experiment, minutes=minutes, announce=console.note, progress=progress)
    except FileNotFoundError as failure:
        if source not in SETS:
            raise
        console.warning(f"{failure}. Settings that are derived from the data are not known yet, and are null below")
    else:
        experiment = expected.experiment
        console.note(
            f"a step takes {expected.seconds_a_step:.2g} seconds on this machine, so training takes about "
            f"{in_words(expected.seconds)}"
        )
    complete = dataclasses.replace(experiment, quantizer=quantizer_settings(experiment))
    console.out.print_json(data=dataclasses.asdict(complete))


def _observers(run: RunFolder, progress: Progress) -> dict[str, Any]:
    """The watchers and the output functions of a training. Only the first process has any output."""
    if not is_first_process():
        return {"announce": lambda text: None}
    return {"watchers": [console.TrainingBar(), Drawings(run)], "announce": console.note, "progress": progress}


def train_with_progress(run: RunFolder, work: Callable[..., Any]) -> None:
    """Train a model with progress in the terminal, and print its evaluation and the next command.

    Arguments:
        run: the folder of the run.
        work: the function that trains. It accepts `watchers`, `announce` and `progress`.
    """
    _trained(run, work)
    if not is_first_process():
        return
    with console.progress_bar() as progress:
        result = evaluate_run(run.path, progress=progress, announce=lambda note: None)
    show_evaluation(result)
    experiment = read_experiment(run)[0]
    inputs = modality_of(experiment.kind).inputs
    command = f"encode {run} {inputs} -o codes.safetensors"
    if not result.codebook_size or experiment.network.levels > 1:  # which no file of codes holds
        command = f"reconstruct {run} {inputs} -o rebuilt"
    console.out.print(f"Done: {run}. Use it with: sqvae {command}", soft_wrap=True)


def train_prior_with_progress(folder: RunFolder, work: Callable[..., Any]) -> None:
    """Train a prior with progress in the terminal, and print its evaluation and the next command."""
    _trained(folder, work)
    if not is_first_process():
        return
    with console.progress_bar() as progress:
        result = evaluate_prior(folder.path, progress=progress)
    table = Table("measure", "value", title=result.setting, title_justify="left")
    for measure, label in MEASURES.items():
        table.add_row(label, f"{result.measures[measure]:.3f}")
    console.out.print(table)
    for finding in result.findings:
        console.warning(finding)
    run = result.experiment.tokenizer
    own = "" if is_own_prior(run, folder.path) else f" --prior {folder}"
    out = "samples" if result.experiment.sequences else "samples.png"
    console.out.print(f"Done: {folder}. Use it with: sqvae sample {run}{own} -o {out}", soft_wrap=True)


def _trained(run: RunFolder, work: Callable[..., Any]) -> None:
    """Train with progress in the terminal until the end or an interruption."""
    try:
        with console.progress_bar() as progress:
            work(**_observers(run, progress))
    except TrainingStoppedError as stop:
        if is_first_process():
            console.err.print(
                f"Stopped at {stop.position}. A checkpoint is saved. Resume with: sqvae resume {run}", soft_wrap=True
            )
        raise typer.Exit(128 + stop.signal_number if stop.signal_number else 1) from None
    leave_other_processes()
