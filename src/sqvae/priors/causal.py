"""Convolutions that look back only, in maps whose channels are the last axis.

A causal convolution is usually written as a full one whose later half is multiplied by 0. Here the input is shifted and
padded instead, and the kernel has the earlier half only: half of the arithmetic, and a kernel whose columns a draft can
use one by one. With the channels last, a convolution of one position is a matrix product, and so is a draft's step.
"""

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from sqvae.distributions.checks import check_share, check_size
from sqvae.distributions.processes import own_rows


class Window(nn.Module):
    r"""A convolution over a window that ends in a position's own row.

    .. math:: y_{ij} = b + \sum_{r=0}^{R-1} \sum_{s=-s_l}^{s_r} W_{rs}\, x_{i-r,\, j+ds}, \qquad x = 0 \text{ outside}

    Arguments:
        before, after: the numbers of channels of x and of y.
        rows: R.
        left, right: :math:`s_l` and :math:`s_r`.
        dilation: d.
    """

    def __init__(self, before: int, after: int, *, rows: int = 1, left: int, right: int = 0, dilation: int = 1) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(before, after, (rows, left + 1 + right), dilation=(1, dilation))
        self.rows = rows
        self.reach = left * dilation
        self.dilation = dilation
        self._sides = (self.reach, right * dilation)

    def forward(self, x: Tensor) -> Tensor:  # (batch, h, w, before) -> (batch, h, w, after)
        return self._convolve(x, self.rows - 1)

    def last_rows(self, x: Tensor) -> Tensor:  # (batch, R - 1 + h, w, before) -> (batch, h, w, after)
        """The same for the last h rows, where the R - 1 before them are known."""
        return self._convolve(x, 0)

    @property
    def bias(self) -> Tensor:  # -> (after,)
        """b."""
        return cast("Tensor", self.convolution.bias)

    def columns(self) -> list[Tensor]:  # each (before, after)
        """The kernel of a single row as matrices, from the farthest column to the position's own."""
        return [matrix.T.contiguous() for matrix in self.convolution.weight[:, :, 0].unbind(-1)]

    def _convolve(self, x: Tensor, top: int) -> Tensor:
        padded = pad(x, (0, 0, *self._sides, top, 0))
        convolved: Tensor = self.convolution(padded.permute(0, 3, 1, 2))
        return convolved.permute(0, 2, 3, 1)


def down(x: Tensor) -> Tensor:  # (batch, h, w, channels) -> (batch, h, w, channels)
    """Each row one further down, and 0 in the first."""
    return pad(x[:, :-1], (0, 0, 0, 0, 1, 0))


def right(x: Tensor) -> Tensor:  # (batch, h, w, channels) -> (batch, h, w, channels)
    """Each column one further to the right, and 0 in the first."""
    return pad(x[:, :, :-1], (0, 0, 1, 0))


class Dropout(nn.Module):
    r"""In training, each number is 0 with probability p, and :math:`1 / (1 - p)` times itself otherwise.

    Unlike torch's own, the processes that share a batch draw what one process would draw for all of it.

    Arguments:
        probability: p.
    """

    def __init__(self, probability: float) -> None:
        super().__init__()
        check_share(probability, "dropout")
        self.probability = probability

    def forward(self, x: Tensor) -> Tensor:  # (batch, ...) -> (batch, ...)
        if not self.training or not self.probability:
            return x
        draws = own_rows(lambda rows: torch.rand(rows, *x.shape[1:], device=x.device), x.shape[0])
        return x * (draws >= self.probability) / (1 - self.probability)

    def extra_repr(self) -> str:
        return f"{self.probability}"


def check_kernel(kernel: int) -> int:
    """Half of the width of a kernel: how far it reaches back."""
    check_size(kernel, "kernel", least=3)
    if kernel % 2 == 0:
        raise ValueError(f"kernel must be odd, so that it has a position in its middle; got {kernel}")
    return kernel // 2
