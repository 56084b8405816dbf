"""Floating-point precision where digits cancel."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

_without_float64 = False


def widest_float(device: torch.device) -> torch.dtype:
    """float64 wherever the device has it (Apple's GPUs do not), else float32."""
    return torch.float32 if device.type == "mps" or _without_float64 else torch.float64


@contextmanager
def without_float64() -> Iterator[None]:
    """While a graph is traced that is to run anywhere: float32 is the widest."""
    global _without_float64
    before, _without_float64 = _without_float64, True
    try:
        yield
    finally:
        _without_float64 = before


@contextmanager
def full_float32_products() -> Iterator[None]:
    """Matrix products of float32 in float32, even where the user lets accelerators round their inputs (TF32)."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
