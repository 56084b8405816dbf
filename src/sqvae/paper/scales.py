"""Scales of experiments: as in the paper, short, or a smoke test."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sqvae.config import Experiment, with_profile

SHORT_EPOCHS = 3
"""The number of epochs of a short run."""


@dataclass(frozen=True)
class Scale:
    """A scale of experiments."""

    name: str
    description: str
    applied: Callable[[Experiment], Experiment]
    """A function that returns an experiment at this scale."""


def _as_it_is(experiment: Experiment) -> Experiment:
    return experiment


def short(experiment: Experiment) -> Experiment:
    """A few epochs by the schedule for any number of steps, the same for all data."""
    annealed = with_profile(experiment, "any-budget")
    return replace(annealed, training=replace(annealed.training, epochs=SHORT_EPOCHS))


def _smoke(experiment: Experiment) -> Experiment:
    return replace(
        experiment,
        network=replace(experiment.network, blocks=min(1, experiment.network.blocks)),
        training=replace(experiment.training, epochs=2, passes_per_epoch=1, log_every=4),
    )


SCALES: Mapping[str, Scale] = {
    "smoke": Scale("smoke", "small networks on synthetic data: only a test that everything works", _smoke),
    "short": Scale("short", "a few epochs, by the schedule for any number of steps", short),
    "paper": Scale("paper", "the settings of the paper", _as_it_is),
}
"""All scales by name."""
