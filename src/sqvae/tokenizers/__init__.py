"""Trained models with all that is needed to use them: how they are built, loaded, described and published."""

from sqvae.tokenizers.assembly import build_likelihood, build_quantizer, quantizer_settings
from sqvae.tokenizers.history import TAKEN_AS, kept, taken_as_of
from sqvae.tokenizers.loading import kind_of, load
from sqvae.tokenizers.pretrained import (
    Stored,
    Tokenizer,
    check_there,
    codebook_names_of,
    codebook_size_of,
    codebook_sizes_of,
    describe,
    experiment_from,
    quantizer_of,
    read,
    read_settings,
    read_trained,
    settings_from,
    with_weights,
)

__all__ = [
    "TAKEN_AS",
    "Stored",
    "Tokenizer",
    "build_likelihood",
    "build_quantizer",
    "check_there",
    "codebook_names_of",
    "codebook_size_of",
    "codebook_sizes_of",
    "describe",
    "experiment_from",
    "kept",
    "kind_of",
    "load",
    "quantizer_of",
    "quantizer_settings",
    "read",
    "read_settings",
    "read_trained",
    "settings_from",
    "taken_as_of",
    "with_weights",
]
