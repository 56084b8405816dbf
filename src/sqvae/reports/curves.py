"""Self-annealing, as curves over the steps of a run."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from sqvae.reports.results import error_name

FEW = 30
"""So few points are marked, since a line through them, or through one, does not show them."""

NO_CODES = "a continuous latent has no codes"

ERROR_TITLES = {
    "mse": "mean squared error",
    "mse_db": "mean squared error, in dB²",
    "pixel_error": "share of pixels that are wrong",
}

Records = Sequence[Mapping[str, Any]]


def save_curves(path: Path, records: Records, codebook_size: int) -> None:
    """Draw how variances, randomness, error and the use of codes went.

    Arguments:
        records: of the run's log.
        codebook_size: 0 where there is no codebook.
    """
    steps = [record for record in records if record["kind"] == "step"]
    validations = [record for record in records if record["kind"] == "validation"]
    figure = Figure(figsize=(11, 7), layout="constrained")
    (spread, randomness), (error, use) = figure.subplots(2, 2)

    for name, label in (
        ("variance", r"quantization, $\sigma_\varphi^2$" if codebook_size else "posterior, mean variance"),
        ("relative_variance", r"$\sigma_\varphi^2$ over the codes' mean squared distance"),
        ("concentration", r"quantization, $\kappa_\varphi$"),
        ("decoder_variance", r"decoder, $\sigma^2$"),
        ("decoder_concentration", r"decoder, $\kappa$"),
    ):
        _plot(spread, steps, name, label, relative=True)
    spread.set(title="spread of quantization and decoder, relative to the start", yscale="log")

    if any(record.get("entropy_per_position") for record in steps):
        _plot(randomness, steps, "entropy_per_position", "mean entropy of a position")
        if codebook_size > 1:
            blind = math.log(codebook_size)
            randomness.axhline(blind, color="black", linestyle=":", label=f"blind choice among {codebook_size:,}")
        randomness.set_ylim(0, 1.05 * randomness.get_ylim()[1])
    elif steps:
        _say(randomness, "none: the nearest code is taken" if codebook_size else NO_CODES)
    randomness.set(title="randomness of the quantization, in nats")

    name = error_name(validations[-1] if validations else steps[-1] if steps else {})
    _plot(error, steps, name, "training batches")
    _plot(error, validations, name, "validation, likeliest codes" if codebook_size else "validation", marker="o")
    error.set(title=ERROR_TITLES[name], yscale="log")

    if codebook_size:
        _plot(use, validations, "perplexity", "perplexity, validation", marker="o")
        _plot(use, validations, "codes_used", "codes used, validation", marker=".")
        if validations:
            use.axhline(codebook_size, color="black", linestyle=":", label=f"all {codebook_size:,} codes")
            use.set_ylim(0, 1.05 * codebook_size)
    else:
        _say(use, NO_CODES)
    use.set(title="use of the codebook")

    last = max((record["step"] for record in records), default=1)
    best = [record["step"] for record in validations if record.get("best")]
    for axes, corner in ((spread, "best"), (randomness, "lower left"), (error, "upper right"), (use, "best")):
        _finish(axes, last, best[-1] if best else None)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize="small", loc=corner)
    figure.savefig(path, dpi=110)


def _plot(axes: Axes, records: Records, name: str, label: str, *, relative: bool = False, marker: str = "") -> None:
    points = [(record["step"], record[name]) for record in records if name in record]
    if not points:
        return
    steps, values = zip(*points, strict=True)
    if relative and values[0]:
        label += f": {values[0]:.3g}" + (f" to {values[-1]:.3g}" if len(values) > 1 else "")
        values = tuple(value / values[0] for value in values)
    marker = (marker or ".") if len(points) <= FEW else ""
    axes.plot(steps, values, label=label, marker=marker, linewidth=1.2)


def _say(axes: Axes, words: str) -> None:
    axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", va="center", color="0.4")
    axes.set_yticks([])


def _finish(axes: Axes, last: int, best: int | None) -> None:
    """One scale of steps for all, and plain numbers."""
    axes.set(xlim=(0, 1.02 * last), xlabel="step")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    if axes.get_yscale() == "log":
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    if axes.lines:
        if best is not None:
            axes.axvline(best, color="0.6", linewidth=1, linestyle="--", label="best checkpoint")
    elif not axes.texts:
        _say(axes, "nothing recorded yet")
