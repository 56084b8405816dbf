"""Gated PixelCNN (van den Oord et al., 2016), for maps and for sequences."""

from collections.abc import Iterable, Sequence
from typing import cast

import torch
from torch import Tensor, nn

from sqvae.distributions.checks import check_size
from sqvae.priors.causal import Dropout, Window, check_kernel, down, right
from sqvae.priors.contract import Draft, Prior
from sqvae.priors.drafting import ColumnMemory, RowDraft, RowMemory

DILATIONS = (1, 2, 4, 8, 16, 32)
"""The default dilations of a sequence's layers, in turn."""


def gate(features: Tensor) -> Tensor:  # (..., 2 channels) -> (..., channels)
    """The gated activation: the tanh of the first half, times the sigmoid of the second."""
    what, how_much = features.chunk(2, -1)
    return what.tanh() * how_much.sigmoid()


class GatedLayer(nn.Module):
    r"""One layer of both stacks.

    .. math::
        v' &= W_v * v + V_v y, & v &\leftarrow \tanh(v'_1) \odot \sigma(v'_2) \\ h' &= W_h * h + U v' + V_h y, & (h, s)
        &\leftarrow (h, s) + W_o \left( \tanh(h'_1) \odot \sigma(h'_2) \right)

    The vertical stack v sees the rows above a position. The horizontal stack h sees its own row to the left and takes
    the vertical stack as an input, so there is no blind spot. h is the input of the next layer, and s is summed over
    the layers for the output. y is the features of the condition. A sequence has no rows above, and no v.

    Arguments:
        channels: of v, of h and of s.
        reach: how far the convolutions look up, to the left and, above, to the right.
        dilation: of the horizontal convolution.
        rows: whether there are rows above.
        conditional: whether there is a condition.
        dropout: in training, the share of what the horizontal gates let through that is dropped.
    """

    def __init__(
        self, channels: int, *, reach: int, dilation: int, rows: bool, conditional: bool, dropout: float
    ) -> None:
        super().__init__()
        self.channels = channels
        self.horizontal = Window(channels, 2 * channels, left=reach, dilation=dilation)
        self.out = nn.Linear(channels, 2 * channels)
        self.vertical: Window | None = None
        self.link: nn.Linear | None = None
        if rows:
            self.vertical = Window(channels, 2 * channels, rows=reach + 1, left=reach, right=reach)
            self.link = nn.Linear(2 * channels, 2 * channels, bias=False)
        heard = (4 if rows else 2) * channels
        self.condition = nn.Linear(channels, heard, bias=False) if conditional else None
        self.dropout = Dropout(dropout)

    def forward(
        self, v: Tensor, stream: Tensor, known: Tensor | None
    ) -> tuple[Tensor, Tensor]:  # (batch, h, w, channels), (batch, h, w, 2 channels): the latter h and s
        v, told = self.descend(v if self.vertical is None else self.vertical(v), known)
        features = self.horizontal(stream[..., : self.channels])
        stream = stream + self.out(self.dropout(gate(features if told is None else features + told)))
        return v, stream

    def descend(self, v: Tensor, known: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """The next v, (batch, h, w, channels), and the horizontal stack's input from v and y, (batch, h, w, 2
        channels).

        Arguments:
            v: the output of the vertical convolution, (batch, h, w, 2 channels).
            known: the features of the condition, y.
        """
        told = None if self.condition is None or known is None else self.condition(known)
        if self.link is None:
            return v, told
        if told is not None:
            above, told = told.chunk(2, -1)
            v = v + above
        heard = self.link(v)
        return gate(v), heard if told is None else heard + told


class PixelCNN(Prior):
    """Gated PixelCNN: two stacks of gated convolutions, one for the rows above and one for the codes to the left.

    For sequences there is one stack of dilated convolutions. With layers of dilations d and kernel k, its receptive
    field is ``1 + (k // 2) * sum(d)`` positions, which are 127 by default.

    Arguments:
        codebook_size: the number of codes, :math:`K`; with several layers of codes, that of each.
        ndim: 2 for maps, 1 for sequences.
        channels: the number of channels of either stack.
        layers: the number of layers. A map's layer sees ``kernel // 2`` rows and columns further than the one before.
        kernel: the kernel size, of which only the half before a position is used; odd.
        dilations: the dilations of a sequence's layers, in turn; (1, 2, 4, 8, 16, 32) by default. Maps have none.
        classes, context: the sizes of the condition: see :class:`sqvae.priors.Prior`.
        dropout: the dropout probability of each layer's gated activation in training.
        code_layers: the number of codes at each position: see :class:`sqvae.priors.Prior`.
    """

    def __init__(
        self,
        codebook_size: int,
        *,
        ndim: int = 2,
        channels: int = 128,
        layers: int = 12,
        kernel: int = 3,
        dilations: Sequence[int] | None = None,
        classes: int | None = None,
        context: int | None = None,
        dropout: float = 0.0,
        code_layers: int | None = None,
    ) -> None:
        super().__init__(
            codebook_size,
            channels,
            ndim=ndim,
            classes=classes,
            context=context,
            code_layers=code_layers,
            dropout=dropout,
        )
        check_size(layers, "layers")
        reach = check_kernel(kernel)
        turns = _dilations(dilations, ndim)
        self.layers = nn.ModuleList(
            GatedLayer(
                channels,
                reach=reach,
                dilation=turns[number % len(turns)],
                rows=ndim > 1,
                conditional=classes is not None or context is not None,
                dropout=dropout,
            )
            for number in range(layers)
        )
        self.head = nn.Sequential(
            nn.ReLU(), nn.Linear(channels, channels), nn.ReLU(), nn.Linear(channels, self.outputs)
        )

    def _features(self, e: Tensor, known: Tensor | None) -> Tensor:
        v, h = down(e), right(e)
        stream = torch.cat((h, torch.zeros_like(h)), -1)
        for layer in self.layers:
            v, stream = layer(v, stream, known)
        return stream[..., self.channels :]

    def _start(self, batch: int, shape: Sequence[int], known: Tensor | None) -> Draft:
        return PixelCNNDraft(self, batch, shape, known)


class PixelCNNDraft(RowDraft):
    """A draft that caches the last rows of the vertical stack and the last columns of the horizontal stack in every
    layer.

    The vertical stack of a row is computed once, when the row begins. A position then needs only the horizontal stack
    at that position.
    """

    def __init__(self, prior: PixelCNN, batch: int, shape: Sequence[int], known: Tensor | None) -> None:
        super().__init__(prior, batch, shape, known)
        layers = cast("Iterable[GatedLayer]", prior.layers)
        self._layers = [LayerMemory(layer, self._nothing, self._width) for layer in layers]

    def _begin_row(self, row: int, known: Tensor | None) -> None:
        v = self._codes_above()
        for layer in self._layers:
            v = layer.begin_row(v, known)

    def _at(self, column: int) -> Tensor:
        stream = torch.cat((self._code_before() if column else self._nothing, self._nothing), -1)
        for layer in self._layers:
            stream = layer.at(column, stream)
        outputs: Tensor = self.prior.head(stream[:, self.prior.channels :])
        return outputs


class LayerMemory:
    """The caches of one layer in a draft.

    Arguments:
        layer: the layer.
        nothing: (batch, channels): the padding outside of a map.
        width: the width of the map.
    """

    def __init__(self, layer: GatedLayer, nothing: Tensor, width: int) -> None:
        self._layer = layer
        self._width = width
        self._rows = None if layer.vertical is None else RowMemory(layer.vertical, nothing, width)
        self._columns = ColumnMemory(layer.horizontal, nothing)
        self._out, self._bias = layer.out.weight.T, layer.out.bias

    def begin_row(self, v: Tensor, known: Tensor | None) -> Tensor:  # (batch, 1, w, channels), likewise for the next
        """The vertical stack of a new row, which also prepares the row's horizontal stack."""
        v, told = self._layer.descend(v if self._rows is None else self._rows.add(v), known)
        self._columns.begin_row(told, self._width)
        return v

    def at(self, column: int, stream: Tensor) -> Tensor:  # (batch, 2 channels) -> (batch, 2 channels)
        """The horizontal stack at one position."""
        features = self._columns.add(column, stream[:, : self._layer.channels])
        return torch.addmm(stream, gate(features), self._out).add_(self._bias)


def _dilations(dilations: Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    if ndim > 1:
        if dilations is not None:
            raise ValueError(f"only sequences (ndim=1) have dilations; leave them out for maps, got {tuple(dilations)}")
        return (1,)
    turns = DILATIONS if dilations is None else tuple(dilations)
    if not turns:
        raise ValueError("dilations must have at least one entry; use (1,) for no dilation")
    for dilation in turns:
        check_size(dilation, "each of the dilations")
    return turns
