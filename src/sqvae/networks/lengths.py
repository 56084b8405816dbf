"""Sequences of different lengths in one batch."""

import torch
from torch import Tensor


def within(lengths: Tensor, longest: int) -> Tensor:  # (batch,) -> (batch, longest)
    """A mask of the positions before the end of each sequence."""
    return torch.arange(longest, device=lengths.device) < lengths.unsqueeze(-1)
