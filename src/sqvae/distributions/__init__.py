"""Probability distributions, independent of any network: samples, entropies, normalisers."""

from sqvae.distributions import von_mises_fisher
from sqvae.distributions.assignment import Assignment, assign
from sqvae.distributions.entropy import entropy, layer_perplexities, perplexity
from sqvae.distributions.gumbel import gumbel_softmax, sample_categorical

__all__ = [
    "Assignment",
    "assign",
    "entropy",
    "gumbel_softmax",
    "layer_perplexities",
    "perplexity",
    "sample_categorical",
    "von_mises_fisher",
]
