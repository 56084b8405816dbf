"""A vector seen through its codes: as a grid of grey fields."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from sqvae.modalities.vectors.medium import HALF
from sqvae.modalities.vectors.tokenizer import VectorTokenizer
from sqvae.modalities.views import DifferenceKey, Seen, cost_of_codes, error_in_words, signed_difference, to_bytes
from sqvae.tokenizers import codebook_size_of

if TYPE_CHECKING:
    from sqvae.runs import Generator

VALUES = DifferenceKey("smaller", "larger", f"{HALF:g} standard deviations", "of the values in the training set")


def see(
    tokenizer: VectorTokenizer, vector: Tensor, prior: "Generator | None" = None, *, codes: Tensor | None = None
) -> Seen:
    """One vector through its codes.

    Arguments:
        vector: (values,).
        prior: the prior of the model, which says what the codes cost.
        codes: (codes,), others than its own, to see what they would make of it.
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
    return Seen(
        to_bytes(original),
        to_bytes(reconstruction),
        signed_difference((reconstruction - original)[0], 0.5),
        ids[0].cpu(),
        bits,
        by,
        error_in_words(comparison.measures()),
        VALUES,
    )


def see_codes(tokenizer: VectorTokenizer, codes: Tensor) -> Tensor:  # (codes,) -> uint8 (3, H, W)
    """What the codes of one vector decode to."""
    return to_bytes(tokenizer.medium.shown(tokenizer.decode(codes))[0])


def drawn_alone(tokenizer: VectorTokenizer, codes: Tensor) -> Tensor:  # (n,) -> uint8 (n, 3, H, W)
    """What each code decodes to if it stands at every place of a vector's id."""
    ids = codes.view(-1, 1).expand(-1, *tokenizer.map_shape)
    return to_bytes(tokenizer.medium.shown(tokenizer.decode(ids)))
