"""Speed of sampling from priors: with what a draft remembers, against evaluating every map anew for every position.

    python -m benchmarks.sampling                 prints the table
    python -m benchmarks.sampling --out FILE.md   writes it as well

The priors have their default sizes and weights as they begin: what they have learned makes no difference to the time.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from benchmarks.side_by_side import Result, arguments, at_least, median_seconds, report
from sqvae.priors import PRIORS, Prior, RecomputedDraft, draw, sample

CODES = 512
TARGETS = {"pixelcnn": 10.0, "pixelsnail": 5.0}


@dataclass(frozen=True)
class Sizes:
    """What to sample, and how much of it to measure."""

    shape: tuple[int, int] = (16, 16)
    many: int = 64
    """Maps side by side, for which the slow way is measured at some positions only:"""
    positions: int = 4
    few: int = 2
    """Maps side by side, for which it is measured whole."""
    channels: int = 128
    rounds: int = 3

    @classmethod
    def quick(cls) -> "Sizes":
        """Short enough for a test: it shows that the benchmark runs, not what it measures."""
        return cls(shape=(4, 4), many=4, positions=2, channels=16, rounds=1)


def naive_positions(prior: Prior, maps: int, sizes: Sizes) -> None:
    """The slow way for some positions. Every position costs the same, as each evaluates the whole map."""
    draft = RecomputedDraft(prior, maps, sizes.shape)
    for _ in range(sizes.positions):
        draft.put(draw(draft.next_logits()))


def of_prior(name: str, sizes: Sizes) -> list[Result]:
    """One prior, with many maps side by side and with few."""
    prior = PRIORS[name](CODES, channels=sizes.channels).eval()
    height, width = sizes.shape
    times = height * width / sizes.positions
    some, cached = median_seconds(
        [lambda: naive_positions(prior, sizes.many, sizes), lambda: void(sample(prior, sizes.many, sizes.shape))],
        sizes.rounds,
        f"{name}, {sizes.many} maps",
    )
    whole, cached_whole = median_seconds(
        [
            lambda: void(sample(prior, sizes.few, sizes.shape, draft=RecomputedDraft)),
            lambda: void(sample(prior, sizes.few, sizes.shape)),
        ],
        max(1, sizes.rounds // 3),
        f"{name}, {sizes.few} maps",
    )
    measured = f"{sizes.positions} of {height * width} positions, times {times:g}"
    target = TARGETS[name]
    return [
        at_least(f"{name}, {sizes.many} maps: anew ({measured}) / remembered", times * some, cached, target, digits=0),
        at_least(f"{name}, {sizes.few} maps: anew (all positions) / remembered", whole, cached_whole, target, digits=0),
    ]


def void(value: object) -> None:
    """Forget a value."""


def main(argv: Sequence[str] | None = None) -> int:
    options = arguments(__doc__, argv)
    sizes = Sizes.quick() if options.quick else Sizes()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    results = [result for name in TARGETS for result in of_prior(name, sizes)]
    height, width = sizes.shape
    setting = (
        f"Maps of {height}x{width} codes, K = {CODES}, {sizes.channels} channels, float32, {sizes.rounds} rounds. With "
        f"{sizes.many} maps the slow way is measured at {sizes.positions} positions and multiplied, since it does the "
        f"same at each; with {sizes.few} maps it is measured whole."
    )
    report("Benchmarks of sampling", setting, results, options.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
