"""How much of an experiment to carry out: all of it, enough to see the point, or enough to see that it works."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sqvae.experiment import Experiment

SHORT_EPOCHS = 3
"""Of a short run."""

STOCHASTIC = ("gaussian-1", "gaussian-2", "gaussian-3", "gaussian-4", "gaussian-fixed", "vmf")
"""Quantizers that draw codes, and so have a temperature."""

SHORT_RATE = 8e-3
"""Of a stochastic quantizer in a short run; eight times the paper's. See `sqvae reproduce small-budget`."""
SHORT_RATE_OF_VQ = 1e-3
"""Of VQ-VAE; three times the paper's."""
SHORT_TEMPERATURE = 0.75
"""Where the temperature ends in a short run."""


@dataclass(frozen=True)
class Scale:
    """A size of experiments."""

    name: str
    description: str
    applied: Callable[[Experiment], Experiment]
    """An experiment at this size."""


def _as_it_is(experiment: Experiment) -> Experiment:
    return experiment


def short(experiment: Experiment, epochs: int | None = None) -> Experiment:
    """The schedule for a small budget: the learning rate falls to 0, and with it the temperature."""
    quantizer = experiment.quantizer
    training = replace(experiment.training, epochs=epochs or SHORT_EPOCHS, schedule="cosine")
    if quantizer.name in STOCHASTIC:
        training = replace(training, learning_rate=SHORT_RATE, temperature_end=SHORT_TEMPERATURE)
    elif quantizer.is_discrete:
        training = replace(training, learning_rate=SHORT_RATE_OF_VQ)
    return replace(experiment, training=training)


def _smoke(experiment: Experiment) -> Experiment:
    return replace(
        experiment,
        network=replace(experiment.network, blocks=min(1, experiment.network.blocks)),
        training=replace(experiment.training, epochs=2, passes_per_epoch=1, log_every=4),
    )


SCALES: Mapping[str, Scale] = {
    "smoke": Scale("smoke", "small networks, made-up pictures: shows that everything works, and nothing else", _smoke),
    "short": Scale("short", "a few epochs, and a schedule that suits them", short),
    "paper": Scale("paper", "as the paper has it", _as_it_is),
}
"""Every scale by name."""
