"""Residual quantizers in the same network: ours, and vector-quantize-pytorch's ResidualVQ as its documentation advises.

    python -m benchmarks.residual --data cifar10 --layers 4 --steps 1000

trains what has not been trained yet, adds it to docs/benchmarks-residual.json and writes docs/benchmarks-residual.md.
All see the same batches, begin with the same encoder and decoder and take the same number of steps of 32 images. Theirs
is tried with each of `RATES`, and the best by the error on validation images stands against ours, which has one rate.
"""

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from vector_quantize_pytorch import ResidualVQ

from sqvae import Annealing, Quantizer, ResidualQuantizer
from sqvae.data import load
from sqvae.distributions import perplexity
from sqvae.files import write_text
from sqvae.networks import conv_decoder, conv_encoder
from sqvae.quantizers import Stage

BATCH, CODES, DIM = 32, 256, 64
RATES = (1e-3, 3e-3, 8e-3)
RECORDS = Path("docs/benchmarks-residual.json")
PAGE = Path("docs/benchmarks-residual.md")
OURS, PEER = "ResidualQuantizer", "ResidualVQ"
ADVISED = {"kmeans_init": True, "threshold_ema_dead_code": 2, "rotation_trick": True}
"""What the documentation of ResidualVQ advises against collapse."""


class Autoencoder(nn.Module):
    """The network of the recipe `cifar10` with a residual quantizer."""

    def __init__(self, channels: int, quantizer: nn.Module) -> None:
        super().__init__()
        sizes: dict[str, Any] = {"widths": (32, 64), "mix": True, "blocks": 6}
        self.encoder = conv_encoder(channels, DIM, **sizes)
        self.decoder = conv_decoder(channels, DIM, **sizes)
        self.quantizer = quantizer

    def forward(self, x: Tensor, stage: Stage) -> tuple[Tensor, Tensor, Tensor]:
        """Images, codes (batch, ..., layers), and what the quantizer adds to the objective per sample."""
        z = self.encoder(x)
        if isinstance(self.quantizer, Quantizer):
            z_q, codes, loss = self.quantizer(z, stage)
            return self.decoder(z_q), codes, loss
        vectors, codes, losses = self.quantizer(z.flatten(2).mT)
        return self.decoder(vectors.mT.view_as(z)), codes, losses.sum()


def build(method: str, channels: int, layers: int) -> nn.Module:
    if method == OURS:
        return Autoencoder(channels, ResidualQuantizer(CODES, DIM, layers, initial_variance=20.0, channel_first=True))
    peer = ResidualVQ(dim=DIM, codebook_size=CODES, num_quantizers=layers, **ADVISED)
    return Autoencoder(channels, peer)


def train(method: str, images: Tensor, *, layers: int, steps: int, rate: float, seed: int) -> nn.Module:
    torch.manual_seed(seed)
    model = build(method, images.shape[1], layers).train()
    schedule = Annealing(steps, learning_rate=rate)
    optimizer = torch.optim.Adam(schedule.groups(model) if method == OURS else model.parameters())
    order = torch.Generator().manual_seed(seed)
    variance = (images[:10_000].float() / 255).var().item()
    for step in range(steps):
        x = images[torch.randint(len(images), (BATCH,), generator=order)].float() / 255
        stage = schedule.begin(step, optimizer)
        made, _, loss = model(x, stage)
        error = (made - x).square().mean()
        objective = x[0].numel() / 2 * error.log() + loss if method == OURS else error / variance + loss
        optimizer.zero_grad()
        objective.backward()
        optimizer.step()
    return model.eval()


@torch.no_grad()
def measure(model: nn.Module, images: Tensor, layers: int) -> dict[str, Any]:
    """The error, and the perplexity of each layer's codes, over a whole set."""
    squares, counts = 0.0, torch.zeros(layers, CODES)
    for batch in images.split(500):
        x = batch.float() / 255
        made, codes, _ = model(x, Stage())
        squares += float((made.clamp(0, 1) - x).square().sum())
        for layer, own in enumerate(codes.unbind(-1)):
            counts[layer] += own.flatten().bincount(minlength=CODES)
    return {"mse": squares / images.numel(), "perplexities": perplexity(counts).tolist()}


def runs(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for steps in options.steps:
        for layers in options.layers:
            for seed in options.seeds:
                for method, rates in ((OURS, (8e-3,)), (PEER, RATES)):
                    for rate in rates:
                        what = {"data": options.data, "method": method, "layers": layers}
                        yield {**what, "steps": steps, "rate": rate, "seed": seed}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="cifar10", help="images, as `sqvae train --data` takes them")
    parser.add_argument("--layers", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--steps", type=int, nargs="+", default=[1000])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--only", choices=(OURS, PEER))
    parser.add_argument("--records", type=Path, default=RECORDS)
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args(argv)
    sets = load(options.data)
    training, validation, test = (part.take(slice(None)) for part in (sets.train, sets.validation, sets.test))
    for run in runs(options):
        known = json.loads(options.records.read_text()) if options.records.exists() else []
        if options.only not in (None, run["method"]) or any(run.items() <= record.items() for record in known):
            continue
        start = time.perf_counter()
        settings = {key: run[key] for key in ("layers", "steps", "rate", "seed")}
        model = train(run["method"], training, **settings)
        seconds = time.perf_counter() - start
        record = {
            **run,
            "images": len(training),
            "seconds": round(seconds),
            "validation": measure(model, validation, run["layers"]),
            "test": measure(model, test, run["layers"]),
        }
        print(record, flush=True)
        known = json.loads(options.records.read_text()) if options.records.exists() else []
        write_text(options.records, json.dumps([*known, record], indent=1) + "\n")
        write_text(options.page, page([*known, record]))
    return 0


def page(records: Sequence[dict[str, Any]]) -> str:
    lines = [
        "# Residual quantizers in the same network",
        "",
        f"Written by `python -m benchmarks.residual`; do not edit. K = {CODES} codes a layer, d = {DIM}, the network of"
        f" the recipe `cifar10`, steps of {BATCH} images, Adam with a rate that falls to 0. ResidualVQ of"
        f" vector-quantize-pytorch has {', '.join(f'`{key}={value}`' for key, value in ADVISED.items())} and the best "
        f"of the rates {', '.join(f'{rate:g}' for rate in RATES)} by the error on validation images; ResidualQuantizer"
        " has the schedule `Annealing(steps)` at its own rate. Test images; the lowest perplexity is that of the layer "
        "whose codes are used least evenly.",
        "",
        "| data | layers | steps | seed | ResidualQuantizer: MSE x 1000 | lowest perplexity | ResidualVQ: MSE x 1000 "
        "| lowest perplexity | its rate |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    keys = sorted({(run["data"], run["layers"], run["steps"], run["seed"]) for run in records})
    for data, layers, steps, seed in keys:
        cell = {"data": data, "layers": layers, "steps": steps, "seed": seed}
        own, theirs = (
            [run for run in records if {**cell, "method": method}.items() <= run.items()] for method in (OURS, PEER)
        )
        row = [data, str(layers), f"{steps:,}", str(seed)]
        for found in (own, theirs):
            best = min(found, key=lambda run: run["validation"]["mse"], default=None)
            row += ["-", "-"] if best is None else [f"{1e3 * best['test']['mse']:.2f}", _least(best)]
            rate = "-" if best is None else f"{best['rate']:g}"
        lines.append(f"| {' | '.join([*row, f'{rate} of {len(theirs)}'])} |")
    return "\n".join([*lines, ""])


def _least(run: dict[str, Any]) -> str:
    return f"{min(run['test']['perplexities']):.0f}"


if __name__ == "__main__":
    raise SystemExit(main())
