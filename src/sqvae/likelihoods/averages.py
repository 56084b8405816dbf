"""Averages over training batches, which take the place of a batch's own value when a model is judged."""

import torch
from torch import Tensor


@torch.no_grad()
def average_in(mean: Tensor, batches: Tensor, value: Tensor, decay: float) -> None:  # (), (), ()
    """Count one batch more into an average, in place: a plain mean over the first ones, an exponential one later.

    Arguments:
        mean: the average so far.
        batches: how many it is of.
        value: the new batch's.
        decay: of the exponential average.
    """
    batches += 1
    weight = (1 / batches).clamp_min(1 - decay)
    mean += weight * (value.to(mean.dtype) - mean)
