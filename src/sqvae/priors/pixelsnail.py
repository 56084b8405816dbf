"""PixelSNAIL (Chen et al., 2018), for maps and for sequences."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import cast

from torch import Tensor, nn

from sqvae.distributions.checks import check_size
from sqvae.priors.attention import AttentionLayer, AttentionMemory, places
from sqvae.priors.causal import check_kernel
from sqvae.priors.contract import Draft, Prior
from sqvae.priors.drafting import RowDraft
from sqvae.priors.residual import ConvolutionLayer, ConvolutionMemory, Neighbours, NeighboursMemory


class Block(nn.Module):
    """Several convolutions, followed by attention."""

    def __init__(self, convolutions: Iterable[ConvolutionLayer], attention: AttentionLayer) -> None:
        super().__init__()
        self.convolutions = nn.ModuleList(convolutions)
        self.attention = attention

    def forward(self, x: Tensor, e: Tensor, p: Tensor, known: Tensor | None) -> Tensor:  # see AttentionLayer
        for layer in self.convolutions:
            x = layer(x, known)
        attended: Tensor = self.attention(x, e, p, known)
        return attended


class PixelSNAIL(Prior):
    """PixelSNAIL: blocks of gated causal convolutions, each followed by attention to all earlier positions.

    The convolutions see near positions, and attention sees all earlier ones. There are two differences from the paper:
    a residual layer has one causal and one pointwise convolution rather than two causal ones, and attention has no
    residual layers of its own.

    Arguments:
        codebook_size: the number of codes, :math:`K`; with several layers of codes, that of each.
        ndim: 2 for maps, 1 for sequences.
        channels: the number of channels of the network's layers.
        blocks: the number of blocks.
        layers: the number of convolutional layers in each block.
        kernel: the kernel size of the convolutions, of which only the half before a position is used; odd.
        heads: the number of attention heads.
        attention: the total dimension of queries, keys and values over all heads; half of the channels by default.
        classes, context: the sizes of the condition: see :class:`sqvae.priors.Prior`.
        dropout: the dropout probability in each layer in training.
        code_layers: the number of codes at each position: see :class:`sqvae.priors.Prior`.
    """

    def __init__(
        self,
        codebook_size: int,
        *,
        ndim: int = 2,
        channels: int = 128,
        blocks: int = 3,
        layers: int = 4,
        kernel: int = 3,
        heads: int = 4,
        attention: int | None = None,
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
        width = channels // 2 if attention is None else attention
        for size, name in ((blocks, "blocks"), (layers, "layers"), (heads, "heads"), (width, "attention")):
            check_size(size, name)
        if width % heads:
            raise ValueError(
                f"attention must be a multiple of heads, got attention={width} (by default half of the channels) and "
                f"heads={heads}"
            )
        reach, rows = check_kernel(kernel), ndim > 1
        conditional = classes is not None or context is not None
        convolution = partial(ConvolutionLayer, channels, reach=reach, rows=rows)
        to_all = partial(AttentionLayer, channels, width=width, heads=heads)
        self.first = Neighbours(channels, reach=reach, rows=rows, own=False)
        self.blocks = nn.ModuleList(
            Block(
                (convolution(conditional=conditional, dropout=dropout) for _ in range(layers)),
                to_all(conditional=conditional, dropout=dropout),
            )
            for _ in range(blocks)
        )
        self.head = nn.Sequential(nn.ELU(), nn.Linear(channels, self.outputs))

    def _features(self, e: Tensor, known: Tensor | None) -> Tensor:
        p = places(e.shape[1], e.shape[2], e)
        x: Tensor = self.first(e)
        for block in self.blocks:
            x = block(x, e, p, known)
        return x

    def _start(self, batch: int, shape: Sequence[int], known: Tensor | None) -> Draft:
        return PixelSNAILDraft(self, batch, shape, known)


class PixelSNAILDraft(RowDraft):
    """A draft that caches the last rows and columns of every convolution, and all keys and values of attention."""

    def __init__(self, prior: PixelSNAIL, batch: int, shape: Sequence[int], known: Tensor | None) -> None:
        super().__init__(prior, batch, shape, known)
        self._first = NeighboursMemory(prior.first, self._nothing, self._width)
        blocks = cast("Iterable[Block]", prior.blocks)
        self._blocks = [
            BlockMemory(block, self._nothing, (self.positions // self._width, self._width)) for block in blocks
        ]

    def _begin_row(self, row: int, known: Tensor | None) -> None:
        self._first.begin_row(self._codes_above())
        for block in self._blocks:
            block.begin_row(known)

    def _at(self, column: int) -> Tensor:
        before = self._code_before()
        x = self._first.at(column, before if column else self._nothing)
        for block in self._blocks:
            if self.position:
                block.attention.settle(before)
            x = block.at(column, x)
        outputs: Tensor = self.prior.head(x)
        return outputs


class BlockMemory:
    """The caches of a block in a draft."""

    def __init__(self, block: Block, nothing: Tensor, shape: tuple[int, int]) -> None:
        layers = cast("Iterable[ConvolutionLayer]", block.convolutions)
        self._convolutions = [ConvolutionMemory(layer, nothing, shape[1]) for layer in layers]
        self.attention = AttentionMemory(block.attention, len(nothing), shape)

    def begin_row(self, known: Tensor | None) -> None:
        for layer in self._convolutions:
            layer.begin_row(known)
        self.attention.begin_row(known)

    def at(self, column: int, x: Tensor) -> Tensor:  # (batch, channels) -> (batch, channels)
        for layer in self._convolutions:
            x = layer.at(column, x)
        return self.attention.at(column, x)
