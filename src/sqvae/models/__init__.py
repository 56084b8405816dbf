"""Models: an encoder, a quantizer, a decoder and a likelihood."""

from sqvae.models.autoencoder import SQVAE, VAE, Bound, LatentModel, LatentTerms, Objective

__all__ = ["SQVAE", "VAE", "Bound", "LatentModel", "LatentTerms", "Objective"]
