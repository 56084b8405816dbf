"""How much of an experiment to carry out: all of it, enough to see the point, or enough to see that it works."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sqvae.experiment import Experiment
from sqvae.training import ANY_BUDGET

SHORT_EPOCHS = 3
"""Of a short run."""


@dataclass(frozen=True)
class Budget:
    """How fast a model is trained in a short run."""

    rate: float
    """Where the learning rate begins, to fall to 0."""
    temperature: float | None = None
    """Where the temperature ends, if the quantizer has one."""
    codebook_scale: float | None = None
    """How large codes are before training, if not as usual. Smaller ones turn faster, where directions count."""
    decoder_concentration: float | None = None
    """That of the decoder before training, if not as usual. The lower it is, the later codes settle."""


SHORT = Budget(8e-3, 0.75)
"""For quantizers that anneal themselves. The paper's rate is 1e-3. See `sqvae reproduce small-budget`."""
SHORT_LEVELS = Budget(3e-3, 0.75)
"""For grey levels as directions: at the rate above, more of their codes are lost early on."""
SHORT_LEVELS_NC = Budget(3e-3, 0.2)
"""For grey levels by a softmax, which anneals little by itself: at the temperature above, what training decodes are
mixtures of many codes to the end, and single codes then say less. The paper's schedule ends at 0.21."""
SHORT_LABELS = Budget(8e-3, 0.5)
SHORT_LABELS_VMF = Budget(8e-3, 0.75, codebook_scale=0.1, decoder_concentration=10.0)
"""For label maps: with the rate, chosen on the validation maps of CamVid."""
SHORT_HEADS = Budget(2e-3, 0.75)
"""For variances that the encoder gives: at the rate above they diverge on colour pictures."""
SHORT_FIXED = Budget(4e-3, 0.5)
"""For a variance that stays as it is: it learns worse, or nothing, with the other."""
SHORT_VQ = Budget(1e-3)
"""For VQ-VAE. The paper's rate is 3e-4."""

SELF_ANNEALING = ("gaussian-1", "gaussian-2", "gaussian-3", "gaussian-4", "vmf")
"""Those that take the schedule for any number of steps."""

BUDGETS: Mapping[str, Budget] = {
    "gaussian-1": SHORT,
    "vmf": SHORT,
    **dict.fromkeys(("gaussian-2", "gaussian-3", "gaussian-4"), SHORT_HEADS),
    "gaussian-fixed": SHORT_FIXED,
    **dict.fromkeys(("vq", "vq-ema", "vq-ema-reset"), SHORT_VQ),
}
"""By the quantizer's name; a continuous latent keeps its rate."""

OF_CATEGORIES: Mapping[tuple[str, str], Budget] = {
    ("levels", "gaussian-1"): SHORT_LEVELS_NC,
    ("levels", "vmf"): SHORT_LEVELS,
    ("labels", "gaussian-1"): SHORT_LABELS,
    ("labels", "vmf"): SHORT_LABELS_VMF,
}
"""The same where the kind of data makes a difference."""


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
    training = replace(experiment.training, epochs=epochs or SHORT_EPOCHS, schedule="cosine")
    quantizer, likelihood = experiment.quantizer, experiment.likelihood
    budget = OF_CATEGORIES.get((experiment.kind, quantizer.name)) or BUDGETS.get(quantizer.name)
    if budget is not None:
        training = replace(training, learning_rate=budget.rate, temperature_end=budget.temperature)
        if budget.codebook_scale is not None:
            quantizer = replace(quantizer, codebook_scale=budget.codebook_scale)
        if budget.decoder_concentration is not None:
            likelihood = replace(likelihood, initial_concentration=budget.decoder_concentration)
    return replace(experiment, training=training, quantizer=quantizer, likelihood=likelihood)


def for_any_budget(experiment: Experiment) -> Experiment:
    """The schedule for any number of steps: the same for all data. Other quantizers have a rate that falls alike."""
    quantizer, training = experiment.quantizer, replace(experiment.training, epochs=SHORT_EPOCHS, schedule="cosine")
    if quantizer.name in SELF_ANNEALING:
        quantizer, training = replace(quantizer, initial_variance=None), replace(training, **ANY_BUDGET)
    return replace(experiment, quantizer=quantizer, training=training)


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
