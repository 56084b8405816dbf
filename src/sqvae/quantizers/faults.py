"""Diagnoses of common faults in a custom training loop, from the quantizer's outputs."""

import math
from collections.abc import Sequence

from torch import Tensor

from sqvae.quantizers.contract import Quantized

BLIND = 0.9
"""If the entropy is at least this share of its maximum, the choice of codes carries almost no information."""

RUNAWAY = 10.0
"""A variance that has grown by this factor is not annealing."""

WIDE_GAP = 1.25
"""Above this ratio of errors, the decoder has learned mixtures of codes rather than single codes."""

OTHER_UNIT = 0.5
"""If the loss is off by more than this share of its error term, its terms have different units."""


def faults_of(
    results: Sequence[Quantized],
    *,
    loss: float | Tensor | None = None,
    error: float | Tensor | None = None,
    dimensions: int | None = None,
    single_error: float | Tensor | None = None,
) -> tuple[str, ...]:
    """Sentences about faults in a training that has run for a while; empty if there are none.

    Arguments:
        results: outputs of the quantizer in training, the earliest first; one every hundred steps is enough.
        loss: the loss that was minimised at the last of them.
        error: the mean squared error at the last of them.
        dimensions: the number of values in a sample, D.
        single_error: the mean squared error in ``eval()``, where single codes are decoded, on the same kind of data.
    """
    if not results:
        raise ValueError("there are no results: pass one or more outputs of the quantizer in training")
    mse = None if error is None else _number(error)
    found = [*_about_choice(results), *_about_spread(results)]
    if loss is not None and mse is not None and dimensions is not None:
        found += _about_unit(_number(loss), mse, dimensions, _number(results[-1].loss))
    if single_error is not None and mse is not None and not found:
        found += _about_mixtures(_number(single_error), mse)
    return tuple(found)


def _about_choice(results: Sequence[Quantized]) -> list[str]:
    last = results[-1]
    most = _number(last.divergence - last.loss)  # log K, summed over the unmasked positions
    share = _number(last.entropy) / most if most > 0 else 0.0
    if share < BLIND:
        return []
    return [
        f"codes are chosen almost at random: the entropy of the assignment is {share:.0%} of its maximum log K, so "
        "the decoder learns nothing from the codes. If this is not the beginning of training, raise the learning "
        "rate, lower initial_variance, or use sqvae.Annealing to lower the variance"
    ]


def _about_spread(results: Sequence[Quantized]) -> list[str]:
    spreads = [_spread(one) for one in results]
    if len(spreads) < 2 or spreads[0] is None or spreads[-1] is None or spreads[-1] < RUNAWAY * spreads[0]:
        return []
    name = "variance has grown" if results[-1].variance is not None else "concentration has fallen"
    return [
        f"the {name} {spreads[-1] / spreads[0]:.0f} times since the first of {len(spreads)} results: nothing in the "
        "loss makes the assignments more certain. Check that the error term is D / 2 * log(MSE), that it depends on "
        "the quantizer through z_q, and that the learning rate is not too high"
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
        f"the loss is {loss:,.4g}, but D / 2 * log(MSE) is {expected:,.4g} and the quantizer's loss is {own:,.4g}: "
        "minimise their sum. Both are per sample: summed over a sample's values and averaged over the batch. An "
        "error that is averaged over the values too has too little weight beside the quantizer's terms"
    ]


def _about_mixtures(single_error: float, error: float) -> list[str]:
    if single_error <= WIDE_GAP * error:
        return []
    return [
        "the decoder has learned mixtures of codes rather than single codes: with single codes the error is "
        f"{single_error / error:.1f} times that in training. Train longer, or use sqvae.Annealing, which closes this "
        "gap by its last step"
    ]


def _number(value: float | Tensor) -> float:
    return float(value.detach()) if isinstance(value, Tensor) else value
