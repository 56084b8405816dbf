"""Likelihoods: one interface, and one dictionary that lists them all."""

from collections.abc import Callable, Mapping

from sqvae.likelihoods.categorical import (
    CategoricalLikelihood,
    VonMisesFisherLikelihood,
    half_circle_directions,
    one_hot_directions,
)
from sqvae.likelihoods.contract import Fit, Likelihood
from sqvae.likelihoods.gaussian import GaussianLikelihood

LIKELIHOODS: Mapping[str, Callable[..., Likelihood]] = {
    "gaussian": GaussianLikelihood,
    "categorical": CategoricalLikelihood,
    "vmf": VonMisesFisherLikelihood,
}
"""All likelihoods by name."""

__all__ = [
    "LIKELIHOODS",
    "CategoricalLikelihood",
    "Fit",
    "GaussianLikelihood",
    "Likelihood",
    "VonMisesFisherLikelihood",
    "half_circle_directions",
    "one_hot_directions",
]
