"""Whether an exported program computes what the library does."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from sqvae.export.exportable import Exportable

TOLERANCE = 1e-4
"""How far values may be from the library's, over the largest of them, or over 1 where they are smaller than that."""


class DisagreementError(Exception):
    """An exported program gives something else than the library; the message says what and by how much."""


@dataclass(frozen=True)
class Agreement:
    """What came of a comparison."""

    outputs: int
    """How many numbers were compared,"""
    shapes: tuple[tuple[int, ...], ...]
    """in inputs of these shapes."""
    ties: int
    """Codes or classes that are others, because two are equally good up to rounding."""
    error: float
    """The largest difference of all other values."""


def agreement(half: Exportable, run: Callable[..., Tensor]) -> Agreement:
    """Compare a program with the library on a half's examples; raises where they differ by more than rounding."""
    outputs = ties = 0
    error = 0.0
    for inputs in half.examples:
        expected, found = half.library(*inputs), run(*inputs)
        if found.shape != expected.shape or found.dtype != expected.dtype:
            raise DisagreementError(
                f"the exported {half.name} gives {half.output.name} of {found.dtype} and shape {tuple(found.shape)}, "
                f"and the library {expected.dtype} and {tuple(expected.shape)}"
            )
        distances = (found - expected).abs()
        bound = TOLERANCE * max(1.0, float(expected.abs().max())) if found.is_floating_point() else 0.0
        other = ~(distances <= bound)  # also where one is no number
        if other.any() and int(other.sum()) > half.ties(inputs, expected, found):
            raise DisagreementError(
                f"the exported {half.name} disagrees with the library: {int(other.sum()):,} of {other.numel():,} "
                f"{half.output.name} are others, by up to {float(distances.max()):g}, in a batch of shape "
                f"{tuple(inputs[0].shape)}"
            )
        outputs, ties = outputs + other.numel(), ties + int(other.sum())
        error = max(error, float(distances[~other].max()) if not other.all() else 0.0)
    return Agreement(outputs, tuple(tuple(inputs[0].shape) for inputs in half.examples), ties, error)
