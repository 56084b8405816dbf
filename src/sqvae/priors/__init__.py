"""Priors over the codes of a tokenizer: one interface, and one dictionary that lists them all."""

from collections.abc import Callable, Mapping

from sqvae.priors.contract import Condition, Draft, Prior, RecomputedDraft
from sqvae.priors.likelihood import CodeBatch, CodeCost, CodeLikelihood
from sqvae.priors.pixelcnn import PixelCNN
from sqvae.priors.pixelsnail import PixelSNAIL
from sqvae.priors.sampling import draw, sample, uniform_numbers

PRIORS: Mapping[str, Callable[..., Prior]] = {
    "pixelcnn": PixelCNN,
    "pixelsnail": PixelSNAIL,
}
"""All priors by name. Each takes ``codebook_size``, ``ndim`` (2 for maps, 1 for sequences), ``channels``,
``layers``, ``kernel``, ``classes``, ``context``, ``dropout`` and ``code_layers``."""

__all__ = [
    "PRIORS",
    "CodeBatch",
    "CodeCost",
    "CodeLikelihood",
    "Condition",
    "Draft",
    "PixelCNN",
    "PixelSNAIL",
    "Prior",
    "RecomputedDraft",
    "draw",
    "sample",
    "uniform_numbers",
]
