"""What is seen of a model while it trains and when it is judged, whatever its data."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from sqvae.metrics import Comparison
from sqvae.models import Objective
from sqvae.quantizers import LevelQuantizers, Quantized, QuantizedLevels, Quantizer, all_layers
from sqvae.runs.diagnosis import RELATIVE_VARIANCE, SHARE, remedy
from sqvae.tokenizers import quantizer_of
from sqvae.training import Validation, stream_seed


@dataclass(frozen=True)
class Evaluation:
    """What a model does to a set of data."""

    measures: dict[str, float]
    """By name; see `sqvae.metrics.ReconstructionTotals`."""
    counts: tuple[int, ...]
    """How often each code was taken."""
    originals: Tensor = field(repr=False)
    """(n, C, H, W), in [0, 1]: a few examples from all of the set, as one looks at them,"""
    reconstructions: Tensor = field(repr=False)
    """what became of them,"""
    errors: Tensor | None = field(default=None, repr=False)
    """and where that is wrong, if the eye can't tell;"""
    classes: tuple[tuple[str, str], ...] = ()
    """of label maps, the names and colours of the classes that occur in these examples, the most frequent first."""
    notes: tuple[str, ...] = ()
    """What could not be measured and why, in sentences."""

    def as_validation(self, warnings: tuple[str, ...], examples: int) -> Validation:
        """The same, as the training loop takes it.

        Arguments:
            examples: how many there were.
        """
        measures = dict(self.measures)
        loss = measures.pop("loss_per_dimension")
        shown = (self.originals, self.reconstructions, self.errors)
        return Validation(loss, measures, warnings, self.counts, *shown, classes=self.classes, examples=examples)


@torch.no_grad()
def annealing_of(quantizer: Quantizer | LevelQuantizers, outcome: Objective) -> dict[str, float]:
    """What self-annealing looks like from outside, at one training step."""
    quantized, fit = outcome.quantized, outcome.fit
    positions = max(1, sum(level.codes[0].numel() for level in quantized.levels))
    found = {
        "reconstruction": float(fit.loss),
        "latent": float(quantized.loss),
        "entropy_per_position": float(quantized.entropy) / positions,
        "bound": float(outcome.bound.nats),
    }
    if len(quantized.counts):
        found["perplexity"] = float(quantized.perplexity.log().mean().exp())
    if quantized.variance is not None:
        found["variance"] = float(quantized.variance.mean())
        if min(quantizer.codebook_sizes, default=1) > 1:
            found["relative_variance"] = _relative_variance(quantizer, found["variance"])
    if quantized.concentration is not None:
        found["concentration"] = float(quantized.concentration)
    if fit.variance is not None:
        found["decoder_variance"] = float(fit.variance)
    if fit.concentration is not None:
        found["decoder_concentration"] = float(fit.concentration)
    return found | levels_of(quantizer, quantized)


def _relative_variance(quantizer: Quantizer | LevelQuantizers, variance: float) -> float:
    """A variance over the mean squared distance between two codes: the scale that it is to be seen on."""
    distances = [2 * float(book.codebook.float().var(0).sum()) for book in quantizer.books]
    return variance * len(distances) / sum(distances)


@torch.no_grad()
def levels_of(quantizer: Quantizer | LevelQuantizers, quantized: Quantized | QuantizedLevels) -> dict[str, float]:
    """How much each level of a hierarchy says: the entropy of its choices, as a share of the most that there can be,
    and its variance. Nothing for a model of one level."""
    found: dict[str, float] = {}
    if len(quantized.levels) == 1:
        return found
    for number, (part, level) in enumerate(zip(quantizer.levels, quantized.levels, strict=True), 1):
        sizes = part.codebook_sizes[: len(level.layer_sizes or (1,))]
        taken = zip(level.counts.split(sizes), sizes, strict=True)  # log K for each code that was taken
        most = sum(float(own.sum()) * math.log(size) for own, size in taken) / level.codes.shape[0]
        if most > 0 and part.relaxes:
            found[f"{SHARE}{number}"] = float(level.entropy) / most
        if level.variance is not None and min(part.codebook_sizes) > 1:
            found[f"{RELATIVE_VARIANCE}{number}"] = _relative_variance(part, float(level.variance.mean()))
    return found


GAP_BATCHES = 4
"""On so many batches single codes and mixtures are compared."""


@torch.no_grad()
def mixture_gap(
    model: nn.Module,
    batches: Iterable[Any],
    temperature: float,
    comparison: Callable[[], Comparison],
    add: Callable[[Comparison, Any, Objective], object],
) -> dict[str, float]:
    """The error of the likeliest codes over that of what training decodes: relaxed draws, which are mixtures of codes.

    Near 1 where a model has annealed; and the entropy of a position's choice, near 0 there. Of a hierarchy also how
    much each level says: see :func:`levels_of`. Nothing for quantizers that don't draw.

    Arguments:
        model: in ``eval()``.
        batches: of data, as the model takes it.
        temperature: of the relaxation, as training has it now.
        comparison: of data with what became of it; a new one each time.
        add: adds a batch and what the model made of it to a comparison.
    """
    quantizer = quantizer_of(model)
    if not quantizer.relaxes:
        return {}
    single, mixed = comparison(), comparison()
    entropies, levels = [], []
    with torch.random.fork_rng():
        torch.manual_seed(stream_seed(0, "mixtures"))
        for x in batches:
            objective = model(x)
            add(single, x, objective)
            entropies.append(_entropy_per_position(objective.quantized, quantizer.codebook_sizes))
            levels.append(levels_of(quantizer, objective.quantized))
            quantizer.train()
            try:
                with all_layers(quantizer):
                    add(mixed, x, model(x, temperature))
            finally:
                quantizer.eval()
    one, other = (compared.measures()[compared.error] for compared in (single, mixed))
    found = {"mixture_gap": one / other} if other > 0 else {}
    for name in levels[0] if levels else ():
        found[name] = sum(batch[name] for batch in levels) / len(levels)
    return {**found, "entropy_per_position": sum(entropies) / len(entropies)} if entropies else found


def _entropy_per_position(quantized: Quantized | QuantizedLevels, codebook_sizes: Sequence[int]) -> float:
    """In nats, over the positions that count, and over layers: for each of them the bound pays log K."""
    constants = float(quantized.divergence - quantized.regularizer + quantized.entropy)
    paid = sum(map(math.log, codebook_sizes)) / len(codebook_sizes)
    codes = constants / paid if paid else 1.0
    return float(quantized.entropy) / max(codes, 1e-9)


class CodeWatch:
    """Notices where codes die.

    Arguments:
        what: what they are counted on.
        quantizer: the name of the model's: what to do about it depends on what it has.
    """

    def __init__(self, what: str, quantizer: str) -> None:
        self.what = what
        self.quantizer = quantizer
        self._most_used = 0.0
        self._collapsed = False

    def state(self) -> dict[str, float]:
        """The most codes that were used so far, and whether it was said that there are few."""
        return {"most_used": self._most_used, "collapsed": float(self._collapsed)}

    def restore(self, state: Mapping[str, float]) -> None:
        """Remember them again."""
        self._most_used = state["most_used"]
        self._collapsed = bool(state.get("collapsed"))

    def warnings(self, evaluation: Evaluation) -> Iterator[str]:
        """A word where codes die, or have died; that they have is said once, until more are used again."""
        size, used = len(evaluation.counts), evaluation.measures.get("codes_used", 0)
        positions = sum(evaluation.counts)
        known, self._collapsed = self._collapsed, bool(size) and used < 0.1 * min(size, positions)
        if self._collapsed and not known:
            yield (
                f"the codebook has collapsed: {int(used)} of {size} codes are used on the {self.what}. "
                f"{remedy(self.quantizer)}"
            )
        elif not self._collapsed and size and used < 0.5 * self._most_used:
            yield (
                f"codes are dying: {int(used)} of {size} are used on the {self.what}, after "
                f"{int(self._most_used)} before. If this goes on, lower training.learning_rate"
            )
        self._most_used = max(self._most_used, used)
