"""Profiles: the settings of a recipe, of the paper, of its authors' code, or a schedule for any number of steps."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from sqvae.config.experiment import WITH_HEAD, Experiment, NetworkSettings, QuantizerSettings, check_name
from sqvae.data import DATASETS
from sqvae.likelihoods.categorical import DecoderConcentration
from sqvae.modality import modality_of
from sqvae.training import ANY_BUDGET, Plan

PLAIN_RATE = 1e-3
"""The initial learning rate of the same schedule for quantizers that draw no codes."""

PRINTED_BLOCKS = 6
"""The number of ResBlocks that the paper states for Fashion-MNIST, CIFAR10 and CelebA."""

SMALL_SIDE = 32
"""Images up to this side (Fashion-MNIST, CIFAR10) have fewer ResBlocks in the authors' code; CelebA has as many."""

SMALL_BLOCKS = 2
"""The number of ResBlocks for such images in the authors' code."""


def recipe(experiment: Experiment) -> Experiment:
    """Each recipe's own settings: those of the paper for its data sets, and the schedule for any number of steps for
    all other data."""
    other = experiment.training.anneals and not experiment.quantizer.draws_codes
    return any_budget(experiment) if other else experiment


def any_budget(experiment: Experiment) -> Experiment:
    """The schedule for any number of steps, on any data.

    For a quantizer that draws no codes, the learning rate decays in the same way.
    """
    quantizer, plan = experiment.quantizer, _without_annealing(experiment.training)
    if not quantizer.draws_codes:
        return replace(experiment, training=replace(plan, schedule="cosine", learning_rate=PLAIN_RATE))
    if quantizer.name != "gaussian-fixed":
        quantizer = replace(quantizer, initial_variance=None)
    plan = replace(plan, **ANY_BUDGET)
    if (rate := modality_of(experiment.kind).learning_rate) is not None:
        plan = replace(plan, learning_rate=rate)
    return _with_concentration(replace(experiment, quantizer=quantizer, training=plan), "closed_form")


def paper(experiment: Experiment) -> Experiment:
    """The settings that the paper states, with its own schedule."""
    experiment, plan = _with_concentration(experiment, "learned"), experiment.training
    return replace(experiment, training=_without_annealing(plan)) if plan.anneals else experiment


def official(experiment: Experiment) -> Experiment:
    """The settings of the authors' code, where they differ from what the paper states.

    - Gaussian type I has the variance 1 + e^s; types II to IV have e^h + e^s.
    - The von Mises-Fisher quantizer and decoder have the concentration 1 + e^s.
    - Networks of 6 ResBlocks have 2 for images of 28x28 and 32x32.
    - Decoders have one ResBlock less than encoders.

    Values that are set already (`quantizer.variance_offset`, `quantizer.heads`, `network.decoder_blocks`) are kept. The
    objectives of VQ-VAE are the same.
    """
    experiment = _with_concentration(experiment, "learned")
    likelihood = experiment.likelihood
    if experiment.likelihood_name == "vmf" and not likelihood.concentration_offset:
        likelihood = replace(likelihood, concentration_offset=1.0)
    return replace(
        experiment,
        network=_official_network(experiment),
        quantizer=_official_quantizer(experiment.quantizer),
        likelihood=likelihood,
    )


PROFILES: Mapping[str, Callable[[Experiment], Experiment]] = {
    "recipe": recipe,
    "any-budget": any_budget,
    "paper": paper,
    "official": official,
}
"""All profiles by name. The first line of a profile's docstring describes it."""


def with_profile(experiment: Experiment, name: str) -> Experiment:
    """An experiment with a profile applied. Choose the quantizer first, because the profile's settings depend on it."""
    check_name(name, PROFILES, "the profile")
    return PROFILES[name](experiment)


def _without_annealing(plan: Plan) -> Plan:
    """A plan with the paper's values in place of those that the schedule for any number of steps sets."""
    usual = Plan()
    defaults: dict[str, Any] = {name: getattr(usual, name) for name in ANY_BUDGET}
    return replace(plan, **defaults)


def _with_concentration(experiment: Experiment, concentration: DecoderConcentration) -> Experiment:
    """The experiment with this way to find the concentration of a vMF decoder. Other decoders have none."""
    if experiment.likelihood_name != "vmf":
        return experiment
    return replace(experiment, likelihood=replace(experiment.likelihood, concentration=concentration))


def _official_quantizer(settings: QuantizerSettings) -> QuantizerSettings:
    if settings.name == "gaussian-1" and settings.variance_offset is None:
        return replace(settings, variance_offset=1.0)
    if settings.name == "vmf" and settings.concentration_offset is None:
        return replace(settings, concentration_offset=1.0)
    if settings.name in WITH_HEAD and settings.heads is None:
        return replace(settings, heads="sum")
    return settings


def _official_network(experiment: Experiment) -> NetworkSettings:
    network = experiment.network
    if network.blocks == PRINTED_BLOCKS and _is_small(experiment):
        network = replace(network, blocks=SMALL_BLOCKS)
    if network.decoder_blocks is None:
        network = replace(network, decoder_blocks=max(0, network.blocks - 1))
    return network


def _is_small(experiment: Experiment) -> bool:
    """Whether images are known to be small, from data.size or from the data set, which may be in any folder."""
    size = experiment.data.size
    if size is None:
        dataset = DATASETS.get(experiment.data.source) or DATASETS.get(experiment.recipe)
        size = dataset.preprocessing.size if dataset is not None else None
    if size is None:
        return False
    return (size if isinstance(size, int) else max(size)) <= SMALL_SIDE
