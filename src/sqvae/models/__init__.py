"""Models: an encoder, a quantizer, a decoder and a likelihood."""

from sqvae.models.autoencoder import SQVAE, VAE, Bound, LatentModel, LatentTerms, Objective
from sqvae.models.hierarchy import HierarchicalModel
from sqvae.models.speech import Speech, SpeechModel, padded

__all__ = [
    "SQVAE",
    "VAE",
    "Bound",
    "HierarchicalModel",
    "LatentModel",
    "LatentTerms",
    "Objective",
    "Speech",
    "SpeechModel",
    "padded",
]
