"""Images, label maps and grey levels for display: examples with their codes, and images that codes decode to."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from sqvae.modalities.images.codebook import decoded_alone, patch_at
from sqvae.modalities.images.tokenizer import ImageTokenizer
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

FULL = 0.5
"""The smallest difference between two values in [0, 1] that has full colour."""

BRIGHTNESS = DifferenceKey("darker", "brighter", f"{FULL:g}", "where black is 0 and white is 1")


def view_image(
    tokenizer: ImageTokenizer, example: Tensor, prior: "Generator | None" = None, *, codes: Tensor | None = None
) -> CodedExample:
    """Encode and decode an image, a label map or grey levels.

    Arguments:
        example: (C, H, W), as it is stored in a data set.
        prior: the prior of the model, for the cost of the codes.
        codes: (h, w), other codes to decode in place of the example's own.

    Of a model with several levels of codes, those of the finest are shown, and the cost is that of all.
    """
    medium = tokenizer.medium
    latents = tokenizer.latents(example.unsqueeze(0)) if codes is None else codes.unsqueeze(0).to(tokenizer.device)
    each = (latents,) if tokenizer.levels == 1 else latents
    with torch.inference_mode():
        x = medium.model_input(example.unsqueeze(0), tokenizer.device)
        made = tokenizer.model.decode(latents)
        comparison = medium.comparison()
        comparison.add(x, made)
        wrong = medium.errors(x, made)
        original, reconstruction = medium.shown(x)[0], medium.shown(made)[0]
    difference = signed_difference((reconstruction - original).mean(0), FULL) if wrong is None else to_bytes(wrong[0])
    costs = [cost_of_codes(own[0], codebook_size_of(tokenizer.model), prior) for own in each]
    bits, by = sum(cost for cost, _ in costs), costs[0][1]
    error = error_in_words(comparison.measures())
    return CodedExample(
        to_bytes(original),
        to_bytes(reconstruction),
        difference,
        each[-1][0].cpu(),
        bits,
        by,
        error,
        BRIGHTNESS if wrong is None else None,
        medium.classes_in(x, made),
    )


def decoded_image(tokenizer: ImageTokenizer, codes: Tensor) -> Tensor:  # (h, w) -> uint8 (3, H, W)
    """The image that a map of codes decodes to."""
    with torch.inference_mode():
        made = tokenizer.model.decode(codes.unsqueeze(0).to(tokenizer.device))
        return to_bytes(tokenizer.medium.shown(made)[0])


def code_images(tokenizer: ImageTokenizer, codes: Tensor) -> Tensor:  # (n,) -> uint8 (n, 3, P, P)
    """The image that each code decodes to by itself, with a margin: see :class:`CodeAtlas`."""
    with torch.inference_mode():
        return to_bytes(decoded_alone(tokenizer, codes))


def replacement_images(
    tokenizer: ImageTokenizer, codes: Tensor, position: int, others: Tensor
) -> Tensor:  # (h, w), (n,) -> uint8 (n, 3, P, P)
    """The image patches that a map would decode to if one position had each of the other codes. A patch has a margin of
    its own size on each side.

    Arguments:
        position: the index of the position in the flattened map.
        others: the codes to put there.
    """
    rows, columns = codes.shape
    changed = codes.repeat(len(others), 1, 1)
    changed[:, position // columns, position % columns] = others.to(codes)
    with torch.inference_mode():
        made = tokenizer.medium.shown(tokenizer.model.decode(changed.to(tokenizer.device)))
        return to_bytes(patch_at(made, made.shape[-2] // rows, divmod(position, columns)))
