"""What pictures cost and how good they are, drawn."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure


def save_rates(
    path: Path, own: tuple[float, float], others: Mapping[str, Sequence[tuple[float, float]]], title: str
) -> None:
    """Peak signal-to-noise ratio over bits per pixel: a point for the model, a curve for each other format.

    Arguments:
        own, others: bits per pixel and dB.
    """
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for name, rates in others.items():
        axes.plot(*zip(*rates, strict=True), marker=".", label=name)
    axes.plot(*own, marker="*", markersize=14, linestyle="none", color="black", label="this model")
    axes.set(xlabel="bits per pixel, of whole files", ylabel="PSNR, dB", xscale="log", title=title)
    axes.grid(alpha=0.25)
    axes.legend()
    figure.savefig(path, dpi=120)
