"""Drafts that sample a map row by row, and the caches of rows and columns that they use."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence

import torch
from torch import Tensor

from sqvae.networks.modes import evaluating
from sqvae.priors.causal import Window
from sqvae.priors.contract import Draft, Prior


class RowDraft(Draft, ABC):
    """A draft that computes as much as possible once for a row, and little for each position.

    Arguments:
        prior: the prior, whose weights are used.
        batch, shape: the number of examples and the shape of each.
        known: (batch, h, w, channels) or (batch, 1, 1, channels): the features of the condition, if there is one.
    """

    def __init__(self, prior: Prior, batch: int, shape: Sequence[int], known: Tensor | None) -> None:
        super().__init__(prior, batch, shape)
        self._known = known
        self._width = shape[prior.ndim - 1]
        self._by_position = self._settled.view(batch, self.positions, *prior.layer_axis)
        self._features = prior.embedding.weight.new_empty(0)
        self._nothing = prior.embedding.weight.new_zeros(batch, prior.channels)
        """(batch, channels): the padding outside of a map."""

    def _evaluate(self) -> Tensor:
        layer = self.step % self.layers
        if not layer:
            self._features = self._at_position()
        layer_head = self.prior.layer_head
        if layer_head is None:
            return self._features
        with evaluating(layer_head):
            return layer_head.next_logits(self._features, self.prior.embed(self._by_position[:, self.position, :layer]))

    def _at_position(self) -> Tensor:  # -> (batch, K), or (batch, channels)
        row, column = divmod(self.position, self._width)
        if column == 0:
            self._begin_row(row, _row_of(self._known, row))
        return self._at(column)

    def _code_before(self) -> Tensor:  # -> (batch, channels)
        """The embedding of the last position; padding before the first position."""
        return self._embedded(self.position - 1, self.position)[:, 0] if self.position else self._nothing

    def _codes_above(self) -> Tensor:  # -> (batch, 1, w, channels)
        """The embeddings of the last w positions; padding in the first row."""
        if self.position < self._width:
            return self._nothing[:, None, None].expand(-1, 1, self._width, -1)
        return self._embedded(self.position - self._width, self.position)[:, None]

    def _embedded(self, start: int, end: int) -> Tensor:  # -> (batch, end - start, channels)
        """The embeddings of some positions: with layers, the sums of those of their codes."""
        embedded = self.prior.embed(self._by_position[:, start:end])
        return embedded if self.prior.layer_head is None else embedded.sum(-2)

    @abstractmethod
    def _begin_row(self, row: int, known: Tensor | None) -> None:
        """Compute the parts that a row shares. Its condition is (batch, 1, w, channels) or (batch, 1, 1, channels)."""

    @abstractmethod
    def _at(self, column: int) -> Tensor:  # -> (batch, K), or (batch, channels)
        """What the prior's head gives at the next position, which is in this column: logits, or with layers
        features."""


class RowMemory:
    """A cache of the last rows that a window of several rows covers.

    Arguments:
        window: the window.
        nothing: (batch, channels): the padding above the first row.
        width: the length of a row.
    """

    def __init__(self, window: Window, nothing: Tensor, width: int) -> None:
        self._window = window
        self._rows = nothing[:, None, None].expand(-1, window.rows, width, -1)

    def add(self, row: Tensor) -> Tensor:  # (batch, 1, w, before) -> (batch, 1, w, after)
        """Add a row, and return the window's output for it."""
        self._rows = torch.cat((self._rows[:, 1:], row), 1)
        return self._window.last_rows(self._rows)


class ColumnMemory:
    """A cache of the last columns that a window of one row covers.

    Arguments:
        window: the window.
        nothing: (batch, channels): the padding to the left of a row.
    """

    def __init__(self, window: Window, nothing: Tensor) -> None:
        self._matrices = window.columns()
        self._bias = window.bias
        self._nothing = nothing
        self._length = window.reach + 1
        self._dilation = window.dilation

    def begin_row(self, told: Tensor | None, width: int) -> None:  # (batch, 1, w, after), or (batch, 1, 1, after)
        """Clear the cache for a new row. Its condition `told` is added to the window's output in each column."""
        self._heard = by_column(told, self._bias, len(self._nothing), width)
        self._past = deque([self._nothing] * self._length, self._length)

    def add(self, column: int, x: Tensor) -> Tensor:  # (batch, before) -> (batch, after)
        """Add a column, and return the window's output for it."""
        self._past.append(x)
        features = self._heard[column]
        for number, matrix in enumerate(self._matrices):
            features = torch.addmm(features, self._past[number * self._dilation], matrix)
        return features


def by_column(told: Tensor | None, bias: Tensor, batch: int, width: int) -> Tensor:  # -> (w, batch, n)
    """The sum to add at each column of a row: a bias (n,), and the condition, (batch, 1, w, n) or (batch, 1, 1, n).

    Values that are the same for all columns, or for all examples, are stored once.
    """
    heard = bias[None, None] if told is None else (told[:, 0] + bias).transpose(0, 1).contiguous()
    return heard.expand(width, batch, -1)


def _row_of(known: Tensor | None, row: int) -> Tensor | None:
    """A row of the condition. A condition that is the same at all positions has a single row."""
    return known if known is None or known.shape[1] == 1 else known[:, row : row + 1]
