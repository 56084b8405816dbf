"""Floating-point precision, for computations in which digits cancel."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

_without_float64 = False


def widest_float(device: torch.device) -> torch.dtype:
    """float64 if the device supports it (Apple's GPUs do not), otherwise float32."""
    return torch.float32 if device.type == "mps" or _without_float64 else torch.float64


@contextmanager
def without_float64() -> Iterator[None]:
    """Use float32 at most during the block, to trace a graph that runs on any device."""
    global _without_float64
    before, _without_float64 = _without_float64, True
    try:
        yield
    finally:
        _without_float64 = before


@contextmanager
def full_float32_products() -> Iterator[None]:
    """Compute float32 matrix products in full precision during the block, even if TF32 is enabled."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
