"""Runs: an experiment, trained in a folder."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from sqvae.config import ConfigurationError, Experiment, PriorExperiment, override
from sqvae.data import Progress, TakenAs
from sqvae.runs.prepared import Announce, Trainable, prepare
from sqvae.runs.priors import prepare_prior
from sqvae.tokenizers import TAKEN_AS, experiment_from, kept, settings_from
from sqvae.training import (
    CheckpointError,
    JsonLines,
    Order,
    RunFolder,
    TensorBoard,
    Training,
    Watcher,
    duration,
    no_such_folder,
    read_json,
    seconds_a_step,
    steps_within,
    this_process,
    write_json,
)

CHANGEABLE = ("epochs", "steps", "until", "log_every", "checkpoint_minutes")
"""What of a plan may change when a run goes on: how long it trains, and what it writes. All else made the weights that
it goes on from what they are."""

PREPARERS: Mapping[str, Callable[..., Trainable]] = {Experiment.entry: prepare, PriorExperiment.entry: prepare_prior}
"""The functions that load the data of what is trained, by the entry of its configuration file."""


@dataclass(frozen=True)
class Forecast:
    """What a run would do."""

    experiment: Any
    """With nothing left open."""
    seconds_a_step: float
    """On this machine, as measured on the first few."""
    seconds: float
    """Of the whole run."""


def forecast(
    experiment: Experiment | PriorExperiment,
    *,
    minutes: float | None = None,
    announce: Announce = print,
    progress: Progress | None = None,
) -> Forecast:
    """Load the data, decide from it what an experiment leaves open, and measure a few steps. Nothing is kept.

    Arguments:
        minutes: see :func:`train`.
    """
    prepared = PREPARERS[experiment.entry](experiment, announce=announce, progress=progress)
    # Nothing is ever written to this folder: it is where checkpoints would go.
    seconds = seconds_a_step(_training(prepared, RunFolder(os.devnull)))
    prepared = _planned(prepared, announce, None if minutes is None else steps_within(minutes, seconds))
    steps = _training(prepared, RunFolder(os.devnull)).position.steps
    return Forecast(prepared.experiment, seconds, duration(steps, seconds))


def train(
    experiment: Experiment | PriorExperiment,
    out: str | Path,
    *,
    minutes: float | None = None,
    taken_as: TakenAs | None = None,
    watchers: Sequence[Watcher] = (),
    announce: Announce = print,
    progress: Progress | None = None,
) -> RunFolder:
    """Train an experiment, or a prior over a model's codes, in a new folder.

    Arguments:
        minutes: train for about so long, rather than for the plan's epochs or steps: a few steps are measured first,
            and the run then has as many as that time allows.
        taken_as: as what the data is taken, and why, where somebody had to decide; it is kept with the run.
        watchers: who is told what happens, besides the logs.
        announce: takes sentences about the data and the plan.
        progress: shows how far preparations are.
    """
    folder = RunFolder(out)
    main = this_process().is_main_process
    if main:
        folder.create()
    with folder.locked() if main else nullcontext():
        if main:
            folder.check_new()
        try:
            prepared = PREPARERS[experiment.entry](experiment, announce=announce, progress=progress)
            steps = None
            if minutes is not None:
                steps = steps_within(minutes, seconds_a_step(_training(prepared, folder)))
            prepared = _planned(prepared, announce, steps)
        except Exception:
            if main:
                folder.remove_if_empty()
            raise
        config = {**prepared.config, **({} if taken_as is None else kept(taken_as))}
        if main:
            write_json(folder.config, config)
        _training(prepared, folder, _logs(folder, watchers), config).run()
    return folder


def resume(
    out: str | Path,
    *,
    source: str | None = None,
    checkpoint: str | None = None,
    epochs: int | None = None,
    settings: Sequence[str] = (),
    watchers: Sequence[Watcher] = (),
    announce: Announce = print,
    progress: Progress | None = None,
) -> RunFolder:
    """Go on with a run exactly where its newest checkpoint stands.

    Arguments:
        source: where the data is now, if it has moved.
        checkpoint: ``"previous"`` goes on from the newest but one; ``"last"``, or None, from the newest.
        epochs: train for so many in all, rather than for as many as was planned.
        settings: such as ``"training.steps=5000"``: what of the plan is to be otherwise from here on. See
            :data:`CHANGEABLE`.
    """
    folder = RunFolder(out)
    if not folder.path.exists():
        raise no_such_folder(folder.path)
    if not folder.config.exists():
        raise CheckpointError(f"{folder} holds no run to resume: it has no config.json")
    with folder.locked() if this_process().is_main_process else nullcontext():
        config = read_json(folder.config)
        experiment: Any = (
            settings_from(PriorExperiment, config, folder.config).found_in(folder.path)
            if PriorExperiment.entry in config
            else settings_from(Experiment, config, folder.config)
        )
        if source is not None:
            experiment = experiment.moved(source)
        settings = [*([] if epochs is None else [f"training.epochs={epochs}"]), *settings]
        experiment = _changed(experiment, settings)
        prepared = PREPARERS[experiment.entry](experiment, announce=announce, progress=progress)
        if prepared.key != config.get("data_key"):
            raise CheckpointError(
                f"{folder} was trained on other data than {prepared.experiment.place} holds now: it "
                f"has changed. Put back what it had, name it with `source=`, or start a new run"
            )
        prepared = _planned(prepared, announce)
        config = {**prepared.config, **{name: config[name] for name in (TAKEN_AS,) if name in config}}
        training = _training(prepared, folder, _logs(folder, watchers), config)
        start = folder.checkpoint(checkpoint)
        if start is None:
            announce("no checkpoint had been written yet: starting from the beginning")
        else:
            training.resume(start)
            _check_ahead(training, folder)
        if training.plan.steps is not None:  # an epoch that was cut short before counts as one
            plan = replace(training.plan, epochs=training.position.epochs)
            prepared = replace(prepared, experiment=replace(prepared.experiment, training=plan))  # type: ignore[type-var]
            training.config = config = {**config, **prepared.config}
        before, now = training.processes_before, this_process().num_processes
        if before != now:
            announce(f"trained in {before} process(es) so far, and now in {now}: the same curve, up to rounding")
        if training.is_over:
            announce(f"all is done, {training.position}; to train for longer pass `steps=N` or `epochs=N`")
        elif settings:
            announce(
                f"{training.position}: from here on the learning rate and the temperature are those of a run of "
                f"{training.position.steps:,} steps"
            )
        if this_process().is_main_process:
            write_json(folder.config, config)  # another plan or data that has moved is so for good
        training.run()
    return folder


def _check_ahead(training: Training, folder: RunFolder) -> None:
    """Raise if a run has come further than it is asked to."""
    done, asked = training.position, training.plan
    if done.step > done.steps or (asked.steps is None and done.epoch > asked.epochs):
        length = f"{asked.epochs} epochs" if asked.steps is None else f"{asked.steps:,} steps"
        raise CheckpointError(
            f"{folder} has trained for {done.epoch} epochs, {done.step:,} steps, and is asked for {length} in all: ask "
            f"for more; it can be used as it is"
        )


def _changed(experiment: Any, settings: Sequence[str]) -> Any:
    """An experiment with another plan, as far as a run that has begun can have one."""
    keys = [setting.partition("=")[0].strip() for setting in settings]
    known = {f"training.{name}" for name in CHANGEABLE}
    fixed = [key for key in keys if key not in known]
    if fixed:
        raise ConfigurationError(
            f"{fixed[0]} can't change in a run that has begun; what can is {', '.join(sorted(known))}. For another "
            f"{fixed[0]} start a new run"
        )
    if "training.epochs" in keys and "training.steps" not in keys and experiment.training.steps is not None:
        settings = [*settings, "training.steps=none"]  # or its steps would go on to be what counts
    return override(experiment, settings)


def _planned(prepared: Trainable, announce: Announce, steps: int | None = None) -> Trainable:
    """The same with as many epochs as its steps make, if steps are what counts; and the plan is said.

    Arguments:
        steps: how many there are to be, if not as planned.
    """
    plan = prepared.experiment.training
    if steps is not None:
        plan = replace(plan, steps=steps)
    shares = this_process().num_processes * plan.accumulate
    order = Order(len(prepared.examples), plan.batch_size, 0, passes=plan.passes_per_epoch or 1, shares=shares)
    batches = len(order)
    if plan.steps is not None:
        plan = replace(plan, epochs=-(-plan.steps // batches))
    total = plan.epochs * batches if plan.steps is None else plan.steps
    passes = total * order.batch_size / len(prepared.examples)
    often = f"{passes:,.0f}" if passes >= 10 else f"{passes:.2g}"
    each = "" if prepared.drawn else f", each of the {len(prepared.examples):,} about {often} times"
    if prepared.becomes:
        announce(prepared.becomes)
    announce(
        f"{total:,} steps of {order.batch_size} {prepared.example}s{each}; validated "
        f"{'at the end' if batches >= total else f'every {batches:,} steps, which are an epoch'}"
    )
    return replace(prepared, experiment=replace(prepared.experiment, training=plan))  # type: ignore[type-var]


def _logs(folder: RunFolder, watchers: Sequence[Watcher]) -> list[Watcher]:
    return [JsonLines(folder.log), TensorBoard(folder.tensorboard), *watchers]


def _training(
    prepared: Trainable, folder: RunFolder, watchers: Sequence[Watcher] = (), config: Mapping[str, Any] | None = None
) -> Training:
    plan = prepared.experiment.training
    if plan.threads is not None:
        torch.set_num_threads(plan.threads)
    model = prepared.new_model()
    return Training(
        model,
        prepared.examples,
        prepared.task(model),
        plan,
        folder,
        config or prepared.config,
        seed=prepared.experiment.seed,
        watchers=watchers,
    )


def read_experiment(folder: RunFolder) -> tuple[Experiment, Mapping[str, Any]]:
    """A run's experiment, and its whole configuration file."""
    config = read_json(folder.config)
    return experiment_from(config, folder.config), config
