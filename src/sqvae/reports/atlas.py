"""An atlas of codes: a tile that shows the meaning of each code."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray
from torch import Tensor

from sqvae.reports.codebook import counted, most_used
from sqvae.reports.grid import MOST_CLASSES, Class
from sqvae.reports.plotting import save_figure

DPI = 100
SIDE = 60
"""The smallest side of an image in a tile, in pixels."""
GAP, LABEL, BETWEEN, MARGIN, LINE = 5, 20, 28, 30, 17
"""Sizes in pixels: the gap between the images of a tile, the label above it, the gap between tiles, the margin, and
a line of text."""
NARROWEST = 820
"""The smallest width of the atlas in pixels, so that the sentences fit."""
NOTHING = 0.9
"""The grey of everything outside of images, and of what never occurs."""


def save_atlas(
    path: Path,
    codes: Tensor,
    counts: Tensor,
    seen: Tensor,
    drawn: Tensor,
    places: Tensor,
    *,
    stride: int,
    where: str,
    classes: Sequence[Class] = (),
) -> None:
    """Draw a tile for each code: the mean image patch at its positions, what it decodes to, and where it is used.

    Arguments:
        path: the file to write.
        codes: (n,), the codes to show, in order.
        counts: (K,), the usage of all codes.
        seen: (n, C, P, P), the mean patches in [0, 1], nan for nothing, C = 1 or 3; the code's own square is in the
            middle.
        drawn: (n, C, P, P), what the codes decode to, in the same form.
        places: (n, h, w), the number of times that each code was used at each position.
        stride: the side of the code's own square in pixels.
        where: a description of the images that were used.
        classes: for label maps, the names and colours of the classes.
    """
    number, patch = len(codes), seen.shape[-1]
    side = patch * math.ceil(max(SIDE, *places.shape[1:]) / patch)  # a whole number of pixels for each pixel of a patch
    own = side * stride // patch
    tile_width, tile_height = 3 * side + 2 * GAP + BETWEEN, LABEL + side + BETWEEN // 2
    columns = min(number, max(6, math.isqrt(number // 2)))
    words = _explanation(stride, where, gaps=bool(seen.isnan().any() or drawn.isnan().any()))
    top = MARGIN + 30 + LINE * (len(words) + 1) + LABEL
    width = max(2 * MARGIN + columns * tile_width - BETWEEN, NARROWEST)
    legend = _Legend(classes, width - 2 * MARGIN)
    below = top + math.ceil(number / columns) * tile_height
    height = below + legend.height + MARGIN // 2

    figure = Figure(figsize=(width / DPI, height / DPI), dpi=DPI)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.axis("off")
    axes.text(MARGIN, MARGIN, _title(number, counts), fontsize=14, fontweight="bold", va="top")
    for line, sentence in enumerate(words):
        axes.text(MARGIN, MARGIN + 30 + LINE * line, sentence, fontsize=9, color="0.3", va="top")
    canvas = np.ones((height, width, 3))
    total = max(1, int(counts.sum()))
    for place, code in enumerate(codes.tolist()):
        x, y = MARGIN + place % columns * tile_width, top + LABEL + place // columns * tile_height
        lefts = [x + part * (side + GAP) for part in range(3)]
        pictures = (_picture(seen[place]), _picture(drawn[place]), _map(places[place]))
        for left, picture in zip(lefts, pictures, strict=True):
            _put(canvas, picture, y, left, side)
        for left in lefts[:2]:
            corner = (left + (side - own) / 2 - 0.5, y + (side - own) / 2 - 0.5)
            for colour, thickness in (("black", 1.8), ("white", 0.7)):  # one of them is visible on any background
                axes.add_patch(Rectangle(corner, own, own, fill=False, edgecolor=colour, linewidth=thickness))
        axes.text(x, y - 4, f"code {code}: {_share(int(counts[code]), total)}", fontsize=8, va="bottom")
        if place < columns:
            for left, name in zip(lefts, ("seen", "drawn", "where"), strict=True):
                axes.text(left + side / 2, y - LABEL, name, fontsize=8, color="0.5", va="bottom", ha="center")
    legend.draw(axes, MARGIN, below)
    axes.imshow(canvas, interpolation="nearest", aspect="auto")
    save_figure(figure, path, dpi=DPI)


class _Legend:
    """The colours of classes with their names, in columns."""

    def __init__(self, classes: Sequence[Class], width: int) -> None:
        self.shown = classes[:MOST_CLASSES]
        self.more = len(classes) - len(self.shown)
        self.column = 30 + 7 * max((len(name) for name, _ in self.shown), default=0)
        self.lines = math.ceil(len(self.shown) / max(1, width // self.column))

    @property
    def height(self) -> int:
        """The height in pixels."""
        return LINE * (self.lines + bool(self.more) + 1) if self.shown else 0

    def draw(self, axes: Axes, left: int, top: int) -> None:
        """Draw the legend at a place."""
        for place, (name, colour) in enumerate(self.shown):
            x, y = left + place // self.lines * self.column, top + LINE * (place % self.lines)
            axes.add_patch(Rectangle((x, y), 12, 12, facecolor=colour, edgecolor="0.4", linewidth=0.7))
            axes.text(x + 18, y + 6, name, fontsize=9, va="center")
        if self.more > 0:
            words = f"and {self.more:,} more classes"
            axes.text(left, top + LINE * self.lines + 6, words, fontsize=9, color="0.3", va="center")


def _title(shown: int, counts: Tensor) -> str:
    size = len(counts)
    if shown < size:
        return f"The meaning of each code: {most_used(shown, counts)}"
    return f"The meaning of each code: all {counted(size)}, the most used first" if size > 1 else "The only code"


def _explanation(stride: int, where: str, *, gaps: bool) -> list[str]:
    grey = "Grey is outside of the image, or never used." if gaps else ""
    return [
        f"seen: the mean image patch around the code's positions; the square marks the {stride}x{stride} pixels of a "
        "position",
        "drawn: the decoder's output for a map that holds only this code",
        "where: the positions in the image at which the code is used; darker means more often",
        f"From {where}. The percentage is the code's share of all positions.{grey}",
    ]


def _share(count: int, total: int) -> str:
    if not count:
        return "never used"
    return f"{100 * count / total:.2f}%" if count / total >= 5e-5 else "under 0.01%"


def _picture(patch: Tensor) -> NDArray[np.float64]:  # (C, P, P) -> (P, P, 3)
    values = patch.double().clamp(0, 1).permute(1, 2, 0).numpy()
    shown: NDArray[np.float64] = np.where(np.isnan(values), NOTHING, values) * np.ones(3)
    return shown


def _map(places: Tensor) -> NDArray[np.float64]:  # (h, w) -> (h, w, 3)
    """The usage at each position, as colours. Each code has its own scale, so that rare codes are visible."""
    values = places.double().numpy()
    if not values.any():
        return np.full((*values.shape, 3), NOTHING)
    colours: NDArray[np.float64] = colormaps["Blues"](values / values.max())[..., :3]
    return colours


def _put(canvas: NDArray[np.float64], picture: NDArray[np.float64], top: int, left: int, side: int) -> None:
    """Draw an image (a, b, 3) into a square of the canvas, enlarged, with its aspect ratio and a thin frame."""
    height, width = picture.shape[:2]
    tall, wide = (max(1, round(side * size / max(height, width))) for size in (height, width))
    top, left = top + (side - tall) // 2, left + (side - wide) // 2
    canvas[top - 1 : top + tall + 1, left - 1 : left + wide + 1] = 0.6
    rows, columns = np.arange(tall) * height // tall, np.arange(wide) * width // wide
    canvas[top : top + tall, left : left + wide] = picture[np.ix_(rows, columns)]
