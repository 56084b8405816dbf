"""How far the codes of a model are from each other."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from sqvae.quantizers import Quantized
from sqvae.tokenizers import Tokenizer

COMPARED = 1024
"""How many codes a matrix of distances has at most."""


AT_ONCE = 2**22
"""Numbers in a temporary tensor, so that memory does not grow with codes."""


@dataclass(frozen=True)
class CodeDistances:
    """How far codes are from each other, as the quantizer sees them."""

    codes: Tensor
    """(n,): the codes that are compared, the most used first."""
    matrix: Tensor = field(repr=False)
    """(n, n): the distances between them."""
    nearest: Tensor = field(repr=False)
    """(n,): of each to the nearest of all K codes but itself; empty where it is the only one."""
    directions: bool
    """Whether directions are compared, by 1 - cosine."""
    scale: float | None
    """The distance that quantization blurs: the standard deviation of its noise, or one over its concentration. None
    where quantization is not stochastic, or needs pictures to tell."""


@torch.no_grad()
def code_distances(
    tokenizer: Tokenizer,
    *,
    counts: Tensor | None = None,
    quantized: Quantized | None = None,
    at_most: int = COMPARED,
) -> CodeDistances:
    """Compare codes with each other.

    Arguments:
        counts: (K,), how often each was used, if that is known: where there are too many codes, the most used count.
        quantized: what the quantizer makes of some data, by which the noise of the quantization is told where it
            depends on it: see :func:`quantized_pictures` and :func:`quantized_utterances`.
        at_most: how many codes to compare.
    """
    size, quantizer = tokenizer.codebook_size, tokenizer.model.quantizer
    everything = torch.arange(size)
    order = everything if counts is None else counts.sort(descending=True, stable=True).indices
    vectors = quantizer.decode(everything.to(tokenizer.device), channel_first=False).double().cpu()
    directions, scale = _blur(tokenizer, quantized)
    chosen = order[:at_most]
    nearest = torch.empty(len(chosen) if size > 1 else 0, dtype=torch.float64)
    for some in torch.arange(len(nearest)).split(max(1, AT_ONCE // size)):
        distances = _distances(vectors[chosen[some]], vectors, directions)
        distances[torch.arange(len(some)), chosen[some]] = torch.inf
        nearest[some] = distances.amin(-1)
    return CodeDistances(chosen, _distances(vectors[chosen], vectors[chosen], directions), nearest, directions, scale)


def _distances(some: Tensor, others: Tensor, directions: bool) -> Tensor:  # (n, d), (m, d) -> (n, m)
    if directions:
        return (1 - some @ others.T).clamp_min(0)
    centre = others.mean(0)  # distances stay, and products lose fewer digits
    return torch.cdist(some - centre, others - centre)


def _blur(tokenizer: Tokenizer, quantized: Quantized | None) -> tuple[bool, float | None]:
    """Whether the quantizer compares directions, and the distance that its noise has."""
    quantizer = tokenizer.model.quantizer
    if quantized is None:
        if quantizer.needs_log_variance:
            return False, None
        nothing = torch.zeros(1, quantizer.dim, 1, device=tokenizer.device)
        quantized = quantizer(nothing, channel_first=True)
    assert quantized is not None
    if quantized.concentration is not None:
        return True, 1 / float(quantized.concentration)
    return False, None if quantized.variance is None else float(quantized.variance.mean().sqrt())
