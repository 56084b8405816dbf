"""Averages over training batches, which are used in ``eval()`` in place of a batch's own value."""

import torch
from torch import Tensor


@torch.no_grad()
def average_in(mean: Tensor, batches: Tensor, value: Tensor, decay: float) -> None:  # (), (), ()
    """Update an average with a batch's value, in place. It is a plain mean over the first batches, and exponential
    later.

    Arguments:
        mean: the average so far.
        batches: the number of batches so far.
        value: the value of the new batch.
        decay: the decay of the exponential average.
    """
    batches += 1
    weight = (1 / batches).clamp_min(1 - decay)
    mean += weight * (value.to(mean.dtype) - mean)
