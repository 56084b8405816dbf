"""Runs: an experiment, trained in a folder."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from sqvae.data import DATASETS, PictureSets, Progress
from sqvae.data import load as load_data
from sqvae.experiment.assembly import build_model
from sqvae.experiment.configuration import Experiment
from sqvae.experiment.evaluation import PictureTask
from sqvae.experiment.media import medium_of
from sqvae.experiment.tokenizer import describe, experiment_from
from sqvae.models import LatentModel
from sqvae.training import (
    CheckpointError,
    JsonLines,
    Plan,
    RunFolder,
    TensorBoard,
    Training,
    Watcher,
    read_json,
    stream_seed,
    this_process,
    write_json,
)

EPOCH_STEPS = 200
"""An epoch has at least so many steps where the plan leaves the passes through the data open."""

SMALLEST_VARIANCE = 1e-6
"""Of data that does not vary: less than a grey level's square."""

Announce = Callable[[str], None]


@dataclass(frozen=True)
class Prepared:
    """An experiment with its data: nothing left open."""

    experiment: Experiment
    data: PictureSets

    @property
    def config(self) -> dict[str, Any]:
        """What is stored with every checkpoint."""
        return {**describe(self.experiment), "data_key": self.data.key}


def prepare(experiment: Experiment, *, announce: Announce = print, progress: Progress | None = None) -> Prepared:
    """Load the data, and decide from it what the experiment leaves open."""
    settings = experiment.data
    # The first process fills the cache, the others find it filled.
    with this_process().main_process_first():
        data = load_data(
            settings.source,
            settings.preprocessing,
            split_seed=settings.split_seed,
            strict=settings.strict,
            progress=progress,
            class_names=settings.class_names or (),
        )
    for note in data.notes:
        announce(note)
    named = settings.source in DATASETS or not Path(settings.source).exists()
    decided = replace(
        settings,
        source=settings.source if named else str(Path(settings.source).resolve()),
        size=data.preprocessing.size,
        crop=data.preprocessing.crop,
        channels=None if settings.kind == "labels" else data.preprocessing.channels,
        classes=data.preprocessing.classes,
        ignore=data.preprocessing.ignore,
        class_names=data.class_names or None,
        class_colours=settings.class_colours or data.class_colours or None,
    )
    training = _with_passes(experiment.training, len(data.train))
    if training.passes_per_epoch != 1 and experiment.training.passes_per_epoch is None:
        announce(f"few pictures: an epoch goes through them {training.passes_per_epoch} times")
    likelihood = experiment.likelihood
    if likelihood.variance == "fixed" and likelihood.initial_variance is None:
        likelihood = replace(likelihood, initial_variance=max(data.train.variance(), SMALLEST_VARIANCE))
    return Prepared(replace(experiment, data=decided, training=training, likelihood=likelihood), data)


def train(
    experiment: Experiment,
    out: str | Path,
    *,
    watchers: Sequence[Watcher] = (),
    announce: Announce = print,
    progress: Progress | None = None,
) -> RunFolder:
    """Train an experiment in a new folder.

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
            prepared = prepare(experiment, announce=announce, progress=progress)
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
        experiment, config = read_experiment(folder)
        if source is not None:
            experiment = replace(experiment, data=replace(experiment.data, source=source))
        if epochs is not None:
            experiment = replace(experiment, training=replace(experiment.training, epochs=epochs))
        prepared = prepare(experiment, announce=announce, progress=progress)
        if prepared.data.key != config.get("data_key"):
            raise CheckpointError(
                f"{folder} was trained on other pictures than {prepared.experiment.data.source} holds now: the data "
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


def _training(prepared: Prepared, folder: RunFolder, watchers: Sequence[Watcher]) -> Training:
    experiment, data = prepared.experiment, prepared.data
    plan = experiment.training
    if plan.threads is not None:
        torch.set_num_threads(plan.threads)
    model = new_model(experiment)
    return Training(
        model,
        data.train,
        PictureTask(model, data.validation, plan.batch_size, medium_of(experiment)),
        plan,
        folder,
        prepared.config,
        seed=experiment.seed,
        watchers=[JsonLines(folder.log), TensorBoard(folder.tensorboard), *watchers],
    )


def new_model(experiment: Experiment) -> LatentModel:
    """The untrained model of an experiment whose data is known, with the weights that its seed gives."""
    torch.manual_seed(stream_seed(experiment.seed, "weights"))
    model = build_model(experiment, experiment.data.preprocessing.shape)
    return model.to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]


def _with_passes(plan: Plan, examples: int) -> Plan:
    if plan.passes_per_epoch is not None:
        return plan
    steps = max(1, examples // min(plan.batch_size, examples))
    return replace(plan, passes_per_epoch=-(-EPOCH_STEPS // steps) if steps < EPOCH_STEPS else 1)


def read_experiment(folder: RunFolder) -> tuple[Experiment, Mapping[str, Any]]:
    """A run's experiment, and its whole configuration file."""
    config = read_json(folder.config)
    return experiment_from(config, folder.config), config
