"""Gated residual layers."""

from collections import deque

import torch
from torch import Tensor, nn
from torch.nn.functional import elu

from sqvae.priors.causal import Window, down, right
from sqvae.priors.drafting import ColumnMemory, RowMemory, by_column
from sqvae.priors.gating import GatedUpdate, add_gated


class UpdateMemory:
    """The cache of an update in a draft: the condition's part at each column of the current row."""

    def __init__(self, update: GatedUpdate) -> None:
        self._update = update
        self._matrix = update.mix.weight.T

    def begin_row(self, batch: int, width: int, known: Tensor | None) -> None:
        self._heard = by_column(self._update.told(known), self._update.mix.bias, batch, width)

    def at(self, column: int, x: Tensor, f: Tensor) -> Tensor:  # (batch, channels) each
        return add_gated(x, torch.addmm(self._heard[column], elu(f), self._matrix))


class Neighbours(nn.Module):
    """A convolution over near, earlier positions: the rows above on both sides, and the own row to the left.

    Positions above, to the right of the window's corner, stay out of sight for any number of such layers, so they need
    attention in addition.

    Arguments:
        channels: the number of channels of the input and the output.
        reach: the number of positions that it sees upwards, to the left and, above, to the right.
        rows: whether there are rows above.
        own: whether it sees the position itself, too.
    """

    def __init__(self, channels: int, *, reach: int, rows: bool, own: bool = True) -> None:
        super().__init__()
        self.own = own
        self.beside = Window(channels, channels, left=reach if own else reach - 1)
        self.above = Window(channels, channels, rows=reach, left=reach, right=reach) if rows else None

    def forward(self, x: Tensor) -> Tensor:  # (batch, h, w, channels) -> (batch, h, w, channels)
        features: Tensor = self.beside(x if self.own else right(x))
        return features if self.above is None else features + self.above(down(x))


class NeighboursMemory:
    """The caches of such a convolution in a draft.

    Arguments:
        neighbours: the convolution.
        nothing: (batch, channels): the padding outside of a map.
        width: the width of the map.
    """

    def __init__(self, neighbours: Neighbours, nothing: Tensor, width: int) -> None:
        self._width = width
        self._rows = None if neighbours.above is None else RowMemory(neighbours.above, nothing, width)
        self._columns = ColumnMemory(neighbours.beside, nothing)

    def begin_row(self, above: Tensor) -> None:  # (batch, 1, w, channels)
        """Add the row above, if there are rows, and begin the next row."""
        self._columns.begin_row(None if self._rows is None else self._rows.add(above), self._width)

    def at(self, column: int, x: Tensor) -> Tensor:  # (batch, channels) -> (batch, channels)
        """The convolution at one position."""
        return self._columns.add(column, x)


class ConvolutionLayer(nn.Module):
    r"""A gated update with a convolution over a position's neighbours: :math:`f = W * \mathrm{elu}(x)`.

    Arguments:
        channels: the number of channels of x and f.
        reach, rows: see :class:`Neighbours`.
        conditional, dropout: see :class:`GatedUpdate`.
    """

    def __init__(self, channels: int, *, reach: int, rows: bool, conditional: bool, dropout: float) -> None:
        super().__init__()
        self.neighbours = Neighbours(channels, reach=reach, rows=rows)
        self.update = GatedUpdate(channels, conditional=conditional, dropout=dropout)

    def forward(self, x: Tensor, known: Tensor | None) -> Tensor:  # (batch, h, w, channels) -> (batch, h, w, channels)
        updated: Tensor = self.update(x, self.neighbours(elu(x)), known)
        return updated


class ConvolutionMemory:
    """The caches of such a layer in a draft."""

    def __init__(self, layer: ConvolutionLayer, nothing: Tensor, width: int) -> None:
        self._neighbours = NeighboursMemory(layer.neighbours, nothing, width)
        self._update = UpdateMemory(layer.update)
        self._batch, self._width = len(nothing), width
        kept = 1 if layer.neighbours.above is None else width  # a sequence has no row below that would need more
        self._row = deque([nothing] * kept, kept)

    def begin_row(self, known: Tensor | None) -> None:
        self._neighbours.begin_row(torch.stack(list(self._row), 1)[:, None])
        self._update.begin_row(self._batch, self._width, known)

    def at(self, column: int, x: Tensor) -> Tensor:  # (batch, channels) -> (batch, channels)
        active = elu(x)
        self._row.append(active)
        return self._update.at(column, x, self._neighbours.at(column, active))
