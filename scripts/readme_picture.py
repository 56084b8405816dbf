#!/usr/bin/env python3
"""Draw docs/readme.png: codebook usage and reconstruction error over the size of the codebook, on MNIST.

    make readme-picture

It reads the records of figure 5 (docs/results/records), which `sqvae reproduce figure-5 --only mnist` writes, and
prints what the caption must say: the data, the steps and the seed.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

ROOT = Path(__file__).parents[1]
DIM = "64"
LINES = {
    "sq-vae-1": ("SQ-VAE", "#1f6fb4", "o"),
    "vq-vae-ema-reset": ("VQ-VAE (EMA + reset)", "#c8553d", "D"),
    "vq-vae-ema": ("VQ-VAE (EMA)", "#e09f3e", "s"),
}
"""Label, colour and marker of each model, by its name in the records."""


def records_of(folder: Path) -> list[dict]:
    """The records of figure 5 on MNIST that vary the size of the codebook, from the smallest to the largest."""
    found = []
    for file in sorted(folder.glob("mnist-*.json")):
        record = json.loads(file.read_text(encoding="utf-8"))
        wanted = {"data": "mnist", "method": record["tags"].get("method"), "d": DIM, "scale": "short"}
        others = set(record["tags"]) - {*wanted, "k", "seed"}
        if "k" in record["tags"] and not others and wanted.items() <= record["tags"].items():
            found.append(record)
    return sorted((one for one in found if one["tags"]["method"] in LINES), key=lambda one: int(one["tags"]["k"]))


def curve(records: Sequence[Mapping], method: str, measure: str) -> dict[int, float]:
    """A measure on the test set by the number of codes; with several seeds, their mean."""
    values: dict[int, list[float]] = {}
    for record in records:
        if record["tags"]["method"] == method:
            values.setdefault(int(record["tags"]["k"]), []).append(record["measures"][measure])
    return {size: sum(several) / len(several) for size, several in values.items()}


def caption(records: Sequence[Mapping]) -> str:
    """What was run, in one sentence."""
    pictures = {record["pictures"]["test"] for record in records}
    steps = {record["steps"] for record in records}
    batches = {record["experiment"]["training"]["batch_size"] for record in records}
    seeds = sorted({record["tags"]["seed"] for record in records}, key=int)
    (test,), (number,), (batch,) = pictures, steps, batches  # all models alike
    return (
        f"MNIST, the {test:,} test images, after {number:,} steps of {batch} images, codes of {DIM} dimensions, "
        f"seed {' and '.join(seeds)}"
    )


def draw(records: Sequence[Mapping]) -> Figure:
    """Two panels side by side: perplexity, and mean squared error."""
    figure = Figure(figsize=(9, 3.7), dpi=110, layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2)
    sizes = sorted({int(record["tags"]["k"]) for record in records})
    left.plot(sizes, sizes, color="0.55", linestyle=(0, (4, 3)), linewidth=1.2)
    left.annotate(
        "all K codes used", (sizes[3], sizes[3]), (-6, 9), textcoords="offset points", ha="right", color="0.4"
    )
    for order, (method, (label, colour, marker)) in zip((5, 4, 3), LINES.items(), strict=True):
        for axes, measure, unit in ((left, "perplexity", 1), (right, "mse", 1000)):
            points = curve(records, method, measure)
            heights = [unit * value for value in points.values()]
            axes.plot(
                list(points),
                heights,
                color=colour,
                marker=marker,
                linewidth=2.2,
                markersize=6,
                label=label,
                zorder=order,
            )
    for axes in (left, right):
        axes.set_xscale("log", base=2)
        axes.set_xticks(sizes, [str(size) for size in sizes])
        axes.set_xlabel("codebook size K")
        axes.grid(color="0.9", linewidth=0.8)
        axes.spines[["top", "right"]].set_visible(False)
    left.set_yscale("log", base=2)
    plain(left, sizes)
    left.set_title("Codebook usage (perplexity): higher is better", fontsize=11, loc="left")
    right.set_ylim(0, 5.3)
    right.set_title("Reconstruction error (MSE x 1000): lower is better", fontsize=11, loc="left")
    handles, labels = right.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return figure


def plain(axes: Axes, ticks: Sequence[int]) -> None:
    """Whole numbers beside a logarithmic axis."""
    axes.set_yticks([8, *ticks], ["8", *map(str, ticks)])
    axes.yaxis.set_minor_formatter(NullFormatter())


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=Path, default=ROOT / "docs" / "results" / "records")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "readme.png")
    given = parser.parse_args(arguments)
    records = records_of(given.records)
    if not records:
        parser.error(f"there are no records of figure 5 on MNIST in {given.records}")
    draw(records).savefig(given.out, metadata={"Software": None})  # the same bytes from the same records
    print(f"{given.out}: {caption(records)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
