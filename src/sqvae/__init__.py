"""Discrete representations that use their whole codebook: SQ-VAE (Takida et al., ICML 2022).

>>> from sqvae import GaussianQuantizer
>>> quantizer = GaussianQuantizer(codebook_size=512, dim=64)
>>> z_q, codes, loss = quantizer(z, temperature=1.0)                # doctest: +SKIP

The public names below are imported when first used, so that importing the package alone stays instant.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqvae.codec import CodeFile, UnitFile, decode_file, encode_speech_to_file, encode_to_file
    from sqvae.config import Experiment
    from sqvae.data import ImageProcessor
    from sqvae.data.speech import SpeechProcessor
    from sqvae.likelihoods import (
        LIKELIHOODS,
        CategoricalLikelihood,
        Fit,
        GaussianLikelihood,
        Likelihood,
        VonMisesFisherLikelihood,
        half_circle_directions,
        one_hot_directions,
    )
    from sqvae.modalities.images.tokenizer import ImageTokenizer
    from sqvae.modalities.speech.tokenizer import SpeechTokenizer
    from sqvae.modalities.vectors.tokenizer import VectorTokenizer
    from sqvae.models import SQVAE, VAE, Bound, HierarchicalModel, LatentModel, Objective
    from sqvae.quantizers import (
        LATENTS,
        QUANTIZERS,
        EMAVectorQuantizer,
        GaussianLatent,
        GaussianQuantizer,
        Quantized,
        Quantizer,
        ResidualQuantizer,
        ResidualVectorQuantizer,
        Stage,
        VectorQuantizer,
        VonMisesFisherQuantizer,
        faults_of,
    )
    from sqvae.tokenizers import Tokenizer, load
    from sqvae.training import Annealing

__version__ = "0.1.0.dev0"

_HOMES = {
    "sqvae.quantizers": (
        "LATENTS",
        "QUANTIZERS",
        "EMAVectorQuantizer",
        "GaussianLatent",
        "GaussianQuantizer",
        "Quantized",
        "Quantizer",
        "ResidualQuantizer",
        "ResidualVectorQuantizer",
        "Stage",
        "VectorQuantizer",
        "VonMisesFisherQuantizer",
        "faults_of",
    ),
    "sqvae.likelihoods": (
        "LIKELIHOODS",
        "CategoricalLikelihood",
        "Fit",
        "GaussianLikelihood",
        "Likelihood",
        "VonMisesFisherLikelihood",
        "half_circle_directions",
        "one_hot_directions",
    ),
    "sqvae.training": ("Annealing",),
    "sqvae.models": ("SQVAE", "VAE", "Bound", "HierarchicalModel", "LatentModel", "Objective"),
    "sqvae.data": ("ImageProcessor",),
    "sqvae.data.speech": ("SpeechProcessor",),
    "sqvae.config": ("Experiment",),
    "sqvae.modalities.images.tokenizer": ("ImageTokenizer",),
    "sqvae.modalities.speech.tokenizer": ("SpeechTokenizer",),
    "sqvae.modalities.vectors.tokenizer": ("VectorTokenizer",),
    "sqvae.tokenizers": ("Tokenizer", "load"),
    "sqvae.codec": ("CodeFile", "UnitFile", "decode_file", "encode_speech_to_file", "encode_to_file"),
}

__all__ = [
    "LATENTS",
    "LIKELIHOODS",
    "QUANTIZERS",
    "SQVAE",
    "VAE",
    "Annealing",
    "Bound",
    "CategoricalLikelihood",
    "CodeFile",
    "EMAVectorQuantizer",
    "Experiment",
    "Fit",
    "GaussianLatent",
    "GaussianLikelihood",
    "GaussianQuantizer",
    "HierarchicalModel",
    "ImageProcessor",
    "ImageTokenizer",
    "LatentModel",
    "Likelihood",
    "Objective",
    "Quantized",
    "Quantizer",
    "ResidualQuantizer",
    "ResidualVectorQuantizer",
    "SpeechProcessor",
    "SpeechTokenizer",
    "Stage",
    "Tokenizer",
    "UnitFile",
    "VectorQuantizer",
    "VectorTokenizer",
    "VonMisesFisherLikelihood",
    "VonMisesFisherQuantizer",
    "decode_file",
    "encode_speech_to_file",
    "encode_to_file",
    "faults_of",
    "half_circle_directions",
    "load",
    "one_hot_directions",
]


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module 'sqvae' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
