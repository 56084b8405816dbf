"""What goes wrong in a loop of one's own, seen from what the quantizer returned there."""

import math
from collections.abc import Sequence

from torch import Tensor

from sqvae.quantizers.contract import Quantized

BLIND = 0.9
"""From this share of the largest entropy on, the choice of a code says next to nothing."""

RUNAWAY = 10.0
"""A spread that has become so many times what it was has not annealed."""

WIDE_GAP = 1.25
"""Above this ratio of errors, training decodes something that single codes are not."""

OTHER_UNIT = 0.5
"""A loss that is off by more than this share of its error term is in another unit."""


def faults_of(
    results: Sequence[Quantized],
    *,
    loss: float | Tensor | None = None,
    error: float | Tensor | None = None,
    dimensions: int | None = None,
    single_error: float | Tensor | None = None,
) -> tuple[str, ...]:
    """Sentences about what is wrong with a training that has gone on for a while; none where nothing is.

    Arguments:
        results: what the quantizer returned in training, the first kept one first: one every hundred steps will do.
        loss: what was minimised at the last of them,
        error: the mean squared error there,
        dimensions: and how many numbers a sample has, D.
        single_error: the mean squared error in ``eval()``, where one code is decoded, on the same kind of data.
    """
    if not results:
        raise ValueError("no results: pass what the quantizer returned in training, one or more")
    mse = None if error is None else _number(error)
    found = [*_about_choice(results), *_about_spread(results)]
    if loss is not None and mse is not None and dimensions is not None:
        found += _about_unit(_number(loss), mse, dimensions, _number(results[-1].loss))
    if single_error is not None and mse is not None and not found:
        found += _about_mixtures(_number(single_error), mse)
    return tuple(found)


def _about_choice(results: Sequence[Quantized]) -> list[str]:
    last = results[-1]
    most = _number(last.divergence - last.loss)  # log K at each position that counts
    share = _number(last.entropy) / most if most > 0 else 0.0
    if share < BLIND:
        return []
    return [
        f"codes are chosen nearly blindly: the entropy of a choice is {share:.0%} of log K, the most there can be, so "
        "that the decoder learns nothing from them. If this is not the beginning of training, raise the learning rate, "
        "lower initial_variance, or let sqvae.Annealing lower the variance"
    ]


def _about_spread(results: Sequence[Quantized]) -> list[str]:
    spreads = [_spread(one) for one in results]
    if len(spreads) < 2 or spreads[0] is None or spreads[-1] is None or spreads[-1] < RUNAWAY * spreads[0]:
        return []
    name = "variance has grown" if results[-1].variance is not None else "concentration has fallen"
    return [
        f"the {name} {spreads[-1] / spreads[0]:.0f} times since the first of {len(spreads)} results: nothing in the "
        "loss asks for certain choices. Check that the error's term is D / 2 * log(MSE), that it reaches the quantizer "
        "through z_q, and that the learning rate is not too high"
    ]


def _spread(result: Quantized) -> float | None:
    if result.variance is not None:
        return float(result.variance.mean())
    return None if result.concentration is None else 1 / max(float(result.concentration), 1e-30)


def _about_unit(loss: float, error: float, dimensions: int, own: float) -> list[str]:
    expected = dimensions / 2 * math.log(max(error, 1e-30))
    if abs(loss - (expected + own)) <= OTHER_UNIT * abs(expected):
        return []
    return [
        f"the loss is {loss:,.4g}, where D / 2 * log(MSE) is {expected:,.4g} and the quantizer's loss {own:,.4g}: "
        "their sum is what to minimise. Both are per sample, summed over its numbers and averaged over the batch; an "
        "error that is averaged over the numbers too counts for too little beside the quantizer's terms"
    ]


def _about_mixtures(single_error: float, error: float) -> list[str]:
    if single_error <= WIDE_GAP * error:
        return []
    return [
        "the decoder has learned mixtures of codes that no single code equals: one code has "
        f"{single_error / error:.1f} times the error of what training decodes. Train longer, or by sqvae.Annealing, "
        "which closes the gap by the last of its steps"
    ]


def _number(value: float | Tensor) -> float:
    return float(value.detach()) if isinstance(value, Tensor) else value
