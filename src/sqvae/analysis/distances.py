"""The distances between a model's codes."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from sqvae.quantizers import Quantized
from sqvae.tokenizers import Tokenizer

COMPARED = 1024
"""The largest number of codes in a matrix of distances."""


AT_ONCE = 2**22
"""The largest number of values in a temporary tensor, so that memory does not grow with the number of codes."""


@dataclass(frozen=True)
class CodeDistances:
    """The distances between codes, as the quantizer compares them."""

    codes: Tensor
    """(n,): the codes that are compared, the most used first."""
    matrix: Tensor = field(repr=False)
    """(n, n): the distances between these codes."""
    nearest: Tensor = field(repr=False)
    """(n,): the distance of each code to the nearest of all other K - 1 codes; empty if there is only one code."""
    directions: bool
    """Whether directions are compared: the distance is then 1 - cosine."""
    scale: float | None
    """The scale of the quantization noise: its standard deviation, or one over its concentration. None if the
    quantizer is not stochastic, or if the noise depends on data that was not given."""


@torch.no_grad()
def code_distances(
    tokenizer: Tokenizer,
    *,
    counts: Tensor | None = None,
    quantized: Quantized | None = None,
    at_most: int = COMPARED,
) -> CodeDistances:
    """The distances between the codes of a model; with layers between those of the first.

    Arguments:
        tokenizer: the model.
        counts: (K,), the codebook usage, if it is known. If there are too many codes, the most used ones are compared.
        quantized: the quantizer's output for some data, needed if the noise of the quantization depends on the data:
            see :func:`quantized_pictures` and :func:`quantized_utterances`.
        at_most: the largest number of codes to compare.
    """
    size = tokenizer.codebook_size
    everything = torch.arange(size)
    order = everything if counts is None else counts.sort(descending=True, stable=True).indices
    vectors = tokenizer.code_vectors.double().cpu()
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
    centre = others.mean(0)  # distances do not change, and products lose less precision
    return torch.cdist(some - centre, others - centre)


def _blur(tokenizer: Tokenizer, quantized: Quantized | None) -> tuple[bool, float | None]:
    """Whether the quantizer compares directions, and the scale of its noise."""
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
