"""Causal convolutions of maps whose channels are the last axis.

A causal convolution is usually a full one whose later half is masked by 0. Here the input is shifted and padded
instead, and the kernel has the earlier half only. This needs half of the arithmetic, and a draft can use the columns of
the kernel one by one. With the channels last, a convolution at one position is a matrix product, and so is a draft's
step.
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
        rows: the number of rows R.
        left, right: the number of columns on either side, :math:`s_l` and :math:`s_r`.
        dilation: the dilation d.
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
        """The convolution of the last h rows, if the R - 1 rows before them are given."""
        return self._convolve(x, 0)

    @property
    def bias(self) -> Tensor:  # -> (after,)
        """The bias b."""
        return cast("Tensor", self.convolution.bias)

    def columns(self) -> list[Tensor]:  # each (before, after)
        """The kernel of a single row as matrices, from the farthest column to the position's own."""
        return [matrix.T.contiguous() for matrix in self.convolution.weight[:, :, 0].unbind(-1)]

    def _convolve(self, x: Tensor, top: int) -> Tensor:
        padded = pad(x, (0, 0, *self._sides, top, 0))
        convolved: Tensor = self.convolution(padded.permute(0, 3, 1, 2))
        return convolved.permute(0, 2, 3, 1)


def down(x: Tensor) -> Tensor:  # (batch, h, w, channels) -> (batch, h, w, channels)
    """The map shifted down by one row, with 0 in the first row."""
    return pad(x[:, :-1], (0, 0, 0, 0, 1, 0))


def right(x: Tensor) -> Tensor:  # (batch, h, w, channels) -> (batch, h, w, channels)
    """The map shifted to the right by one column, with 0 in the first column."""
    return pad(x[:, :, :-1], (0, 0, 1, 0))


class Dropout(nn.Module):
    r"""Dropout: in training each value is 0 with probability p, and is multiplied by :math:`1 / (1 - p)` otherwise.

    Unlike torch's dropout, the processes that share a batch draw what one process would draw for the whole batch.

    Arguments:
        probability: the probability p.
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
    """Half of a kernel's width, after a check that it is odd."""
    check_size(kernel, "kernel", least=3)
    if kernel % 2 == 0:
        raise ValueError(f"kernel must be odd, so that it has a middle position; got {kernel}")
    return kernel // 2
