"""Quantizers: one interface, and one dictionary that lists them all."""

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import cast

from sqvae.quantizers.continuous import GaussianLatent
from sqvae.quantizers.contract import Quantized, Quantizer, Stage
from sqvae.quantizers.faults import faults_of
from sqvae.quantizers.gaussian import GaussianQuantizer
from sqvae.quantizers.levels import LevelQuantizers, QuantizedLevels, codebook_names
from sqvae.quantizers.residual import LayeredQuantizer, ResidualQuantizer, ResidualVectorQuantizer, all_layers
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
    "residual-1": partial(ResidualQuantizer, variance="shared"),
    "residual-3": partial(ResidualQuantizer, variance="per_position"),
    "residual-vq-ema": ResidualVectorQuantizer,
    "residual-vq-ema-reset": partial(ResidualVectorQuantizer, reset_every=20),
}
"""Every quantizer by name. All take ``codebook_size`` and ``dim``, and those with several codes for each position
``layers``. What else is to be known of one is asked of its class: see :func:`class_of`."""

LATENTS: Mapping[str, Callable[..., Quantizer]] = {**QUANTIZERS, "gaussian-latent": GaussianLatent}
"""Everything that can stand between an encoder and a decoder: the quantizers, and the continuous latent of a VAE."""


def class_of(name: str) -> type[Quantizer]:
    """The class of a quantizer or continuous latent by name, which says what it takes and what it does."""
    make = LATENTS[name]
    return cast("type[Quantizer]", make.func if isinstance(make, partial) else make)


def has_codes(name: str) -> bool:
    """Whether a latent by this name is discrete."""
    return name in QUANTIZERS


def has_layers(name: str) -> bool:
    """Whether a latent by this name has several codes for each position."""
    return issubclass(class_of(name), LayeredQuantizer)


def description_of(name: str) -> str:
    """The first line of its class's docstring, without the full stop."""
    return inspect.cleandoc(class_of(name).__doc__ or name).splitlines()[0].rstrip(".")


__all__ = [
    "LATENTS",
    "QUANTIZERS",
    "EMAVectorQuantizer",
    "GaussianLatent",
    "GaussianQuantizer",
    "LayeredQuantizer",
    "LevelQuantizers",
    "Quantized",
    "QuantizedLevels",
    "Quantizer",
    "ResidualQuantizer",
    "ResidualVectorQuantizer",
    "Stage",
    "VectorQuantizer",
    "VonMisesFisherQuantizer",
    "all_layers",
    "class_of",
    "codebook_names",
    "description_of",
    "faults_of",
    "has_codes",
    "has_layers",
]
