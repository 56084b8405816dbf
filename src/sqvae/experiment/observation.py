"""What is seen of a model while it trains and when it is judged, whatever its data."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from sqvae.models import Objective
from sqvae.quantizers import Quantizer
from sqvae.training import Validation


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
    """and where that is wrong, if the eye can't tell."""

    def as_validation(self, warnings: tuple[str, ...]) -> Validation:
        """The same, as the training loop takes it."""
        measures = dict(self.measures)
        loss = measures.pop("loss_per_dimension")
        return Validation(loss, measures, warnings, self.counts, self.originals, self.reconstructions, self.errors)


@torch.no_grad()
def annealing_of(quantizer: Quantizer, outcome: Objective) -> dict[str, float]:
    """What self-annealing looks like from outside, at one training step."""
    quantized, fit = outcome.quantized, outcome.fit
    positions = max(1, quantized.codes[0].numel())
    found = {
        "reconstruction": float(fit.loss),
        "latent": float(quantized.loss),
        "entropy_per_position": float(quantized.entropy) / positions,
        "bound": float(outcome.bound.nats),
    }
    if len(quantized.counts):
        found["perplexity"] = float(quantized.perplexity)
    if quantized.variance is not None:
        found["variance"] = float(quantized.variance.mean())
        if len(quantized.counts) > 1:
            # Over the mean squared distance between two codes: the scale that the variance is to be seen on.
            codebook = quantizer.get_parameter("codebook").float()
            found["relative_variance"] = found["variance"] / (2 * float(codebook.var(0).sum()))
    if quantized.concentration is not None:
        found["concentration"] = float(quantized.concentration)
    if fit.variance is not None:
        found["decoder_variance"] = float(fit.variance)
    if fit.concentration is not None:
        found["decoder_concentration"] = float(fit.concentration)
    return found


class CodeWatch:
    """Notices where codes die.

    Arguments:
        what: what they are counted on.
        quantizer: that of the model: what to do about it depends on what it has.
    """

    def __init__(self, what: str, quantizer: nn.Module | None = None) -> None:
        self.what = what
        self._noise = "quantizer.initial_variance or " if hasattr(quantizer, "log_variance") else ""
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
                f"Train longer, raise training.learning_rate, or lower {self._noise}quantizer.codebook_size"
            )
        elif not self._collapsed and size and used < 0.5 * self._most_used:
            yield (
                f"codes are dying: {int(used)} of {size} are used on the {self.what}, after "
                f"{int(self._most_used)} before. If this goes on, lower training.learning_rate"
            )
        self._most_used = max(self._most_used, used)


def codebook_size_of(model: nn.Module) -> int:
    """The number of codes; 0 for a continuous latent."""
    return int(getattr(model.get_submodule("quantizer"), "codebook_size", 0))
