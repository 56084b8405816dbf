"""Manipulated codes, which show how codes are arranged in the latent space."""

import torch
from torch import Tensor

from sqvae.quantizers.nearest import nearest
from sqvae.tokenizers.pretrained import Tokenizer

AT_ONCE = 2**22
"""The largest number of values in a matrix of distances, so that memory does not grow with the square of the
codebook size."""


def neighbour_table(tokenizer: Tokenizer, k: int) -> Tensor:  # -> (K,)
    """The index of the k-th nearest code for each code, not counting itself.

    Arguments:
        tokenizer: the model.
        k: the rank; 1 for the nearest.
    """
    with torch.inference_mode():
        codes = tokenizer.code_vectors.double()
        if not 1 <= k < len(codes):
            raise ValueError(f"a code has {len(codes) - 1} neighbours: k must be 1 ... {len(codes) - 1}, got {k}")
        found = []
        for rows in torch.arange(len(codes), device=codes.device).split(max(1, AT_ONCE // len(codes))):
            distances = torch.cdist(codes[rows], codes)
            distances[torch.arange(len(rows)), rows] = torch.inf
            found.append(distances.topk(k, largest=False, sorted=True).indices[:, -1])
        return torch.cat(found)


def neighbours(tokenizer: Tokenizer, codes: Tensor, k: int) -> Tensor:  # (batch, h, w) -> (batch, h, w)
    """The codes, each replaced by its k-th nearest code."""
    tokenizer.check_without_layers("neighbours take")
    return neighbour_table(tokenizer, k)[codes.long().to(tokenizer.device)]


def nearest_codes(tokenizer: Tokenizer, code: int, number: int) -> tuple[Tensor, Tensor]:  # -> (n,), (n,)
    """The codes nearest to a code, the nearest first, and their distances; fewer than `number` if there are fewer
    codes."""
    with torch.inference_mode():
        vectors = tokenizer.code_vectors.double()
        distances = (vectors - vectors[code]).norm(dim=1)
        distances[code] = torch.inf
        found = distances.topk(min(number, len(vectors) - 1), largest=False, sorted=True)
        return found.indices.cpu(), found.values.cpu()


def interpolated(
    tokenizer: Tokenizer, first: Tensor, second: Tensor, ratios: Tensor
) -> Tensor:  # (batch, C, H, W) twice, (batch,) -> (batch, h, w)
    r"""The codes nearest to interpolations between the encodings of two images.

    .. math:: c_i = \arg\min_k \lVert (1 - r)\, z_i + r\, z'_i - b_k \rVert

    Arguments:
        tokenizer: the model.
        first, second: images, as :meth:`Tokenizer.encode` takes them, whose encodings are z and z'.
        ratios: (batch,), the ratio r of each pair, from 0 for the first to 1 for the second.
    """
    tokenizer.check_one_level("images are interpolated between")
    if len(first) != len(second) or ratios.shape != (len(first),):
        raise ValueError(
            f"there must be as many first images as second images and ratios, got {len(first)}, {len(second)} and "
            f"ratios of shape {tuple(ratios.shape)}"
        )
    if ((ratios < 0) | (ratios > 1)).any():
        raise ValueError(f"ratios must lie between 0 and 1, got {ratios.min():g} ... {ratios.max():g}")
    tokenizer.check_without_layers("an interpolation takes")
    with torch.inference_mode():
        a, b = (tokenizer.encodings(pictures) for pictures in (first, second))
        between = torch.lerp(a, b, ratios.to(a)[:, None, None, None])
        return nearest(between.flatten(0, 2), tokenizer.code_vectors).view(between.shape[:3])
