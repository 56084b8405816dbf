"""What each code stands for, as an atlas: a tile a code."""

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
"""Pixels of a picture's side in a tile, at least."""
GAP, LABEL, BETWEEN, MARGIN, LINE = 5, 20, 28, 30, 17
"""Pixels between the pictures of a tile, for the label above it, between tiles, around all, and of a line of text."""
NARROWEST = 820
"""Pixels that the sentences need."""
NOTHING = 0.9
"""The grey of what lies outside of pictures, or was never seen."""


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
    """Draw a tile a code: the mean of what was seen there, what the decoder makes of it, and where it is taken.

    Arguments:
        codes: (n,), in the order in which they are to be shown.
        counts: (K,), how often each of all codes was taken.
        seen: (n, C, P, P), in [0, 1], nan for nothing, C = 1 or 3; in the middle of each the code's own square.
        drawn: likewise.
        places: (n, h, w), how often each was taken at each position.
        stride: the side of the code's own square.
        where: the pictures that were looked at, in words.
        classes: of label maps, their names and colours.
    """
    number, patch = len(codes), seen.shape[-1]
    side = patch * math.ceil(max(SIDE, *places.shape[1:]) / patch)  # a whole number of pixels for each of a patch's
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
            for colour, thickness in (("black", 1.8), ("white", 0.7)):  # one of them is seen on any ground
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
        """In pixels."""
        return LINE * (self.lines + bool(self.more) + 1) if self.shown else 0

    def draw(self, axes: Axes, left: int, top: int) -> None:
        """At a place."""
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
        return f"What each code stands for: {most_used(shown, counts)}"
    return f"What each code stands for: all {counted(size)}, the most used first" if size > 1 else "The only code"


def _explanation(stride: int, where: str, *, gaps: bool) -> list[str]:
    grey = " Grey is outside of the picture, or never taken." if gaps else ""
    return [
        f"seen: the mean of the pictures around the code's places; the square marks the {stride}x{stride} pixels of "
        "a place",
        "drawn: what the decoder makes of a map that holds this code alone",
        "where: the places in the picture at which the code is taken; the darker, the more often",
        f"From {where}. The percentage is the code's share of all places.{grey}",
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
    """Each on its own scale, or the rare codes would be white."""
    values = places.double().numpy()
    if not values.any():
        return np.full((*values.shape, 3), NOTHING)
    colours: NDArray[np.float64] = colormaps["Blues"](values / values.max())[..., :3]
    return colours


def _put(canvas: NDArray[np.float64], picture: NDArray[np.float64], top: int, left: int, side: int) -> None:
    """Enlarge a picture (a, b, 3) into a square of the canvas, with its proportions, in a thin frame."""
    height, width = picture.shape[:2]
    tall, wide = (max(1, round(side * size / max(height, width))) for size in (height, width))
    top, left = top + (side - tall) // 2, left + (side - wide) // 2
    canvas[top - 1 : top + tall + 1, left - 1 : left + wide + 1] = 0.6
    rows, columns = np.arange(tall) * height // tall, np.arange(wide) * width // wide
    canvas[top : top + tall, left : left + wide] = picture[np.ix_(rows, columns)]
