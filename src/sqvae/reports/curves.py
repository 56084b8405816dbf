"""Plots of training curves: self-annealing, error and codebook usage of a model, or bits per code of a prior."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sqvae.metrics.measures import MEASURES, error_name
from sqvae.reports.axes import fitting
from sqvae.reports.plotting import caption_below, draw_axis, fit_heights, legend_below, save_figure

FEW = 30
"""Up to this number of points are marked, because a line through a few points does not show them."""

NO_CODES = "a continuous latent has no codes"

COST_CAPTION = (
    "The number of bits per code under the prior, given the codes before it: lower is better. The dashed line is the "
    "cost of independent codes, by their frequencies in the training set; a useful prior is below it."
)

ERROR_TITLES = {
    "mse": "mean squared error",
    "mse_db": "mean squared error",
    "unexplained": "unexplained variance",
    "pixel_error": "pixel error",
}

Records = Sequence[Mapping[str, Any]]


def save_curves(path: Path, records: Records, codebook_size: int, *, title: str = "") -> None:
    """Plot a run's records: the bits per code of a prior; or the variances, randomness, error and codebook usage of a
    model.

    Arguments:
        path: the file to write.
        records: the records of the run's log.
        codebook_size: the codebook size of a model; 0 if there is no codebook.
        title: the name of the run and its data.
    """
    steps = [record for record in records if record["kind"] == "step"]
    validations = [record for record in records if record["kind"] == "validation"]
    last = max((record["step"] for record in records), default=1)
    best = [record["step"] for record in validations if record.get("best")]
    of_prior = any("bits_per_code" in record for record in records)
    figure = Figure(figsize=(8, 5.2) if of_prior else (11, 8.6), layout="constrained")
    figure.suptitle(f"{title or 'Training'}, up to step {last:,}", fontweight="bold", fontsize="medium")
    panels: list[Axes] = figure.subplots(*((1, 1) if of_prior else (2, 2)), squeeze=False).flatten().tolist()
    if of_prior:
        _cost(panels[0], steps, validations)
        caption_below(figure, COST_CAPTION)
        limited: list[Axes] = panels
    else:
        spread, randomness, error, use = panels
        _spread(spread, steps, codebook_size)
        _randomness(randomness, steps, codebook_size)
        _error(error, steps, validations, codebook_size)
        _use(use, validations, codebook_size)
        limited = [randomness, use]
    for axes in panels:
        # Limited quantities start at 0, and their limit is drawn.
        _finish(axes, last, best[-1] if best else None, floor=axes in limited)
        legend_below(axes)
    save_figure(figure, path, dpi=110)


def _cost(axes: Axes, steps: Records, validations: Records) -> None:
    _plot(axes, steps, "bits_per_code", "training batches")
    _plot(axes, validations, "bits_per_code", "validation", marker="o")
    known = validations[-1] if validations else {}
    for name, label, style in (
        ("histogram_bits_per_code", "validation, by the frequency of each code in training", "--"),
        ("uniform_bits_per_code", "all codes equally likely", ":"),
    ):
        if name in known:
            axes.axhline(known[name], color="black", linestyle=style, label=f"{label}: {known[name]:.3g}")
    axes.set(title="cost of a code under the prior", ylabel=MEASURES["bits_per_code"].unit)


def _spread(axes: Axes, steps: Records, codebook_size: int) -> None:
    for name, label in (
        ("variance", r"quantization, $\sigma_\varphi^2$" if codebook_size else "posterior, mean variance"),
        ("relative_variance", r"$\sigma_\varphi^2$ relative to the codes' mean squared distance"),
        ("concentration", r"quantization, $\kappa_\varphi$"),
        ("decoder_variance", r"decoder, $\sigma^2$"),
        ("decoder_concentration", r"decoder, $\kappa$"),
    ):
        _plot(axes, steps, name, label, relative=True)
    axes.set(title="spread of quantization and decoder, relative to the start", ylabel="multiple of the first value")


def _randomness(axes: Axes, steps: Records, codebook_size: int) -> None:
    if any(record.get("entropy_per_position") for record in steps):
        _plot(axes, steps, "entropy_per_position", "mean entropy per position")
        if codebook_size > 1:
            blind = math.log(codebook_size)
            axes.axhline(blind, color="black", linestyle=":", label=f"uniform choice among {codebook_size:,}")
    elif steps:
        _say(axes, "none: the nearest code is used" if codebook_size else NO_CODES)
    axes.set(title="randomness of the quantization", ylabel=MEASURES["entropy_per_position"].unit)


def _error(axes: Axes, steps: Records, validations: Records, codebook_size: int) -> None:
    name = error_name(validations[-1] if validations else steps[-1] if steps else {})
    _plot(axes, steps, name, "training batches")
    _plot(axes, validations, name, "validation, likeliest codes" if codebook_size else "validation", marker="o")
    axes.set(title=ERROR_TITLES[name], ylabel=MEASURES[name].unit)


def _use(axes: Axes, validations: Records, codebook_size: int) -> None:
    if codebook_size:
        _plot(axes, validations, "perplexity", "perplexity, validation", marker="o")
        _plot(axes, validations, "codes_used", "codes used, validation", marker=".")
        if validations:
            axes.axhline(codebook_size, color="black", linestyle=":", label=f"all {codebook_size:,} codes")
    else:
        _say(axes, NO_CODES)
    axes.set(title="codebook usage", ylabel=MEASURES["perplexity"].unit)


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


def _finish(axes: Axes, last: int, best: int | None, *, floor: bool) -> None:
    """Set the axis of steps, which all panels share, and the vertical axis."""
    axes.set(xlabel="step")
    draw_axis(axes, "x", fitting([0, last], 0, 1, log=False, floor=True))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    if axes.lines:
        fit_heights(axes, floor=floor, log=False if floor else None)
        if best is not None:
            axes.axvline(best, color="0.6", linewidth=1, linestyle="--", label="best checkpoint")
    elif not axes.texts:
        _say(axes, "nothing recorded yet")
