"""The features of a condition at each position of a map."""

from functools import reduce

import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from sqvae.distributions.checks import check_size


class Conditioning(nn.Module):
    """The embedding of a class, plus features of the codes of the next coarser level, at the size of the map.

    The coarse codes are embedded and pass two convolutions. Each is then repeated over the block of positions that it
    covers, and a third convolution at the full size makes the positions of a block different. The convolutions are not
    causal: the whole coarse map is known before the first position.

    Arguments:
        channels: the number of channels of the result.
        rows: whether maps have more than one row.
        classes: the number of classes, or None.
        context: the codebook size of the next coarser level, or None.
    """

    def __init__(self, channels: int, *, rows: bool, classes: int | None, context: int | None) -> None:
        super().__init__()
        for size, name in ((classes, "classes"), (context, "context")):
            if size is not None:
                check_size(size, name)
        self.classes = None if classes is None else nn.Embedding(classes, channels)
        self.codes = None if context is None else nn.Embedding(context, channels)
        kernel = (3, 3) if rows else (1, 3)
        self.convolutions = nn.ModuleList(
            nn.Conv2d(channels, channels, kernel, padding="same") for _ in range(0 if context is None else 3)
        )

    def forward(
        self, classes: Tensor | None, codes: Tensor | None, shape: tuple[int, int]
    ) -> Tensor | None:  # (batch,), (batch, rows, columns) -> (batch, h, w, channels), or (batch, 1, 1, channels)
        told: list[Tensor] = []
        if self.classes is not None and classes is not None:
            told.append(self.classes(classes.long())[:, None, None])
        if self.codes is not None and codes is not None:
            told.append(self._spread(self.codes(codes), shape))
        return reduce(torch.add, told) if told else None

    def _spread(self, x: Tensor, shape: tuple[int, int]) -> Tensor:
        first, second, last = self.convolutions
        x = x.permute(0, 3, 1, 2)
        x = x + second(relu(first(x)))
        height, width = shape[0] // x.shape[2], shape[1] // x.shape[3]
        x = x.repeat_interleave(height, 2).repeat_interleave(width, 3)
        told: Tensor = x + last(relu(x))
        return told.permute(0, 2, 3, 1).contiguous()
