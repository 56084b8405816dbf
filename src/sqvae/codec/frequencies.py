r"""Chances as integers that are the same on every machine.

A network's numbers differ in their last bits with the machine, the number of threads and the size of a batch, and a
decoder that sees other chances than the encoder decodes noise. So both round what the network says to a coarse grid,
and everything after that is arithmetic of integers:

.. math:: n_k = \min(\lfloor 16\,(\max_j \ell_j - \ell_k) \rceil,\ 255), \qquad
          c_k = \lfloor 2^{22} e^{-n_k / 16} \rceil, \quad c_{255} = 0

A grid of 1/16 nat costs about :math:`(1/16)^2 / 24`, a 6000th of a nat, a code. A number that lies next to the boundary
between two steps may still fall to either side. The encoder sees which those are (`MARGIN`), doesn't use that
position's chances, and lists it in the file: decoding is exact as long as the two sides' numbers differ by less.
"""

from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Integers = NDArray[np.int64]

TOTAL = 1 << 24
"""What the frequencies of all codes, and of a guard at either end, add up to."""

STEPS = 16
"""Steps of the grid in a nat."""

DEEPEST = 255
"""The step of all that is less likely than the likeliest by this many steps or more: 16 nats."""

SCALE = 1 << 22
"""The weight of the likeliest code."""

MARGIN = 2.0**-27
"""Nats from the boundary between two steps within which a number is not relied on.

Two evaluations in float64 may differ by 1e-9 in a logit, 2e-9 in a difference of two; they usually differ by 1e-13.
"""

MOST_CODES = 1 << 16
"""Codes in a codebook: so many weights, times what they are spread over, still fit 64 bits."""

_HEAVIEST = 1 << 38


def _weights() -> Integers:
    # Decimals are rounded by a standard, to the last digit, on every machine; a C library's exponentials are not.
    with localcontext(Context(prec=40, rounding=ROUND_HALF_EVEN)):
        weights = [int(((Decimal(-n) / STEPS).exp() * SCALE).to_integral_value()) for n in range(DEEPEST)]
    return np.array([*weights, 0], dtype=np.int64)


WEIGHTS = _weights()
"""(256,): the weight of each step, :math:`c_n`."""


def rounded(logits: Tensor) -> tuple[Tensor, Tensor]:  # (..., K) -> (..., K), (...)
    """The step of every logit, as uint8, and whether one of them is too close to a boundary to be relied on."""
    if logits.dtype != torch.float64:
        raise TypeError(f"logits to compress with must be float64, got {logits.dtype}: float32 has too few digits")
    depths = ((logits.amax(-1, keepdim=True) - logits) * STEPS).clamp_(max=DEEPEST)
    steps = (depths + 0.5).floor_()
    if bool(depths.isnan().any()):
        raise ValueError("the prior's logits hold NaN or infinity, and no code follows from them: train it again")
    distances = 0.5 - depths.sub_(steps).abs_()
    return steps.to(torch.uint8), (distances < MARGIN * STEPS).any(-1)


def counted(counts: Integers) -> Integers:  # (K,) -> (K,)
    """Weights of codes that were met so often: half a time more each, so that none is impossible."""
    excess = max(0, (2 * int(counts.sum()) + len(counts)).bit_length() - (_HEAVIEST.bit_length() - 1))
    return 2 * (counts >> excess) + 1


def edges(weights: Integers) -> Integers:  # (..., K) -> (..., K + 1)
    r"""Where each code's share of the `TOTAL` begins, and where the last one's ends.

    .. math:: F_k = 1 + k + \Bigl\lfloor (2^{24} - 2 - K)\, \sum_{j<k} c_j \Big/ \sum_j c_j \Bigr\rfloor

    Every code has at least 1, whatever its weight; 1 is kept free at either end, which no code has.
    """
    below = np.zeros((*weights.shape[:-1], weights.shape[-1] + 1), dtype=np.int64)
    np.cumsum(weights, axis=-1, out=below[..., 1:])
    return _edge(below, np.arange(below.shape[-1]), below[..., -1:], weights.shape[-1])


def edges_of(codes: Integers, weights: Integers) -> tuple[Integers, Integers]:  # (N,), (N, K) -> (N,), (N,)
    """Where the shares of these codes begin and end: what `edges` would say of them."""
    sums = weights.cumsum(-1)
    rows, size = np.arange(len(codes)), weights.shape[-1]
    until, total = sums[rows, codes], sums[:, -1]
    return _edge(until - weights[rows, codes], codes, total, size), _edge(until, codes + 1, total, size)


def _edge(below: Integers, index: Integers, total: Integers, size: int) -> Integers:
    return 1 + index + below * (TOTAL - 2 - size) // total
