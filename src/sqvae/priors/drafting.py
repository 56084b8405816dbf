"""What drafts have in common that go through a map row by row: the rows and columns that they remember."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence

import torch
from torch import Tensor

from sqvae.priors.causal import Window
from sqvae.priors.contract import Draft, Prior


class RowDraft(Draft, ABC):
    """A draft that prepares a row when it begins, so that little is left to do for each of its positions.

    Arguments:
        prior: whose weights it uses.
        batch, shape: of the codes.
        known: (batch, h, w, channels) or (batch, 1, 1, channels): what the condition tells, if there is one.
    """

    def __init__(self, prior: Prior, batch: int, shape: Sequence[int], known: Tensor | None) -> None:
        super().__init__(batch, shape, prior.codebook_size, prior.embedding.weight.device)
        self._embedding = prior.embedding
        self._known = known
        self._width = shape[-1]
        self._nothing = prior.embedding.weight.new_zeros(batch, prior.channels)
        """(batch, channels): what stands outside of a map."""

    def _evaluate(self) -> Tensor:
        row, column = divmod(self.position, self._width)
        if column == 0:
            self._begin_row(row, _row_of(self._known, row))
        return self._at(column)

    def _code_before(self) -> Tensor:  # -> (batch, channels)
        """The code that was settled last, embedded; nothing, before the first."""
        if not self.position:
            return self._nothing
        embedded: Tensor = self._embedding(self._settled[:, self.position - 1])
        return embedded

    def _codes_above(self) -> Tensor:  # -> (batch, 1, w, channels)
        """The last row's worth of codes, embedded; nothing, before there is one."""
        if self.position < self._width:
            return self._nothing[:, None, None].expand(-1, 1, self._width, -1)
        embedded: Tensor = self._embedding(self._settled[:, self.position - self._width : self.position])
        return embedded[:, None]

    @abstractmethod
    def _begin_row(self, row: int, known: Tensor | None) -> None:
        """Prepare a row, whose condition is (batch, 1, w, channels) or (batch, 1, 1, channels)."""

    @abstractmethod
    def _at(self, column: int) -> Tensor:  # -> (batch, K)
        """The logits at the next position, which is in this column."""


class RowMemory:
    """The last rows that a window of several rows looks at.

    Arguments:
        window: it.
        nothing: (batch, channels): what stands above the first row.
        width: of a row.
    """

    def __init__(self, window: Window, nothing: Tensor, width: int) -> None:
        self._window = window
        self._rows = nothing[:, None, None].expand(-1, window.rows, width, -1)

    def add(self, row: Tensor) -> Tensor:  # (batch, 1, w, before) -> (batch, 1, w, after)
        """What the window gives for one row more."""
        self._rows = torch.cat((self._rows[:, 1:], row), 1)
        return self._window.last_rows(self._rows)


class ColumnMemory:
    """The last columns that a window of one row looks at.

    Arguments:
        window: it.
        nothing: (batch, channels): what stands to the left of a row.
    """

    def __init__(self, window: Window, nothing: Tensor) -> None:
        self._matrices = window.columns()
        self._bias = window.bias
        self._nothing = nothing
        self._length = window.reach + 1
        self._dilation = window.dilation

    def begin_row(self, told: Tensor | None, width: int) -> None:  # (batch, 1, w, after), or (batch, 1, 1, after)
        """Forget the columns. Each of the new row will add what it is told to what the window gives."""
        self._heard = by_column(told, self._bias, len(self._nothing), width)
        self._past = deque([self._nothing] * self._length, self._length)

    def add(self, column: int, x: Tensor) -> Tensor:  # (batch, before) -> (batch, after)
        """What the window gives for one column more."""
        self._past.append(x)
        features = self._heard[column]
        for number, matrix in enumerate(self._matrices):
            features = torch.addmm(features, self._past[number * self._dilation], matrix)
        return features


def by_column(told: Tensor | None, bias: Tensor, batch: int, width: int) -> Tensor:  # -> (w, batch, n)
    """What is added at each column of a row: a bias (n,), and what is told, (batch, 1, w, n) or (batch, 1, 1, n).

    What is the same for all columns, or for all examples, is stored once.
    """
    heard = bias[None, None] if told is None else (told[:, 0] + bias).transpose(0, 1).contiguous()
    return heard.expand(width, batch, -1)


def _row_of(known: Tensor | None, row: int) -> Tensor | None:
    """A condition that tells all positions the same has one row only."""
    return known if known is None or known.shape[1] == 1 else known[:, row : row + 1]
