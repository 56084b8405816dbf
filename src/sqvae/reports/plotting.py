"""Functions that all Matplotlib plots share."""

import textwrap
from io import BytesIO
from pathlib import Path
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from matplotlib.transforms import ScaledTranslation

from sqvae.files import written
from sqvae.reports.axes import Axis, fitting, number

LETTERS = 16.5
"""The number of letters of a caption that fit into an inch."""

AXIS_WORDS = 0.55
"""The height in inches of an axis with its numbers and its label."""


def draw_axis(axes: Axes, which: Literal["x", "y"], fitted: Axis) -> None:
    """Set an axis of a plot: its limits, its scale, and ticks at round values that do not overlap."""
    axes.set(**{f"{which}scale": "log" if fitted.log else "linear"})
    axes.set(**{f"{which}lim": (fitted.low, fitted.high)})
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_locator(FixedLocator(fitted.ticks()))
    axis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    axis.set_minor_locator(NullLocator())


def save_figure(figure: Figure, path: Path, *, dpi: int) -> None:
    """Write a figure, in the format of the file's suffix."""
    drawn = BytesIO()
    figure.savefig(drawn, dpi=dpi, format=path.suffix[1:])
    with written(path, lasting=False) as aside:
        aside.write_bytes(drawn.getvalue())


def fit_heights(*plots: Axes, log: bool | None = None, floor: bool = False) -> None:
    """Give several line plots the same vertical axis, by the rule for all plots: see :func:`fitting`."""
    lines = [line for axes in plots for line in axes.lines]
    values = [float(value) for line in lines for value in np.asarray(line.get_ydata(), dtype=float)]
    for axes in plots:
        draw_axis(axes, "y", fitting(values, 0, 1, log=log, floor=floor))


def legend_below(axes: Axes) -> None:
    """Draw the legend below a plot, so that it hides no lines."""
    if axes.get_legend_handles_labels()[0]:
        clear = ScaledTranslation(0, -AXIS_WORDS, axes.figure.dpi_scale_trans)
        place = {"bbox_to_anchor": (0, 0), "bbox_transform": axes.transAxes + clear, "borderaxespad": 0}
        axes.legend(loc="upper left", fontsize="small", frameon=False, **place)


def caption_below(figure: Figure, text: str) -> None:
    """Write a caption below a figure, wrapped to its width."""
    lines = textwrap.wrap(text, round(LETTERS * figure.get_figwidth()))
    figure.supxlabel("\n".join(lines), fontsize="small", color="0.35", x=0.01, ha="left", linespacing=1.35)
