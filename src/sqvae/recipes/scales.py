"""How much of an experiment to carry out: all of it, enough to see the point, or enough to see that it works."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sqvae.experiment import Experiment
from sqvae.training import ANY_BUDGET, Plan

SHORT_EPOCHS = 3
"""Of a short run."""


BASELINES: Mapping[str, Plan] = {
    # The paper's rate of VQ-VAE is 3e-4.
    **dict.fromkeys(("vq", "vq-ema", "vq-ema-reset"), Plan(learning_rate=1e-3)),
    # A variance that stays as it is learns worse, or nothing, at other rates.
    "gaussian-fixed": Plan(learning_rate=4e-3, temperature_end=0.5),
}
"""What others than self-annealing quantizers have of a short run's plan, by name. A continuous latent keeps its own."""

SELF_ANNEALING = ("gaussian-1", "gaussian-2", "gaussian-3", "gaussian-4", "vmf")
"""Those that take the schedule for any budget, as it is, whatever the data."""


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
    """The schedule for any budget: the same for all data, given nothing but how long to train."""
    quantizer = experiment.quantizer
    training = annealed(experiment.training) if quantizer.name in SELF_ANNEALING else experiment.training
    training = replace(training, epochs=epochs or SHORT_EPOCHS, schedule="cosine")
    if quantizer.name in SELF_ANNEALING and quantizer.initial_variance is not None:
        quantizer = replace(quantizer, initial_variance=None)
    elif quantizer.name in BASELINES:
        own = BASELINES[quantizer.name]
        training = replace(training, learning_rate=own.learning_rate, temperature_end=own.temperature_end)
    return replace(experiment, training=training, quantizer=quantizer)


def annealed(plan: Plan) -> Plan:
    """A plan with the schedule for any budget, as long as it was before."""
    return replace(plan, **ANY_BUDGET)


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
