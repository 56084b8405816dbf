"""The training objective of priors: the negative log-likelihood of a batch of codes."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from sqvae.distributions.checks import check_range
from sqvae.distributions.processes import mean_over_processes
from sqvae.networks.lengths import within
from sqvae.priors.contract import Condition, Prior


@dataclass(frozen=True)
class CodeBatch:
    """A batch of examples of codes, with their lengths and conditions."""

    codes: Tensor
    """``(batch, *shape)``: the codes, of which a last axis may be layers; those beyond an example's length may be
    anything."""
    lengths: Tensor | None = None
    """(batch,): the number of positions of each sequence; None if all codes count. Codes beyond the length have no
    effect, except for codes of the next coarser level: the last codes of an example depend a little on how those are
    padded."""
    condition: Condition | None = None
    """The condition of each example, for a conditional prior."""

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
        """The same batch on another device."""
        return CodeBatch(
            self.codes.to(device),
            None if self.lengths is None else self.lengths.to(device),
            None if self.condition is None else self.condition.to(device),
        )

    def chunk(self, chunks: int) -> list["CodeBatch"]:
        """The batch in the given number of parts, or fewer if it cannot be divided into as many, like a tensor's
        `chunk`."""
        size = -(-len(self) // chunks)
        return [self[start : start + size] for start in range(0, len(self), size)]


@dataclass(frozen=True)
class CodeCost:
    """The negative log-likelihood of a batch of codes under a prior."""

    loss: Tensor
    """(): the training loss, in nats per code."""
    nats: Tensor
    """(): the sum over the whole batch, in nats."""
    number: Tensor
    """(): the number of codes in the batch."""


class CodeLikelihood(nn.Module):
    r"""The negative log-likelihood of codes under a prior, per code.

    .. math:: \mathcal L = -\frac1N \sum_{i=1}^N \log p(c_i \mid c_{<i}, y)

    The sum is over the N codes of all examples and of all layers, without those beyond an example's length. To average
    over batches of different sizes, sum :attr:`CodeCost.nats` and :attr:`CodeCost.number`, and divide.

    Arguments:
        prior: one of :data:`sqvae.priors.PRIORS`.
    """

    def __init__(self, prior: Prior) -> None:
        super().__init__()
        self.prior = prior

    def forward(self, x: CodeBatch, temperature: float | Tensor = 1.0) -> CodeCost:
        """The negative log-likelihood of a batch.

        Arguments:
            x: the batch.
            temperature: not used. The training loop passes it to all models; it is for those that relax their codes.
        """
        logits = self.prior(x.codes, x.condition)
        own = _own(x, len(self.prior.layer_axis))
        each = cross_entropy(logits.flatten(0, -2), x.codes.long().flatten(), reduction="none").view(x.codes.shape)
        nats = (each if own is None else torch.where(own, each, 0)).sum()
        number = torch.tensor(x.codes.numel(), device=nats.device) if own is None else own.sum()
        # If processes have different numbers of codes, their losses still average to the mean over the whole batch.
        shared = mean_over_processes(number.to(nats)) if self.training and own is not None else number
        return CodeCost(nats / shared, nats.detach(), number)


def _own(x: CodeBatch, layer_axes: int) -> Tensor | None:  # -> (batch, n), or (batch, n, layers)
    """Whether each code counts; None if all do."""
    if x.lengths is None:
        return None
    if x.codes.ndim != 2 + layer_axes:
        raise ValueError(
            f"only sequences (batch, n) have lengths, but the codes' shape is {tuple(x.codes.shape)}: leave lengths out"
        )
    check_range(x.lengths, 1, x.codes.shape[1], "lengths")
    own = within(x.lengths, x.codes.shape[1])
    return own.unsqueeze(-1).expand(x.codes.shape) if layer_axes else own
