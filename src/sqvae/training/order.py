"""Which examples make up which batch: a function of the seed alone."""

import hashlib

import torch
from torch import Tensor


def stream_seed(seed: int, *path: int | str) -> int:
    """A seed for one of a run's random streams, unrelated to those of its other streams.

    Every stream is derived and none is stored: a resumed run meets the same numbers by asking for the same step.
    """
    text = "/".join(map(str, (seed, *path)))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


class Order:
    """The order of a training set: every epoch shuffles it anew.

    Batches are full. What is left over at the end of an epoch is left out of it, and comes at another place in the
    next. A set smaller than a batch is one batch.

    Arguments:
        count: the number of examples.
        batch_size: over all processes.
        seed: of the run.
        passes: how often an epoch goes through the set.
        shares: into how many parts each batch is divided evenly, among processes and one after the other.
    """

    def __init__(self, count: int, batch_size: int, seed: int, *, passes: int = 1, shares: int = 1) -> None:
        self.count = count
        self.seed = seed
        self.passes = passes
        self.batch_size = min(batch_size, count) // shares * shares
        if self.batch_size < 1:
            raise ValueError(
                f"a batch of {min(batch_size, count)} examples can't be divided into {shares} shares: "
                f"use fewer processes, less accumulation, a larger batch or more data"
            )
        self._epoch = -1
        self._indices = torch.empty(0, dtype=torch.int64)

    def __len__(self) -> int:
        """The batches of an epoch."""
        return self.passes * self.count // self.batch_size

    def batch(self, epoch: int, index: int) -> Tensor:  # -> (batch_size,)
        """The examples of one batch."""
        if epoch != self._epoch:
            shuffle = torch.Generator().manual_seed(stream_seed(self.seed, "order", epoch))
            self._indices = torch.cat([torch.randperm(self.count, generator=shuffle) for _ in range(self.passes)])
            self._epoch = epoch
        return self._indices[index * self.batch_size : (index + 1) * self.batch_size]
