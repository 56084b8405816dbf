"""Plots of rate and distortion."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from sqvae.reports.axes import fitting
from sqvae.reports.plotting import caption_below, draw_axis, save_figure


def save_rates(
    path: Path,
    own: Sequence[tuple[float, float]],
    others: Mapping[str, Sequence[tuple[float, float]]],
    title: str,
    caption: str = "",
) -> None:
    """Plot the peak signal-to-noise ratio over bits per pixel: a point or a curve for the model, and a curve for each
    other format.

    Arguments:
        path: the file to write.
        own, others: bits per pixel and dB; several of the model if it has layers.
        title: the title.
        caption: a caption below the plot.
    """
    figure = Figure(figsize=(7, 4.8), layout="constrained")
    axes = figure.subplots()
    for name, rates in others.items():
        axes.plot(*zip(*rates, strict=True), marker=".", label=name)
    axes.plot(*zip(*own, strict=True), marker="*", markersize=14, linestyle=":", color="black", label="this model")
    axes.set(xlabel="bits per pixel, of whole files", ylabel="PSNR in dB: higher is better", title=title)
    bits, decibels = zip(*own, *(rate for rates in others.values() for rate in rates), strict=True)
    draw_axis(axes, "x", fitting(bits, 0, 1, log=True))
    draw_axis(axes, "y", fitting(decibels, 0, 1))
    axes.grid(alpha=0.25)
    axes.legend()
    if caption:
        caption_below(figure, caption)
    save_figure(figure, path, dpi=120)
