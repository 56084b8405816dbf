"""What `sqvae train` and `sqvae resume` put together."""

import dataclasses
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import typer

from sqvae.cli import console
from sqvae.cli.evaluation import evaluate_run, show
from sqvae.cli.launch import is_first_process, is_launched
from sqvae.config import ConfigurationError, Experiment, PriorExperiment, check_name, override, with_profile
from sqvae.data import DATASETS, Progress, TakenAs
from sqvae.data.sources import check_there
from sqvae.data.speech import SPEECH_SETS
from sqvae.recipes import OWN_DATA, RECIPES, as_told, suitable
from sqvae.reports import Drawings
from sqvae.runs import forecast, read_experiment
from sqvae.tokenizers import quantizer_settings
from sqvae.training import RunFolder, TrainingStoppedError, in_words, leave_other_processes

Settled = TypeVar("Settled", Experiment, PriorExperiment)


def asked_for(
    recipe: str | None,
    data: str | None,
    settings: list[str],
    seed: int | None,
    epochs: int | None,
    precision: str | None,
    compile_model: bool,
    strict: bool,
    profile: str = "recipe",
) -> tuple[Experiment, TakenAs]:
    """What was asked for: the recipe, the options, and last what --set says; and as what it takes the data."""
    if recipe is None and data is None:
        raise ConfigurationError(
            "say what to train on: --data DIR for your own pictures, or a recipe, such as: sqvae train demo. "
            f"There is {', '.join(RECIPES)}"
        )
    choice = suitable(data, settings) if recipe is None and data is not None else None
    name = recipe if choice is None else choice.recipe
    if recipe is not None and recipe not in RECIPES and Path(recipe).exists():
        raise ConfigurationError(f"{recipe} is a path, not a recipe; to train on it: sqvae train --data {recipe}")
    check_name(name, RECIPES, "the recipe")
    assert name is not None
    given: dict[str, Any] = {
        "data.source": data,
        "seed": seed,
        "training.epochs": epochs,
        "training.precision": precision,
        "training.compile": True if compile_model else None,
        "data.strict": True if strict else None,
    }
    options = [f"{key}={value}" for key, value in given.items() if value is not None]
    # A profile has settings for each quantizer, so that one comes before, and what a person sets comes last.
    quantizer = [setting for setting in settings if setting.partition("=")[0].strip() == "quantizer.name"]
    experiment = override(with_profile(override(RECIPES[name](), [*options, *quantizer]), profile), settings)
    if not experiment.data.source:
        raise ConfigurationError(f"the recipe {name} is for your own data: pass --data DIR")
    check_there(experiment.data.source)
    return with_threads(experiment), as_told(experiment, settings) if choice is None else choice.taken_as


def say_taken_as(taken_as: TakenAs, source: str) -> None:
    """As what the data is taken, and why; where that is in doubt, loudly, with what settles it."""
    console.note(f"data: {taken_as}")
    if taken_as.doubt is not None:
        as_maps = f"To take them as label maps: sqvae train label-maps --data {source}"
        if taken_as.conversion is not None:
            as_maps = f"To train on classes, {taken_as.conversion}, and then: sqvae train label-maps --data DIR"
        console.warning(f"{taken_as.doubt}. {as_maps}; as pictures: sqvae train pictures --data {source}")


def check_length(epochs: int | None, steps: int | None, minutes: float | None) -> None:
    """Raise if a run is asked to be of more than one length."""
    given = {"--epochs": epochs, "--steps": steps, "--minutes": minutes}
    named = [f"{option} {value:g}" for option, value in given.items() if value is not None]
    if len(named) > 1:
        raise ConfigurationError(f"{' and '.join(named)} both say how long to train: pass one of them")


def show_forecast(experiment: Experiment, minutes: float | None) -> None:
    """Say what a run would do and how long that takes here; and every setting, as JSON, on standard output."""
    source = experiment.data.source
    try:
        with console.progress_bar() as progress:
            ahead = forecast(experiment, minutes=minutes, announce=console.note, progress=progress)
    except FileNotFoundError as failure:
        if source not in (*DATASETS, *SPEECH_SETS):
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


def with_threads(experiment: Settled) -> Settled:
    """The same with half of the cores for it, unless somebody has said how many."""
    if experiment.training.threads is None and "OMP_NUM_THREADS" not in os.environ and not is_launched():
        # Small steps gain little from all cores, and threads that wait for a busy one lose very much.
        threads = max(1, (os.cpu_count() or 1) // 2)
        return override(experiment, [f"training.threads={threads}"])
    return experiment


def new_folder(experiment: Experiment) -> Path:
    """runs/NAME, or with a number where that is taken."""
    name = experiment.recipe
    if name in OWN_DATA:
        name = Path(experiment.data.source.removeprefix("hf:")).resolve().stem or name
    folder, number = Path("runs") / name, 1
    while folder.exists():
        number += 1
        folder = Path("runs") / f"{name}-{number}"
    return folder


def _training_state(run: Path) -> dict[str, Any]:
    """What a run's newest checkpoint says about its training; nothing where there is none."""
    try:
        state = json.loads((run / "last" / "training.json").read_text())
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}


def processes_of(run: Path) -> int:
    """In how many processes a run was trained on this machine; 1 where it does not say."""
    return int(_training_state(run).get("processes", 1))


def is_unfinished(run: Path) -> bool:
    """Whether a run has not come to the end of its plan."""
    state, folder = _training_state(run), RunFolder(run)
    if not state or not folder.config.exists():
        return False
    best = float("inf") if state["best"] is None else state["best"]
    plan = read_experiment(folder)[0].training
    return state["batch"] > 0 or not plan.is_over(state["epoch"], state["step"], best)


def _observers(run: RunFolder, progress: Progress) -> dict[str, Any]:
    """Who watches, and who hears about the data: nobody but in the first process."""
    if not is_first_process():
        return {"announce": lambda text: None}
    return {"watchers": [console.TrainingBar(), Drawings(run)], "announce": console.note, "progress": progress}


def watched(run: RunFolder, work: Callable[..., Any]) -> None:
    """Train where a person can watch, and say what came of it and what to do next.

    Arguments:
        work: trains; it takes `watchers`, `announce` and `progress`.
    """
    trained(run, work)
    if not is_first_process():
        return
    with console.progress_bar() as progress:
        result = evaluate_run(run.path, None, "test", None, progress, lambda note: None)
    show(result)
    what = "RECORDINGS" if read_experiment(run)[0].data.kind == "speech" else "PICTURES"
    use = f"encode {run} {what} -o codes.safetensors"
    if not result.codebook_size:
        use = f"reconstruct {run} {what} -o rebuilt"
    console.out.print(f"Done: {run}. Use it with: sqvae {use}", soft_wrap=True)


def trained(run: RunFolder, work: Callable[..., Any]) -> None:
    """Train where a person can watch, to the end, or until they stop it."""
    try:
        with console.progress_bar() as progress:
            work(**_observers(run, progress))
    except TrainingStoppedError as stop:
        if is_first_process():
            console.err.print(f"Stopped at {stop.position}, and saved. Go on with: sqvae resume {run}", soft_wrap=True)
        raise typer.Exit(128 + stop.signal_number if stop.signal_number else 1) from None
    leave_other_processes()
