"""Self-annealing, as curves over the steps of a run."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure


def save_curves(path: Path, records: Sequence[Mapping[str, Any]], codebook_size: int) -> None:
    """Draw how variances, randomness, error and the use of codes went.

    Arguments:
        records: of the run's log.
        codebook_size: 0 where there is no codebook.
    """
    steps = [record for record in records if record["kind"] == "step"]
    validations = [record for record in records if record["kind"] == "validation"]
    figure = Figure(figsize=(11, 6.5), layout="constrained")
    (variances, randomness), (error, use) = figure.subplots(2, 2)
    for name, label in (
        ("variance", r"quantization, $\sigma_\varphi^2$"),
        ("relative_variance", r"$\sigma_\varphi^2$ over the codes' mean squared distance"),
        ("decoder_variance", r"decoder, $\sigma^2$"),
        ("concentration", r"quantization, $\kappa_\varphi$"),
    ):
        _plot(variances, steps, name, label, relative=True)
    variances.set(title="spread of quantization and decoder, relative to the start", yscale="log")
    _plot(randomness, steps, "entropy_per_position", "mean entropy of a position")
    randomness.set(title="randomness of the quantization, in nats")
    _plot(error, steps, "mse", "training batches")
    _plot(error, validations, "mse", "validation, likeliest codes", marker="o")
    error.set(title="mean squared error", yscale="log")
    _plot(use, validations, "perplexity", "perplexity, validation", marker="o")
    _plot(use, validations, "codes_used", "codes used, validation", marker=".")
    use.set(title="use of the codebook")
    if codebook_size:
        randomness.axhline(math.log(codebook_size), color="black", linestyle=":", label=f"uniform over {codebook_size}")
        use.axhline(codebook_size, color="black", linestyle=":", label="all codes")
    for axes in (randomness, use):
        axes.set_ylim(bottom=0)
    for axes in (variances, randomness, error, use):
        axes.set_xlabel("step")
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize="small")
    figure.savefig(path, dpi=110)


def _plot(
    axes: Axes, records: Sequence[Mapping[str, Any]], name: str, label: str, *, relative: bool = False, **style: Any
) -> None:
    points = [(record["step"], record[name]) for record in records if name in record]
    if points:
        scale = points[0][1] if relative and points[0][1] else 1
        axes.plot([step for step, _ in points], [value / scale for _, value in points], label=label, **style)
