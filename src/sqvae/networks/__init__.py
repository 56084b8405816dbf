"""Encoders and decoders."""

from sqvae.networks.convolutional import conv_decoder, conv_encoder, initialise

__all__ = ["conv_decoder", "conv_encoder", "initialise"]
