r"""Probabilities as integers that are the same on every machine.

The outputs of a network differ in their last bits between machines, numbers of threads and batch sizes, and a decoder
with other probabilities than the encoder decodes noise. So both round the network's outputs to a coarse grid, and
everything after that is integer arithmetic:

.. math:: n_k = \min(\lfloor 16\,(\max_j \ell_j - \ell_k) \rceil,\ 255), \qquad
          c_k = \lfloor 2^{22} e^{-n_k / 16} \rceil, \quad c_{255} = 0

A grid of 1/16 nat costs about :math:`(1/16)^2 / 24`, a 6000th of a nat, per code. A number next to the boundary between
two steps may still be rounded to either side. The encoder detects these (`MARGIN`), doesn't use the probabilities of
that position, and lists it in the file: decoding is exact as long as the numbers of both sides differ by less.
"""

from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Integers = NDArray[np.int64]

TOTAL = 1 << 24
"""The sum of the frequencies of all codes, and of a guard at either end."""

STEPS = 16
"""Number of steps of the grid per nat."""

DEEPEST = 255
"""The step of all codes that are at least this many steps (16 nats) less probable than the most probable code."""

SCALE = 1 << 22
"""The weight of the most probable code."""

MARGIN = 2.0**-27
"""Distance in nats from the boundary between two steps within which a number is not used.

Two evaluations in float64 may differ by 1e-9 in a logit, 2e-9 in a difference of two; they usually differ by 1e-13.
"""

MOST_CODES = 1 << 16
"""Maximum number of codes in a codebook: the products of weights and frequencies then fit 64 bits."""

_HEAVIEST = 1 << 38


def _weights() -> Integers:
    # Decimal arithmetic is standardised to the last digit on every machine; the exponential of a C library is not.
    with localcontext(Context(prec=40, rounding=ROUND_HALF_EVEN)):
        weights = [int(((Decimal(-n) / STEPS).exp() * SCALE).to_integral_value()) for n in range(DEEPEST)]
    return np.array([*weights, 0], dtype=np.int64)


WEIGHTS = _weights()
"""(256,): the weight of each step, :math:`c_n`."""


def rounded(logits: Tensor) -> tuple[Tensor, Tensor]:  # (..., K) -> (..., K), (...)
    """The step of every logit, as uint8, and whether one of them is too close to a boundary."""
    if logits.dtype != torch.float64:
        raise TypeError(f"logits to compress with must be float64, got {logits.dtype}: float32 has too few digits")
    depths = ((logits.amax(-1, keepdim=True) - logits) * STEPS).clamp_(max=DEEPEST)
    steps = (depths + 0.5).floor_()
    if bool(depths.isnan().any()):
        raise ValueError("the prior's logits contain NaN or infinity, so codes have no probabilities: train it again")
    distances = 0.5 - depths.sub_(steps).abs_()
    return steps.to(torch.uint8), (distances < MARGIN * STEPS).any(-1)


def counted(counts: Integers) -> Integers:  # (K,) -> (K,)
    """Weights for codes with these counts: the count plus one half, so that no code is impossible."""
    excess = max(0, (2 * int(counts.sum()) + len(counts)).bit_length() - (_HEAVIEST.bit_length() - 1))
    return 2 * (counts >> excess) + 1


def edges(weights: Integers) -> Integers:  # (..., K) -> (..., K + 1)
    r"""The start of each code's interval within 0 ... `TOTAL`, and the end of the last one.

    .. math:: F_k = 1 + k + \Bigl\lfloor (2^{24} - 2 - K)\, \sum_{j<k} c_j \Big/ \sum_j c_j \Bigr\rfloor

    Every code has at least 1, whatever its weight; 1 is reserved at either end.
    """
    below = np.zeros((*weights.shape[:-1], weights.shape[-1] + 1), dtype=np.int64)
    np.cumsum(weights, axis=-1, out=below[..., 1:])
    return _edge(below, np.arange(below.shape[-1]), below[..., -1:], weights.shape[-1])


def edges_of(codes: Integers, weights: Integers) -> tuple[Integers, Integers]:  # (N,), (N, K) -> (N,), (N,)
    """The start and end of the intervals of these codes, equal to those of `edges`."""
    sums = weights.cumsum(-1)
    rows, size = np.arange(len(codes)), weights.shape[-1]
    until, total = sums[rows, codes], sums[:, -1]
    return _edge(until - weights[rows, codes], codes, total, size), _edge(until, codes + 1, total, size)


def _edge(below: Integers, index: Integers, total: Integers, size: int) -> Integers:
    return 1 + index + below * (TOTAL - 2 - size) // total
