"""Levels of codes trained together against models apart, at equal bits, and what each level contributes.

    python -m benchmarks.hierarchy --data mnist --steps 1000

trains what has not been trained yet, adds it to docs/benchmarks-hierarchy.json and writes docs/benchmarks-hierarchy.md.
All models see the same batches and have the same schedule. Two models apart are one for each resolution, each trained
by itself, as in figure 10. Their images are combined with the weight that is best on validation images.
"""

import argparse
import json
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from sqvae import Annealing, HierarchicalModel
from sqvae.config import Experiment, override
from sqvae.data import Preprocessing, load
from sqvae.distributions import perplexity
from sqvae.files import write_text
from sqvae.modalities.images.assembly import build_model
from sqvae.models.hierarchy import expected
from sqvae.recipes import RECIPES

BATCH, CODES, SIDE = 32, 128, 32
COARSE, FINE = 4 * 4, 8 * 8
"""The number of positions of each resolution, for images of 32x32."""
BITS = (COARSE + FINE) * math.log2(CODES)
RECORDS = Path("docs/benchmarks-hierarchy.json")
PAGE = Path("docs/benchmarks-hierarchy.md")

SETTINGS = {
    "together": ["network.levels=2"],
    "fine": [],
    "coarse": ["network.widths=16,32,64"],
    "one level": [f"quantizer.codebook_size={round(2 ** (BITS / FINE))}"],
    "residual layers": ["network.levels=2", "quantizer.name=residual-1", "quantizer.layers=2"],
}
"""The models by name, with what differs from the recipe `mnist`. The last has twice the bits, and stands by itself."""


def experiment_of(name: str) -> Experiment:
    shared = [f"data.size={SIDE}", "data.channels=1", f"quantizer.codebook_size={CODES}"]
    return override(RECIPES["mnist"](), [*shared, *SETTINGS[name]])


def train(name: str, images: Tensor, *, steps: int, seed: int) -> Any:
    torch.manual_seed(seed)
    model = build_model(experiment_of(name), (1, SIDE, SIDE)).train()
    schedule = Annealing(steps)
    optimizer = torch.optim.Adam(schedule.groups(model))
    order = torch.Generator().manual_seed(seed)
    for step in range(steps):
        x = images[torch.randint(len(images), (BATCH,), generator=order)].float() / 255
        objective = model(x, schedule.begin(step, optimizer))
        optimizer.zero_grad()
        objective.loss.backward()
        optimizer.step()
    return model.eval()


@torch.no_grad()
def through(made: Callable[[Tensor], Tensor], images: Tensor) -> Tensor:
    """What becomes of all images."""
    return torch.cat([made(batch.float() / 255).clamp(0, 1) for batch in images.split(500)])


def error(made: Tensor, images: Tensor) -> float:
    return (
        sum(
            float((some - batch.float() / 255).square().sum())
            for some, batch in zip(made.split(500), images.split(500), strict=True)
        )
        / images.numel()
    )


@torch.no_grad()
def perplexities(model: Any, images: Tensor) -> list[float]:
    """The perplexity of each codebook over a set."""
    counts = sum(model(batch.float() / 255).quantized.counts for batch in images.split(500))
    return [float(perplexity(own)) for own in torch.as_tensor(counts).split(model.quantizer.codebook_sizes)]


def without(model: HierarchicalModel, level: int) -> Callable[[Tensor], Tensor]:
    """Reconstruction with the codes of a level removed: its latents are what the model expects of them."""

    def made(x: Tensor) -> Tensor:
        quantizers = model.quantizer.levels
        latents = [quantizer.decode(own) for quantizer, own in zip(quantizers, model.encode(x), strict=True)]
        latents[level] = expected(quantizers[level], latents[level])
        return model.likelihood.predict(model.decoder(tuple(latents)))

    return made


def best_weight(one: Tensor, other: Tensor, images: Tensor) -> float:
    r"""The weight w for which :math:`w\,a + (1 - w)\,b` has the smallest squared error."""
    difference = (one - other).double()
    rest = images.double() / 255 - other
    return float((difference * rest).sum() / difference.square().sum())


def measure(models: dict[str, Any], validation: Tensor, test: Tensor) -> dict[str, Any]:
    """Errors on test images."""
    joint: HierarchicalModel = models["together"]
    of_validation = {name: through(models[name].reconstruct, validation) for name in ("coarse", "fine")}
    of_test = {name: through(model.reconstruct, test) for name, model in models.items()}
    weight = best_weight(of_validation["coarse"], of_validation["fine"], validation)
    return {
        "mse": {name: error(made, test) for name, made in of_test.items()},
        "apart": error(weight * of_test["coarse"] + (1 - weight) * of_test["fine"], test),
        "weight": weight,
        "perplexities": {name: perplexities(model, test) for name, model in models.items()},
        "first level only": error(through(lambda x: joint.reconstruct(x, levels=1), test), test),
        "without": [error(through(without(joint, level), test), test) for level in range(joint.levels)],
        "mean image": error((validation.float() / 255).mean(0).expand(len(test), 1, SIDE, SIDE), test),
    }


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="mnist", help="images, as `sqvae train --data` takes them")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--records", type=Path, default=RECORDS)
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args(argv)
    sets = load(options.data, Preprocessing(size=SIDE, channels=1))
    training, validation, test = (part.take(slice(None)) for part in (sets.train, sets.validation, sets.test))
    for seed in options.seeds:
        known = json.loads(options.records.read_text()) if options.records.exists() else []
        run = {"data": options.data, "steps": options.steps, "seed": seed}
        if any(run.items() <= record.items() for record in known):
            continue
        start = time.perf_counter()
        models = {name: train(name, training, steps=options.steps, seed=seed) for name in SETTINGS}
        record = {**run, "images": len(training), **measure(models, validation, test)}
        record["seconds"] = round(time.perf_counter() - start)
        print(record, flush=True)
        write_text(options.records, json.dumps([*known, record], indent=1) + "\n")
    write_text(options.page, page(json.loads(options.records.read_text())))
    return 0


def page(records: Sequence[dict[str, Any]]) -> str:
    lines = [
        "# Levels of codes, together and apart",
        "",
        f"Written by `python -m benchmarks.hierarchy`; do not edit. Images of {SIDE}x{SIDE}, the network of the recipe "
        f"`mnist`, K = {CODES}, d = 64, steps of {BATCH} images, the schedule `Annealing(steps)`. Two levels of 4x4 "
        f"and 8x8 codes have {BITS:.0f} bits. Two models apart have the same codes, each decoded by itself, and their "
        "images are combined with the weight that is best on validation images. One level has 8x8 codes of a codebook "
        "with as many bits. MSE x 1000 on test images; lower is better.",
        "",
        "| data | steps | seed | together | two models apart | weight of the coarse one | fine model alone "
        "| coarse model alone | one level |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for record in records:
        mse = record["mse"]
        cells = [mse["together"], record["apart"], mse["fine"], mse["coarse"], mse["one level"]]
        together, apart, fine, coarse, one = (f"{1e3 * value:.2f}" for value in cells)
        lines.append(f"| {_run(record)} | {together} | {apart} | {record['weight']:.2f} | {fine} | {coarse} | {one} |")
    lines += [
        "",
        "What the levels of the model that was trained together contribute. A level without its codes has the mean of "
        "its code vectors at all positions. The error of the mean image is that of a decoder that sees nothing.",
        "",
        "| data | steps | seed | all codes | without level 1 | without level 2 | mean image | perplexity of level 1 "
        "| perplexity of level 2 |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for record in records:
        cells = [record["mse"]["together"], *record["without"], record["mean image"]]
        used = [f"{value:.0f} of {CODES}" for value in record["perplexities"]["together"]]
        lines.append(f"| {' | '.join([_run(record), *(f'{1e3 * value:.2f}' for value in cells), *used])} |")
    lines += [
        "",
        "With two residual layers in each level, and so twice the bits:",
        "",
        "| data | steps | seed | MSE x 1000 | perplexity of each layer of each level |",
        "|---|---|---|---|---|",
    ]
    for record in records:
        used_by = ", ".join(f"{value:.0f}" for value in record["perplexities"]["residual layers"])
        lines.append(f"| {_run(record)} | {1e3 * record['mse']['residual layers']:.2f} | {used_by} |")
    return "\n".join([*lines, ""])


def _run(record: dict[str, Any]) -> str:
    return f"{record['data']} | {record['steps']:,} | {record['seed']}"


if __name__ == "__main__":
    raise SystemExit(main())
