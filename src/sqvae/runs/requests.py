"""Experiments from a few choices: a recipe or some data, and what is to be otherwise."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from sqvae.config import ConfigurationError, Experiment, PriorExperiment, check_name, override, with_profile
from sqvae.data import TakenAs
from sqvae.data.sources import check_there as check_data_there
from sqvae.recipes import OWN_DATA, RECIPES, as_told, suitable
from sqvae.runs.generation import PLACE
from sqvae.runs.priors import is_run
from sqvae.tokenizers import check_there
from sqvae.training import CheckpointError, RunFolder, is_launched

Settled = TypeVar("Settled", Experiment, PriorExperiment)


def experiment_for(
    recipe: str | None = None,
    data: str | None = None,
    settings: Sequence[str] = (),
    *,
    seed: int | None = None,
    epochs: int | None = None,
    steps: int | None = None,
    precision: str | None = None,
    compile_model: bool = False,
    strict: bool = False,
    profile: str = "recipe",
) -> tuple[Experiment, TakenAs]:
    """An experiment, ready for :func:`train`, and as what it takes the data.

    Arguments:
        recipe: one of :data:`sqvae.recipes.RECIPES`; None: the one that suits the data.
        data: a folder, a file, or the name of a set; None: the recipe's own.
        settings: such as ``"quantizer.codebook_size=128"``. They come last, and win.
        seed: of the first weights, the order of the data, and the noise.
        epochs: how many to train for,
        steps: or how many steps. Where both are None the recipe says it.
        precision: ``"no"``, ``"bf16"`` or ``"fp16"``.
        compile_model: whether the model is compiled before it is trained.
        strict: whether the first example that can't be read is an error, rather than left out.
        profile: a set of settings: ``"recipe"``, ``"any-budget"``, ``"paper"`` or ``"official"``.
    """
    settings = [*([] if steps is None else [f"training.steps={steps}"]), *settings]
    if recipe is None and data is None:
        raise ConfigurationError(
            "say what to train on: `data=DIR` for your own pictures, or a recipe, such as: sqvae train demo. "
            f"There is {', '.join(RECIPES)}"
        )
    choice = suitable(data, settings) if recipe is None and data is not None else None
    name = recipe if choice is None else choice.recipe
    if recipe is not None and recipe not in RECIPES and Path(recipe).exists():
        raise ConfigurationError(f"{recipe} is a path, not a recipe; to train on it: sqvae train `data={recipe}`")
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
    # A profile has settings for each quantizer, so that one comes before, and what a person sets comes last.
    quantizer = [setting for setting in settings if setting.partition("=")[0].strip() == "quantizer.name"]
    first = [*_assigned(given), *quantizer]
    experiment = override(with_profile(override(RECIPES[name](), first), profile), settings)
    if not experiment.data.source:
        raise ConfigurationError(f"the recipe {name} is for your own data: pass `data=DIR`")
    check_data_there(experiment.data.source)
    return with_threads(experiment), as_told(experiment, settings) if choice is None else choice.taken_as


def prior_experiment_for(
    run: str | Path,
    network: str = "pixelcnn",
    settings: Sequence[str] = (),
    *,
    out: str | Path | None = None,
    given: str | None = None,
    by_class: bool = False,
    until: float | None = None,
    data: str | None = None,
    seed: int | None = None,
    epochs: int | None = None,
    steps: int | None = None,
) -> tuple[PriorExperiment, Path]:
    """The experiment of a prior over a model's codes, ready for :func:`train`, and the folder that it belongs in.

    Arguments:
        run: the folder of the model.
        network: ``"pixelcnn"`` or ``"pixelsnail"``.
        settings: such as ``"prior.channels=64"``. They come last, and win.
        out: the folder of the prior; None: ``prior`` in the run's folder.
        given: the folder of a coarser model of the same pictures, whose codes the prior is given.
        by_class: whether the prior is given the class of each picture.
        until: training ends at so many nats per code on the validation set.
        data: other data than the model was trained on.
        seed: of the first weights, the order of the data, and the noise.
        epochs: how many to train for,
        steps: or how many steps.
    """
    for model in (run, *([] if given is None else [given])):
        check_there(Path(model))
    if out is None and not is_run(RunFolder(run)):
        raise CheckpointError(f"{run} is not the folder of a run, and has no place for a prior: name one with `out=`")
    options = {
        "prior.name": network,
        "above": given,
        "by_class": True if by_class else None,
        "training.until": until,
        "data": data,
        "seed": seed,
        "training.epochs": epochs,
        "training.steps": steps,
    }
    experiment = override(PriorExperiment(tokenizer=str(run)), [*_assigned(options), *settings])
    return with_threads(experiment), Path(run) / PLACE if out is None else Path(out)


def _assigned(given: dict[str, Any]) -> list[str]:
    return [f"{key}={value}" for key, value in given.items() if value is not None]


def check_length(epochs: int | None, steps: int | None, minutes: float | None) -> None:
    """Raise if a run is asked to be of more than one length."""
    given = {"epochs": epochs, "steps": steps, "minutes": minutes}
    named = [f"`{option}={value:g}`" for option, value in given.items() if value is not None]
    if len(named) > 1:
        raise ConfigurationError(f"{' and '.join(named)} both say how long to train: pass one of them")


def with_threads(experiment: Settled) -> Settled:
    """The same experiment with half of the cores for it, unless somebody has said how many."""
    if experiment.training.threads is None and "OMP_NUM_THREADS" not in os.environ and not is_launched():
        # Small steps gain little from all cores, and threads that wait for a busy one lose very much.
        threads = max(1, (os.cpu_count() or 1) // 2)
        return override(experiment, [f"training.threads={threads}"])
    return experiment


def new_folder(experiment: Experiment, within: str | Path = "runs") -> Path:
    """A folder for a run that is not there yet: the name of its recipe or data, with a number where that is taken."""
    name = experiment.recipe
    if name in OWN_DATA:
        name = Path(experiment.data.source.removeprefix("hf:")).resolve().stem or name
    folder, number = Path(within) / name, 1
    while folder.exists():
        number += 1
        folder = Path(within) / f"{name}-{number}"
    return folder
