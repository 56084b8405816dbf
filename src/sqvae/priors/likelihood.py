"""Priors as the training loop takes them: what a batch of codes costs."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from sqvae.distributions.checks import check_range
from sqvae.distributions.processes import mean_over_processes
from sqvae.networks.speech import within
from sqvae.priors.contract import Condition, Prior


@dataclass(frozen=True)
class CodeBatch:
    """Examples of codes, with what belongs to them."""

    codes: Tensor
    """``(batch, *shape)``: beyond an example's length, any codes."""
    lengths: Tensor | None = None
    """(batch,): how many codes of a sequence are each example's own; None: all. What lies beyond makes no difference,
    but for the codes of a level above: an example's last ones see a little of how those are padded."""
    condition: Condition | None = None
    """What is known of them besides, for priors that were built for it."""

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, examples: slice | Tensor) -> "CodeBatch":
        """Some of the examples."""
        return CodeBatch(
            self.codes[examples],
            None if self.lengths is None else self.lengths[examples],
            None if self.condition is None else self.condition[examples],
        )

    def to(self, device: torch.device) -> "CodeBatch":
        """The same on another device."""
        return CodeBatch(
            self.codes.to(device),
            None if self.lengths is None else self.lengths.to(device),
            None if self.condition is None else self.condition.to(device),
        )

    def chunk(self, chunks: int) -> list["CodeBatch"]:
        """The same in so many parts, or as many as it can be divided into, like a tensor's."""
        size = -(-len(self) // chunks)
        return [self[start : start + size] for start in range(0, len(self), size)]


@dataclass(frozen=True)
class CodeCost:
    """What a batch of codes costs under a prior."""

    loss: Tensor
    """(): nats per code: what training minimises."""
    nats: Tensor
    """(): of the whole batch, summed."""
    number: Tensor
    """(): the number of its codes."""


class CodeLikelihood(nn.Module):
    r"""The negative log-likelihood of codes under a prior, per code.

    .. math:: \mathcal L = -\frac1N \sum_{i=1}^N \log p(c_i \mid c_{<i}, y)

    The sum is over the N codes of all examples; what lies beyond an example's length is none of them. To average over
    batches of different sizes, sum up :attr:`CodeCost.nats` and :attr:`CodeCost.number` and divide.

    Arguments:
        prior: one of :data:`sqvae.priors.PRIORS`.
    """

    def __init__(self, prior: Prior) -> None:
        super().__init__()
        self.prior = prior

    def forward(self, x: CodeBatch, temperature: float | Tensor = 1.0) -> CodeCost:
        """The cost of a batch.

        Arguments:
            temperature: the loop's, for models that relax their codes; here they are given, and it changes nothing.
        """
        logits = self.prior(x.codes, x.condition)
        own = _own(x)
        each = cross_entropy(logits.flatten(0, -2), x.codes.long().flatten(), reduction="none").view(x.codes.shape)
        nats = (each if own is None else torch.where(own, each, 0)).sum()
        number = torch.tensor(x.codes.numel(), device=nats.device) if own is None else own.sum()
        # Processes whose parts of a batch hold different numbers of codes still add up to the mean over all of it.
        shared = mean_over_processes(number.to(nats)) if self.training and own is not None else number
        return CodeCost(nats / shared, nats.detach(), number)


def _own(x: CodeBatch) -> Tensor | None:  # -> (batch, n)
    """Which codes are the examples' own; None: all."""
    if x.lengths is None:
        return None
    if x.codes.ndim != 2:
        raise ValueError(
            f"only sequences (batch, n) have lengths, and the codes' shape is {tuple(x.codes.shape)}: leave them out"
        )
    check_range(x.lengths, 1, x.codes.shape[1], "lengths")
    return within(x.lengths, x.codes.shape[1])
