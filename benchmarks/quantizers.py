"""Speed and memory of the quantizers, as ratios measured side by side in one run.

    python -m benchmarks.quantizers                 prints the table
    python -m benchmarks.quantizers --out FILE.md   writes it as well

One step is forward and backward: for a quantizer, of ``loss + z_q.sum()`` to encodings, codebook and
variance.
"""

import multiprocessing
import resource
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import torch
from torch import Tensor
from torch.nn.functional import gumbel_softmax
from vector_quantize_pytorch import ResidualVQ, VectorQuantize

from benchmarks.side_by_side import Result, Step, arguments, at_least, at_most, median_seconds, report
from sqvae import GaussianQuantizer, ResidualQuantizer, VonMisesFisherQuantizer


@dataclass(frozen=True)
class Sizes:
    """How large the problems are."""

    positions: int = 8192
    codes: int = 512
    dim: int = 64
    kept_codes: int = 4096
    many_codes: int = 65_536
    layers: tuple[int, ...] = (4, 8)
    many_layers: int = 32
    most_memory: int = 4 * 2**30
    rounds: int = 21
    slow_rounds: int = 3

    @classmethod
    def quick(cls) -> "Sizes":
        """Small enough for a test: it shows that the benchmark runs, not what it measures."""
        return cls(
            positions=64,
            codes=32,
            dim=8,
            kept_codes=64,
            many_codes=128,
            layers=(2,),
            many_layers=3,
            rounds=2,
            slow_rounds=1,
        )


def encodings(sizes: Sizes) -> Tensor:  # -> (8, positions / 8, d)
    torch.manual_seed(0)
    return torch.randn(8, sizes.positions // 8, sizes.dim, requires_grad=True)


def step_of(module: torch.nn.Module, z: Tensor, **inputs: Tensor | float) -> Step:
    """One training step of a quantizer that returns (z_q, codes, loss)."""

    def step() -> None:
        module.zero_grad()
        z.grad = None
        z_q, _, loss = module(z, **inputs)
        (loss.sum() + z_q.sum()).backward()

    return step


def textbook_step(quantizer: GaussianQuantizer, z: Tensor, log_variance: Tensor | None = None) -> Step:
    """The same step as the formulas stand in the paper: type I by the expanded square, type IV by broadcasting."""
    codebook, own = quantizer.codebook, quantizer.log_variance

    def step() -> None:
        quantizer.zero_grad()
        z.grad = None
        rows = z.reshape(-1, quantizer.dim)
        if log_variance is None:
            scale = own.exp()
            squares = rows.square().sum(-1, keepdim=True) + codebook.square().sum(-1) - 2 * rows @ codebook.T
            logits = -squares / (2 * scale)
        else:
            scale = (own + log_variance.reshape(-1, quantizer.dim)).exp()
            logits = -((rows.unsqueeze(1) - codebook) ** 2 / (2 * scale.unsqueeze(1))).sum(-1)
        probabilities, log_probabilities = logits.softmax(-1), logits.log_softmax(-1)
        entropy = -(probabilities * log_probabilities).sum()
        z_q = gumbel_softmax(logits, tau=0.7) @ codebook
        regularizer = ((rows - z_q) ** 2 / (2 * scale)).sum()
        ((regularizer - entropy) / len(z) + z_q.sum()).backward()

    return step


def against_vector_quantize(sizes: Sizes) -> list[Result]:
    z = encodings(sizes)
    ours = GaussianQuantizer(sizes.codes, sizes.dim)
    steps = [
        step_of(ours, z, temperature=0.7),
        step_of(VectorQuantize(dim=sizes.dim, codebook_size=sizes.codes, decay=0.99), z),
        textbook_step(ours, z),
        step_of(VonMisesFisherQuantizer(sizes.codes, sizes.dim), z, temperature=0.7),
    ]
    gaussian, peer, textbook, vmf = median_seconds(steps, sizes.rounds, "type I")
    return [
        at_most("Gaussian I / VectorQuantize with EMA", gaussian, peer, 1.0),
        at_most("Gaussian I / plain eager version", gaussian, textbook, 0.5),
        at_most("von Mises-Fisher / Gaussian I", vmf, gaussian, 1.3),
    ]


def against_broadcasting(sizes: Sizes) -> list[Result]:
    z = encodings(sizes)
    quantizer = GaussianQuantizer(sizes.codes, sizes.dim, "per_dimension")
    log_variance = torch.zeros_like(z)
    ours, textbook = (
        step_of(quantizer, z, temperature=0.7, log_variance=log_variance),
        textbook_step(quantizer, z, log_variance),
    )
    (fast,) = median_seconds([ours], sizes.rounds, "type IV")
    (slow,) = median_seconds([textbook], sizes.slow_rounds, "type IV, broadcast")
    return [at_least("broadcast form / Gaussian IV", slow, fast, 50, digits=0)]


def cost_of_checks(sizes: Sizes) -> list[Result]:
    """The same step with and without the checks of its input; they read z once."""
    z = encodings(sizes)
    step = step_of(GaussianQuantizer(sizes.codes, sizes.dim), z, temperature=0.7)

    def unchecked() -> None:
        with mock.patch("sqvae.quantizers.contract.check_finite"):
            step()

    checked, bare = median_seconds([step, unchecked], 2 * sizes.rounds, "checks")
    return [at_most("Gaussian I checked / unchecked", checked, bare, 1.05)]


def of_certain_choices(sizes: Sizes) -> list[Result]:
    """Choices that are nearly certain against those at the beginning of a run: small probabilities must not be slow."""
    z = encodings(sizes)
    variances = (10.0, 1.0, 0.3, 0.1)
    quantizers = [GaussianQuantizer(sizes.codes, sizes.dim, initial_variance=variance) for variance in variances]
    steps = [step_of(quantizer, z, temperature=0.5) for quantizer in quantizers]
    early, *later = median_seconds(steps, sizes.rounds, "certain choices")
    return [at_most("Gaussian I, variance 1, 0.3 or 0.1 (the slowest) / variance 10", max(later), early, 1.2)]


def residual(sizes: Sizes) -> list[Result]:
    """Several layers against as many steps of one layer, and against the peer's residual quantizer."""
    z = encodings(sizes)
    single = step_of(GaussianQuantizer(sizes.codes, sizes.dim), z, temperature=0.7)
    results = []
    for layers in sizes.layers:
        several = step_of(ResidualQuantizer(sizes.codes, sizes.dim, layers), z, temperature=0.7)
        peer = ResidualVQ(dim=sizes.dim, codebook_size=sizes.codes, num_quantizers=layers, threshold_ema_dead_code=2)
        seconds, theirs, one = median_seconds([several, step_of(peer, z), single], sizes.rounds, f"{layers} layers")
        results += [
            at_most(f"residual, {layers} layers / {layers} x Gaussian I", seconds, layers * one, 1.15),
            at_most(f"residual, {layers} layers / ResidualVQ with dead-code threshold", seconds, theirs, 1.0),
        ]
    few, many = (extra_peak_memory(sizes, layers) for layers in (1, sizes.many_layers))
    results.append(
        Result(
            f"extra peak memory, {sizes.many_layers} layers of K = {sizes.many_codes:,} / one layer",
            f"{many / 2**20:.0f} MiB",
            f"{few / 2**20:.0f} MiB",
            f"{many / 2**30:.2f} GiB",
            f"<= {sizes.most_memory / 2**30:g} GiB",
            many <= sizes.most_memory,
        )
    )
    return results


def with_many_codes(sizes: Sizes) -> list[Result]:
    z = encodings(sizes)
    kept = step_of(GaussianQuantizer(sizes.kept_codes, sizes.dim), z, temperature=0.7)
    many = step_of(GaussianQuantizer(sizes.many_codes, sizes.dim), z, temperature=0.7)
    few_seconds, many_seconds = median_seconds([kept, many], sizes.slow_rounds, "large codebook")
    few, lots = few_seconds / sizes.kept_codes, many_seconds / sizes.many_codes
    what = f"time per logit, K = {sizes.many_codes:,} / K = {sizes.kept_codes:,}"
    ratio = lots / few
    per_logit = [f"{1e9 * seconds / sizes.positions:.2f} ns" for seconds in (lots, few)]
    timing = Result(what, per_logit[0], per_logit[1], f"{ratio:.2f}", "<= 1.6", ratio <= 1.6)
    extra = extra_peak_memory(sizes)
    memory = Result(
        f"extra peak memory of a step, K = {sizes.many_codes:,}",
        f"{extra / 2**20:.0f} MiB",
        f"{sizes.positions * sizes.many_codes * 4 / 2**20:.0f} MiB (logits)",
        f"{extra / 2**30:.2f} GiB",
        "<= 1 GiB",
        extra <= 2**30,
    )
    return [timing, memory]


def extra_peak_memory(sizes: Sizes, layers: int = 1) -> int:
    """Bytes by which a training step raises the peak memory of a fresh process that has its inputs already."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_measure_memory, (sizes, layers))


def _measure_memory(sizes: Sizes, layers: int) -> int:
    z = encodings(sizes)
    quantizer: torch.nn.Module = GaussianQuantizer(sizes.many_codes, sizes.dim)
    if layers > 1:
        quantizer = ResidualQuantizer(sizes.many_codes, sizes.dim, layers)
    step_of(GaussianQuantizer(2, sizes.dim), z, temperature=0.7)()  # loads what any step loads
    before = _peak_memory(reset=True)
    step_of(quantizer, z, temperature=0.7)()
    return _peak_memory() - before


def _peak_memory(*, reset: bool = False) -> int:
    """The most memory this process has held, in bytes, since the last reset where the system has one (Linux)."""
    status = Path("/proc/self/status")
    if status.exists():
        if reset:
            Path("/proc/self/clear_refs").write_text("5")
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


SECTIONS = (
    against_vector_quantize,
    against_broadcasting,
    cost_of_checks,
    of_certain_choices,
    with_many_codes,
    residual,
)


def main(argv: Sequence[str] | None = None) -> int:
    options = arguments(__doc__, argv)
    sizes = Sizes.quick() if options.quick else Sizes()
    results = [result for section in SECTIONS for result in section(sizes)]
    setting = (
        f"One step is forward and backward. {sizes.positions:,} positions, d = {sizes.dim}, K = {sizes.codes} unless a "
        f"row says otherwise; random encodings, seed 0, float32, {sizes.rounds} rounds "
        f"({sizes.slow_rounds} for the slowest)."
    )
    report("Benchmarks of the quantizers", setting, results, options.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
