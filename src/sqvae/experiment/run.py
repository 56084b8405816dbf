"""Runs: an experiment, trained in a folder."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from sqvae.data import Progress
from sqvae.experiment.configuration import Experiment
from sqvae.experiment.preparation import PREPARERS
from sqvae.experiment.prepared import Announce, Trainable
from sqvae.experiment.pretrained import experiment_from, settings_from
from sqvae.experiment.prior_settings import PriorExperiment
from sqvae.experiment.priors import prepare_prior
from sqvae.training import (
    CheckpointError,
    JsonLines,
    RunFolder,
    TensorBoard,
    Training,
    Watcher,
    read_json,
    this_process,
    write_json,
)

TRAINABLE: Mapping[str, Callable[..., Trainable]] = {**PREPARERS, "prior": prepare_prior}
"""Who prepares what is trained, by its kind."""


def train(
    experiment: Experiment | PriorExperiment,
    out: str | Path,
    *,
    watchers: Sequence[Watcher] = (),
    announce: Announce = print,
    progress: Progress | None = None,
) -> RunFolder:
    """Train an experiment, or a prior over a model's codes, in a new folder.

    Arguments:
        watchers: who is told what happens, besides the logs.
        announce: takes sentences about the data.
        progress: shows how far preparations are.
    """
    folder = RunFolder(out)
    main = this_process().is_main_process
    if main:
        folder.create()
    with folder.locked() if main else nullcontext():
        if main and folder.holds_something():
            raise CheckpointError(
                f"{folder} already holds a run. Go on with it: sqvae resume {folder}; or choose another with --out"
            )
        try:
            prepared = TRAINABLE[experiment.kind](experiment, announce=announce, progress=progress)
        except Exception:
            if main:
                folder.remove_if_empty()
            raise
        if main:
            write_json(folder.config, prepared.config)
        _training(prepared, folder, watchers).run()
    return folder


def resume(
    out: str | Path,
    *,
    source: str | None = None,
    checkpoint: str | None = None,
    epochs: int | None = None,
    watchers: Sequence[Watcher] = (),
    announce: Announce = print,
    progress: Progress | None = None,
) -> RunFolder:
    """Go on with a run exactly where its newest checkpoint stands.

    Arguments:
        source: where the data is now, if it has moved.
        checkpoint: ``"previous"`` goes on from the newest but one; ``"last"``, or None, from the newest.
        epochs: train for more epochs than was planned.
    """
    folder = RunFolder(out)
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
        if epochs is not None:
            experiment = replace(experiment, training=replace(experiment.training, epochs=epochs))
        prepared = TRAINABLE[experiment.kind](experiment, announce=announce, progress=progress)
        if prepared.key != config.get("data_key"):
            raise CheckpointError(
                f"{folder} was trained on other data than {prepared.experiment.place} holds now: it "
                f"has changed. Put back what it had, name it with --data, or start a new run"
            )
        training = _training(prepared, folder, watchers)
        start = folder.checkpoint(checkpoint)
        if start is None:
            announce("no checkpoint had been written yet: starting from the beginning")
        else:
            training.resume(start)
        before, now = training.processes_before, this_process().num_processes
        if before != now:
            announce(f"trained in {before} process(es) so far, and now in {now}: the same curve, up to rounding")
        if this_process().is_main_process:
            write_json(folder.config, prepared.config)  # more epochs or data that has moved are so for good
        training.run()
    return folder


def _training(prepared: Trainable, folder: RunFolder, watchers: Sequence[Watcher]) -> Training:
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
        prepared.config,
        seed=prepared.experiment.seed,
        watchers=[JsonLines(folder.log), TensorBoard(folder.tensorboard), *watchers],
    )


def read_experiment(folder: RunFolder) -> tuple[Experiment, Mapping[str, Any]]:
    """A run's experiment, and its whole configuration file."""
    config = read_json(folder.config)
    return experiment_from(config, folder.config), config
