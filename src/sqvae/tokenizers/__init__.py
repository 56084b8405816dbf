"""Trained models with all that is needed to use them: how they are built, loaded, described and published."""

from sqvae.tokenizers.assembly import (
    build_model,
    build_speech_model,
    check_divisible,
    features_of,
    quantizer_settings,
    stride_of,
)
from sqvae.tokenizers.history import TAKEN_AS, kept, taken_as_of
from sqvae.tokenizers.pretrained import (
    Pretrained,
    check_there,
    codebook_size_of,
    describe,
    experiment_from,
    read,
    read_settings,
    read_trained,
    settings_from,
    with_weights,
)

__all__ = [
    "TAKEN_AS",
    "Pretrained",
    "build_model",
    "build_speech_model",
    "check_divisible",
    "check_there",
    "codebook_size_of",
    "describe",
    "experiment_from",
    "features_of",
    "kept",
    "quantizer_settings",
    "read",
    "read_settings",
    "read_trained",
    "settings_from",
    "stride_of",
    "taken_as_of",
    "with_weights",
]
