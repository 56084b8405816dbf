"""Quantizers: one interface, and one dictionary that lists them all."""

from collections.abc import Callable, Mapping
from functools import partial

from sqvae.quantizers.continuous import GaussianLatent
from sqvae.quantizers.contract import Quantized, Quantizer, Stage
from sqvae.quantizers.faults import faults_of
from sqvae.quantizers.gaussian import GaussianQuantizer
from sqvae.quantizers.vector import EMAVectorQuantizer, VectorQuantizer
from sqvae.quantizers.von_mises_fisher import VonMisesFisherQuantizer

QUANTIZERS: Mapping[str, Callable[..., Quantizer]] = {
    "gaussian-1": partial(GaussianQuantizer, variance="shared"),
    "gaussian-2": partial(GaussianQuantizer, variance="per_sample"),
    "gaussian-3": partial(GaussianQuantizer, variance="per_position"),
    "gaussian-4": partial(GaussianQuantizer, variance="per_dimension"),
    "gaussian-fixed": partial(GaussianQuantizer, variance="fixed"),
    "vmf": VonMisesFisherQuantizer,
    "vq": VectorQuantizer,
    "vq-ema": EMAVectorQuantizer,
    "vq-ema-reset": partial(EMAVectorQuantizer, reset_every=20),
    "gaussian-latent": GaussianLatent,
}
"""All quantizers by name. Each takes ``codebook_size`` and ``dim``, except the last, which has no codebook."""

__all__ = [
    "QUANTIZERS",
    "EMAVectorQuantizer",
    "GaussianLatent",
    "GaussianQuantizer",
    "Quantized",
    "Quantizer",
    "Stage",
    "VectorQuantizer",
    "VonMisesFisherQuantizer",
    "faults_of",
]
