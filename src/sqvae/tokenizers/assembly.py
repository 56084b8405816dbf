"""Quantizers and likelihoods from configurations."""

from dataclasses import replace
from typing import Any

from sqvae.config import WITH_HEAD, ConfigurationError, Experiment, QuantizerSettings
from sqvae.likelihoods import (
    CategoricalLikelihood,
    GaussianLikelihood,
    Likelihood,
    VonMisesFisherLikelihood,
    half_circle_directions,
    one_hot_directions,
)
from sqvae.quantizers import LATENTS, Quantizer


def build_likelihood(experiment: Experiment) -> Likelihood:
    """The likelihood of an experiment's data."""
    settings, data = experiment.likelihood, experiment.data
    options: dict[str, Any] = {}
    if experiment.likelihood_name == "gaussian":
        if settings.initial_variance is not None:
            options["initial_variance"] = settings.initial_variance
        return GaussianLikelihood(settings.variance, **options)
    classes = data.number_of_classes
    if not classes:
        raise ConfigurationError("the number of classes is not known before the data is loaded; set data.classes")
    directions = half_circle_directions(classes) if data.kind == "levels" else one_hot_directions(classes)
    seen = one_hot_directions(classes) if settings.inputs == "one-hot" else directions
    if experiment.likelihood_name == "categorical":
        return CategoricalLikelihood(classes, inputs=seen, ignore=data.ignore)
    if settings.initial_concentration is not None:
        options["initial_concentration"] = settings.initial_concentration
    return VonMisesFisherLikelihood(
        directions,
        concentration=settings.concentration,
        concentration_offset=settings.concentration_offset,
        inputs=seen,
        ignore=data.ignore,
        **options,
    )


def quantizer_settings(experiment: Experiment) -> QuantizerSettings:
    """Those of an experiment's quantizer, with what depends on its schedule.

    At the rate of one that anneals, an encoder's own variance would run away, so that it is bounded. Codes on a sphere
    begin with the length 1, so that they turn as fast as others move; by the paper's schedule, as its authors draw
    them.
    """
    settings, anneals = experiment.quantizer, experiment.training.anneals
    if settings.name in WITH_HEAD and settings.heads is None and anneals:
        return replace(settings, heads="bounded")
    if settings.name == "vmf" and settings.codebook_scale is None and not anneals:
        return replace(settings, codebook_scale=1.0)
    return settings


def build_quantizer(settings: QuantizerSettings) -> Quantizer:
    """A quantizer by name."""
    return LATENTS[settings.name](**settings.options, channel_first=True)
