"""Encoders and decoders."""

from sqvae.networks.convolutional import conv_decoder, conv_encoder, from_vector, initialise, to_vector
from sqvae.networks.hierarchical import LevelBlock, LevelDecoder, LevelEncoder, LevelSum
from sqvae.networks.normalisation import BatchNorm2d, without_batch_norm
from sqvae.networks.speech import Jitter, SpeechDecoder, SpeechEncoder

__all__ = [
    "BatchNorm2d",
    "Jitter",
    "LevelBlock",
    "LevelDecoder",
    "LevelEncoder",
    "LevelSum",
    "SpeechDecoder",
    "SpeechEncoder",
    "conv_decoder",
    "conv_encoder",
    "from_vector",
    "initialise",
    "to_vector",
    "without_batch_norm",
]
