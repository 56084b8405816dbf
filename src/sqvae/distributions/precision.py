"""Which floating-point type to count on where digits cancel."""

import torch


def widest_float(device: torch.device) -> torch.dtype:
    """float64 wherever the device has it (Apple's GPUs do not), else float32."""
    return torch.float32 if device.type == "mps" else torch.float64
