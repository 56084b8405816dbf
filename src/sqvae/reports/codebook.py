"""Plots of a codebook: the usage of its codes, and the distances between them."""

import math
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter
from numpy.typing import NDArray
from torch import Tensor

from sqvae.distributions import perplexity
from sqvae.reports.clustering import near_order
from sqvae.reports.plotting import save_figure

INK, PALE, ACCENT, ABSENT = "#1f4e79", "#9db8d2", "#d1495b", "0.85"

LABELLED = 40
"""The largest number of codes that are labelled with their numbers."""

STEEP = 20
"""If the most used code has this many times the average usage, the axis is logarithmic, so that other codes are
visible."""

THOUSANDS = FuncFormatter(lambda value, _: f"{value:,.0f}")


def save_use(path: Path, counts: Tensor, where: str) -> None:
    """Plot the usage of each code, the most used first.

    Arguments:
        path: the file to write.
        counts: (K,), the usage.
        where: a description of the data that they were counted on.
    """
    size, unused = len(counts), int((counts == 0).sum())
    ranked, order = counts.sort(descending=True, stable=True)
    shares = ranked.double().numpy() / max(1, int(counts.sum()))
    figure = Figure(figsize=(11, 5), layout="constrained")
    spread = float(perplexity(counts.double()))
    never = f"{unused:,} never used" if unused else "all are used"
    figure.suptitle(f"Usage of {counted(size)}: perplexity {spread:,.1f}, {never}", fontweight="bold")
    bars, together = figure.subplots(1, 2, width_ratios=(3, 2))
    _draw_shares(bars, shares, [int(code) for code in order])
    _draw_sums(together, shares)
    for axes, start, corner in ((bars, 0.5, "upper right"), (together, 0, "lower right")):
        if unused:
            axes.axvspan(size - unused + start, size + start, color=ABSENT, zorder=0, label=never)
        axes.legend(loc=corner, fontsize="small")
        _tidy(axes)
    figure.supxlabel(f"{int(counts.sum()):,} positions of {where}", fontsize="small", color="0.4")
    save_figure(figure, path, dpi=110)


def _draw_shares(axes: Axes, shares: NDArray[np.float64], codes: list[int]) -> None:
    size = len(shares)
    edges = np.arange(size + 1) + 0.5
    axes.stairs(shares, edges, fill=True, color=INK)
    axes.axhline(1 / size, color=ACCENT, linestyle="--", label=f"equal use: {percent(1 / size)} each")
    axes.set(title="how often each code is used", ylabel="share of all positions", xlim=(edges[0], edges[-1]))
    highest = max(float(shares.max()), 1 / size)
    if highest * size > STEEP:
        axes.set_yscale("log")
        axes.set(ylabel="share of all positions, logarithmic", ylim=(shares[shares > 0].min() / 2, 3 * highest))
    else:
        axes.set_ylim(0, 1.15 * highest)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: percent(value)))
    if size <= LABELLED:
        axes.vlines(edges[1:-1], 0, shares[:-1], color="white")  # separates the bars
        axes.set_xticks(range(1, size + 1), list(map(str, codes)), fontsize="small")
        axes.set_xlabel("code, the most used first")
    else:
        axes.set_xlabel("codes, the most used first")
        axes.xaxis.set_major_formatter(THOUSANDS)


def _draw_sums(axes: Axes, shares: NDArray[np.float64]) -> None:
    size = len(shares)
    sums = np.concatenate(([0.0], shares.cumsum()))
    half = int(np.searchsorted(sums, 0.5))
    axes.plot(sums, color=INK, linewidth=2, marker="." if size <= LABELLED else None)
    axes.plot([0, size], [0, 1], color=ACCENT, linestyle="--", label="equal use")
    if half <= size:  # there are counts
        words = f"half of all: {counted(half)}"
        axes.plot([0, half, half], [sums[half], sums[half], 0], color=PALE, label=words)
    axes.set(xlim=(0, size), ylim=(0, 1.03), xlabel="number of the most used codes", ylabel="their share together")
    axes.set_title("share of the most used codes")
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.xaxis.set_major_formatter(THOUSANDS)


def save_distances(
    path: Path,
    codes: Tensor,
    distances: Tensor,
    nearest: Tensor,
    *,
    counts: Tensor | None,
    codebook_size: int,
    directions: bool,
    scale: float | None,
    where: str = "",
) -> None:
    """Plot the distances between codes.

    Arguments:
        path: the file to write.
        codes: (n,), the codes that are shown, n <= K: the most used ones, if the usage is known.
        distances: (n, n), the distances between them.
        nearest: (n,), the distance of each to the nearest of all other codes; empty if there is none.
        counts: (K,), the usage of each code, if it is known.
        codebook_size: the number of codes, K.
        directions: whether the distances are 1 - cosine.
        scale: the scale of the quantization noise, if there is any.
        where: a description of the codebook, and of the data that its usage was counted on.
    """
    which = counted(codebook_size)
    if len(codes) < codebook_size:
        which = f"the first {len(codes):,} of {which}" if counts is None else most_used(len(codes), counts)
    measure = "1 - cosine" if directions else "distance"
    figure = Figure(figsize=(12, 5.4), layout="constrained")
    figure.suptitle(f"Distances between {which}", fontweight="bold")
    matrix, histogram = figure.subplots(1, 2)
    values = distances.double().numpy()
    order = near_order(values)
    image = matrix.imshow(values[np.ix_(order, order)], cmap="magma", vmin=0, vmax=float(values.max()) or 1)
    figure.colorbar(image, ax=matrix, label=measure)
    matrix.set_title("all pairs of codes, with similar codes side by side:\ndark squares are groups of similar codes")
    if len(codes) <= LABELLED:
        names = [str(int(codes[place])) for place in order]
        matrix.set_xticks(range(len(names)), names, fontsize="x-small", rotation=90)
        matrix.set_yticks(range(len(names)), names, fontsize="x-small")
    else:
        matrix.set(xticks=[], yticks=[])
    histogram.set(title="distance of each code to the nearest other code", xlabel=measure, ylabel="number of codes")
    if len(nearest):
        _draw_nearest(histogram, nearest.double().numpy(), None if counts is None else counts[codes].numpy() > 0)
        if scale is not None:
            symbol = r"$1/\kappa_\varphi$" if directions else r"$\sigma_\varphi$"
            words = f"{symbol} = {scale:.3g}, the quantization noise:\nit confuses codes that are nearer"
            histogram.axvline(scale, color=ACCENT, linestyle="--", label=words)
            histogram.set_xlim(right=max(histogram.get_xlim()[1], 1.05 * scale))
        if histogram.get_legend_handles_labels()[0]:
            histogram.legend(fontsize="small")
    else:
        histogram.set(xticks=[], yticks=[])
        histogram.text(0.5, 0.5, "there is no other code", transform=histogram.transAxes, ha="center", color="0.4")
    _tidy(histogram)
    if where:
        figure.supxlabel(where, fontsize="small", color="0.4")
    save_figure(figure, path, dpi=110)


def _draw_nearest(axes: Axes, nearest: NDArray[np.float64], used: NDArray[np.bool_] | None) -> None:
    low, high = float(nearest.min()), float(nearest.max())
    if high - low <= 1e-6 * high:  # all are equal: draw one bar
        low, high = 0.95 * low, 1.05 * high or 1.0
    edges = np.linspace(low, high, 1 + min(40, max(5, 2 * math.isqrt(len(nearest))))).tolist()
    if used is None or used.all():
        axes.hist(nearest, edges, color=INK)
    else:
        groups, names = (nearest[used], nearest[~used]), ("used", "never used")
        labels = [f"{name}: {counted(len(group))}" for group, name in zip(groups, names, strict=True)]
        axes.hist(groups, edges, stacked=True, color=(INK, "0.7"), label=labels)
    axes.set_xlim(left=0)
    axes.set_ylim(top=1.3 * axes.get_ylim()[1])  # room for the legend
    axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))


def counted(codes: int) -> str:
    """A number of codes, as text."""
    return f"{codes:,} code{'' if codes == 1 else 's'}"


def most_used(shown: int, counts: Tensor) -> str:  # (K,)
    """A description of the codes that are shown, if these are the most used ones; some may be unused."""
    size, used = len(counts), int((counts > 0).sum())
    if used >= shown:
        return f"the {shown:,} most used of {counted(size)}"
    all_used = {0: "none used", 1: "the only one used"}.get(used, f"all {used:,} used")
    return f"{all_used}, and {shown - used:,} of the {size - used:,} unused, of {counted(size)}"


def percent(share: float) -> str:
    """A share in percent, with three significant digits."""
    return f"{100 * share:.3g}%"


def _tidy(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
