"""An image, a label map or a map of grey levels, seen through its codes."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from sqvae.modalities.images.codebook import decoded_alone, patch_at
from sqvae.modalities.images.tokenizer import ImageTokenizer
from sqvae.modalities.views import DifferenceKey, Seen, cost_of_codes, error_in_words, signed_difference, to_bytes
from sqvae.tokenizers import codebook_size_of

if TYPE_CHECKING:
    from sqvae.runs import Generator

FULL = 0.5
"""The difference between two values in [0, 1] that is shown in full colour."""


BRIGHTNESS = DifferenceKey("darker", "brighter", f"{FULL:g}", "where black is 0 and white is 1")


def see(
    tokenizer: ImageTokenizer, example: Tensor, prior: "Generator | None" = None, *, codes: Tensor | None = None
) -> Seen:
    """One picture, label map or picture of grey levels through its codes.

    Arguments:
        example: (C, H, W), as data is stored.
        prior: of the model, to tell what the codes cost.
        codes: (h, w), others than its own, to see what they would make of it.
    """
    medium = tokenizer.medium
    codes = tokenizer.latents(example.unsqueeze(0)) if codes is None else codes.unsqueeze(0).to(tokenizer.device)
    with torch.inference_mode():
        x = medium.model_input(example.unsqueeze(0), tokenizer.device)
        made = tokenizer.model.decode(codes)
        comparison = medium.comparison()
        comparison.add(x, made)
        wrong = medium.errors(x, made)
        original, reconstruction = medium.shown(x)[0], medium.shown(made)[0]
    difference = signed_difference((reconstruction - original).mean(0), FULL) if wrong is None else to_bytes(wrong[0])
    bits, by = cost_of_codes(codes[0], codebook_size_of(tokenizer.model), prior)
    error = error_in_words(comparison.measures())
    return Seen(
        to_bytes(original),
        to_bytes(reconstruction),
        difference,
        codes[0].cpu(),
        bits,
        by,
        error,
        BRIGHTNESS if wrong is None else None,
        medium.classes_in(x, made),
    )


def see_codes(tokenizer: ImageTokenizer, codes: Tensor) -> Tensor:  # (h, w) -> uint8 (3, H, W)
    """What a map of codes decodes to, to look at."""
    with torch.inference_mode():
        made = tokenizer.model.decode(codes.unsqueeze(0).to(tokenizer.device))
        return to_bytes(tokenizer.medium.shown(made)[0])


def drawn_alone(tokenizer: ImageTokenizer, codes: Tensor) -> Tensor:  # (n,) -> uint8 (n, 3, P, P)
    """What the decoder draws where a code stands alone, with what lies around it: see :class:`CodeAtlas`."""
    with torch.inference_mode():
        return to_bytes(decoded_alone(tokenizer, codes))


def drawn_at(
    tokenizer: ImageTokenizer, codes: Tensor, place: int, others: Tensor
) -> Tensor:  # (h, w), (n,) -> uint8 (n, 3, P, P)
    """What each of some codes would draw at a place of a map, with as much again on each side.

    Arguments:
        place: counted row by row.
        others: the codes that are tried there.
    """
    rows, columns = codes.shape
    tried = codes.repeat(len(others), 1, 1)
    tried[:, place // columns, place % columns] = others.to(codes)
    with torch.inference_mode():
        made = tokenizer.medium.shown(tokenizer.model.decode(tried.to(tokenizer.device)))
        return to_bytes(patch_at(made, made.shape[-2] // rows, divmod(place, columns)))
