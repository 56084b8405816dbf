"""Codes in layers as maps of single codes, for entropy coding."""

from collections.abc import Iterator, Sequence
from itertools import accumulate

import numpy as np
import torch
from torch import Tensor

from sqvae.codec.expectations import Adaptive, Expectation, Flags, Intervals, Shape
from sqvae.codec.frequencies import Integers
from sqvae.codec.range_coding import RangeSource


class AdaptiveLayers(Expectation):
    r"""The probability of a code is its count in its layer so far plus one half, normalised.

    It is for maps that contain the layers of an image below each other, :math:`(n h, w)` for the first n layers, so
    that a decoder gets all codes of a layer before those of the next. Code k of layer l has the number
    :math:`K_1 + \dots + K_{l-1} + k`.

    Arguments:
        sizes: the number of codes of each layer, :math:`K_l`.
        rows: the number of rows of a layer's map, h.
    """

    kind = 3
    description = "the counts of its own codes in each layer"

    def __init__(self, sizes: Sequence[int], rows: int) -> None:
        self.rows = rows
        self.layers = [Adaptive(size) for size in sizes]
        self.codebook_size = sum(sizes)
        self.first = [0, *accumulate(sizes)]
        """The number of the first code of each layer, and that of all codes."""

    @property
    def identity(self) -> str:
        return " ".join(str(layer.codebook_size) for layer in self.layers)

    def as_maps(self, codes: Tensor) -> Tensor:  # (batch, h, w, n) -> (batch, n * h, w)
        """The maps to be coded."""
        offsets = torch.tensor(self.first[: codes.shape[-1]], device=codes.device)
        return (codes.long() + offsets).movedim(-1, 1).flatten(1, 2)

    def as_codes(self, maps: Tensor) -> Tensor:  # (batch, n * h, w) -> (batch, h, w, n)
        """The codes in layers of such maps."""
        layers: Tensor = maps.unflatten(1, (-1, self.rows)).movedim(1, -1)
        return layers - torch.tensor(self.first[: layers.shape[-1]], device=maps.device)

    def intervals(self, codes: Tensor, seen: Integers) -> Intervals:
        parts = [
            layer.intervals(own - first, seen[first:end])
            for (layer, first, end), own in zip(self._each(codes.shape[1]), codes.split(self.rows, 1), strict=True)
        ]
        left, right, uncertain, bits = zip(*parts, strict=True)
        return Intervals(np.vstack(left), np.vstack(right), np.vstack(uncertain), sum(bits))

    def decode(self, source: RangeSource, batch: int, shape: Shape, uncertain: Flags, seen: Integers) -> Tensor:
        height, width = shape
        return torch.cat(
            [
                first + layer.decode(source, batch, (self.rows, width), uncertain, seen[first:end])
                for layer, first, end in self._each(height)
            ],
            1,
        )

    def _each(self, height: int) -> Iterator[tuple[Adaptive, int, int]]:
        """The layers in a map of a height, each with the number of its first code and of the one after its last."""
        number, rest = divmod(height, self.rows)
        if rest or not 1 <= number <= len(self.layers):
            raise ValueError(
                f"maps of codes must have {self.rows} rows for each of 1 to {len(self.layers)} layers; got {height} "
                "rows"
            )
        return zip(self.layers[:number], self.first, self.first[1:], strict=False)
