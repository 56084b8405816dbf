"""The assignment of examples to batches, as a function of the seed alone."""

import hashlib

import torch
from torch import Tensor


def stream_seed(seed: int, *path: int | str) -> int:
    """A seed for one of the random streams of a run, unrelated to those of other streams.

    Seeds are computed and not stored: a resumed run gets the same random numbers because it is at the same step.
    """
    text = "/".join(map(str, (seed, *path)))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


class Order:
    """The order of a training set, which is shuffled anew in every epoch.

    All batches are full. Examples left over at the end of an epoch are not used in it. A training set smaller than a
    batch is one batch.

    Arguments:
        count: the number of examples.
        batch_size: the batch size over all processes.
        seed: the seed of the run.
        passes: the number of passes over the training set in an epoch.
        shares: the number of equal parts of each batch, over processes and accumulation steps.
    """

    def __init__(self, count: int, batch_size: int, seed: int, *, passes: int = 1, shares: int = 1) -> None:
        self.count = count
        self.seed = seed
        self.passes = passes
        self.batch_size = min(batch_size, count) // shares * shares
        if self.batch_size < 1:
            raise ValueError(
                f"a batch of {min(batch_size, count)} examples can't be divided into {shares} shares: "
                f"use fewer processes, fewer accumulation steps, a larger batch or more data"
            )
        self._epoch = -1
        self._indices = torch.empty(0, dtype=torch.int64)

    def __len__(self) -> int:
        """The number of batches in an epoch."""
        return self.passes * self.count // self.batch_size

    def batch(self, epoch: int, index: int) -> Tensor:  # -> (batch_size,)
        """The indices of the examples of one batch."""
        if epoch != self._epoch:
            shuffle = torch.Generator().manual_seed(stream_seed(self.seed, "order", epoch))
            self._indices = torch.cat([torch.randperm(self.count, generator=shuffle) for _ in range(self.passes)])
            self._epoch = epoch
        return self._indices[index * self.batch_size : (index + 1) * self.batch_size]
