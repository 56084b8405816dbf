"""Vectors for display, as grids of grey cells: examples with their codes, and vectors that codes decode to."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from sqvae.modalities.vectors.medium import HALF
from sqvae.modalities.vectors.tokenizer import VectorTokenizer
from sqvae.modalities.views import (
    CodedExample,
    DifferenceKey,
    cost_of_codes,
    error_in_words,
    signed_difference,
    to_bytes,
)
from sqvae.tokenizers import codebook_size_of

if TYPE_CHECKING:
    from sqvae.runs import Generator

VALUES = DifferenceKey("smaller", "larger", f"{HALF:g} standard deviations", "of the values in the training set")


def view_vector(
    tokenizer: VectorTokenizer, vector: Tensor, prior: "Generator | None" = None, *, codes: Tensor | None = None
) -> CodedExample:
    """Encode and decode a vector.

    Arguments:
        vector: (values,).
        prior: the prior of the model, for the cost of the codes.
        codes: (codes,), other codes to decode in place of the vector's own.
    """
    medium = tokenizer.medium
    with torch.inference_mode():
        x = medium.model_input(vector.unsqueeze(0), tokenizer.device)
        ids = tokenizer.model.encode(x) if codes is None else codes.unsqueeze(0).to(tokenizer.device)
        made = tokenizer.model.decode(ids)
        comparison = medium.comparison()
        comparison.add(x, made)
        original, reconstruction = medium.shown(x)[0], medium.shown(made)[0]
    bits, by = cost_of_codes(ids[0], codebook_size_of(tokenizer.model), prior)
    return CodedExample(
        to_bytes(original),
        to_bytes(reconstruction),
        signed_difference((reconstruction - original)[0], 0.5),
        ids[0].cpu(),
        bits,
        by,
        error_in_words(comparison.measures()),
        VALUES,
    )


def decoded_image(tokenizer: VectorTokenizer, codes: Tensor) -> Tensor:  # (codes,) -> uint8 (3, H, W)
    """The vector that codes decode to."""
    return to_bytes(tokenizer.medium.shown(tokenizer.decode(codes))[0])


def code_images(tokenizer: VectorTokenizer, codes: Tensor) -> Tensor:  # (n,) -> uint8 (n, 3, H, W)
    """The vector that each code decodes to if it is at every position of an id."""
    ids = codes.view(-1, 1).expand(-1, *tokenizer.map_shape)
    return to_bytes(tokenizer.medium.shown(tokenizer.decode(tokenizer.from_coarsest(ids))))
