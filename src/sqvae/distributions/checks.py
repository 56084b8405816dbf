"""Checks of arguments, with error messages that state the given and the expected value.

They read the values of tensors, so they are skipped while a graph is traced.
"""

import math
from numbers import Integral

import torch
from torch import Tensor


class DivergedError(ValueError):
    """A value is NaN, infinite or out of range because training diverged."""


def check_tensor(value: object, name: str) -> None:
    """Raise TypeError if a value is not a tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a tensor, got {type(value).__name__}")


def check_size(value: object, name: str, least: int = 1) -> None:
    """Raise an error if a size is not an integer or is too small."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"{name} must be a whole number, got {value!r}")
    if int(value) < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")


def check_positive(value: float, name: str) -> None:
    """Raise ValueError if a number is not finite and greater than 0."""
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f"{name} must be finite and > 0, got {value}")


def check_offset(value: float, name: str) -> None:
    """Raise ValueError if a number is not finite and at least 0."""
    if not 0 <= value < math.inf:
        raise ValueError(f"{name} must be finite and at least 0, got {value}; 0 disables it")


def check_share(value: float, name: str) -> None:
    """Raise ValueError if a number is not at least 0 and below 1."""
    if not 0 <= value < 1:
        raise ValueError(f"{name} must be at least 0 and below 1, got {value}")


def check_log_scale(values: Tensor, name: str) -> None:
    """Raise DivergedError if the logarithm of a variance or a concentration is NaN or out of range."""
    check_finite(values, name)
    try:
        check_range(
            values,
            -80,
            80,
            name,
            '; it has diverged: bound it (heads="bounded" bounds an encoder\'s), or lower the learning rate',
        )
    except ValueError as failure:
        raise DivergedError(str(failure)) from None


def check_choice(value: object, choices: tuple[str, ...], name: str) -> None:
    """Raise ValueError if a value is not one of the choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}")


def check_finite(values: Tensor, name: str) -> None:
    """Raise DivergedError if a tensor contains NaN or infinity. The check usually costs only one sum."""
    if torch.compiler.is_compiling() or values.sum().isfinite():
        return
    if not values.isfinite().all():
        raise DivergedError(
            f"{name} must be finite, got {int(values.isnan().sum())} NaN and {int(values.isinf().sum())} infinite of "
            f"{values.numel()} values; look for divergence or a division by zero before this call"
        )


def check_range(values: Tensor, low: float, high: float, name: str, hint: str = "") -> None:
    """Raise ValueError if a value is not between `low` and `high`."""
    if torch.compiler.is_compiling() or values.numel() == 0:
        return
    least, most = (bound.item() for bound in torch.aminmax(values))
    if least < low or most > high:
        raise ValueError(f"{name} must lie between {low} and {high}, got values from {least:g} to {most:g}{hint}")


def check_indices(indices: Tensor, size: int, name: str, hint: str = "") -> None:
    """Raise an error if something is not a tensor of integers between 0 and size - 1."""
    check_tensor(indices, name)
    if indices.is_floating_point() or indices.is_complex() or indices.dtype == torch.bool:
        raise ValueError(f"{name} must be integers between 0 and {size - 1}, got {indices.dtype}")
    check_range(indices.long(), 0, size - 1, name, hint)  # torch can't compare all of its integer types
