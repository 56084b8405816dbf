"""The contract that every likelihood keeps."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Fit:
    """How well a decoder's output explains the data. Scalars are sums over a sample, averaged over the batch."""

    loss: Tensor
    """(): the likelihood's part of the training objective; constants may be missing."""
    log_likelihood: Tensor
    """(): the full log-density or log-probability, in nats."""
    variance: Tensor | None = None
    """(): of a Gaussian decoder."""
    concentration: Tensor | None = None
    """(): of a von Mises-Fisher decoder."""


class Likelihood(nn.Module, ABC):
    """What the decoder's output says of the data, :math:`p_theta(x | Z_q)`."""

    def forward(self, output: Tensor, x: Tensor) -> Fit:
        """The fit of a decoder's output to a batch of data."""
        self.check(x)
        if output.dtype in (torch.float16, torch.bfloat16):
            output = output.float()
        return self._fit(output, x)

    @abstractmethod
    def _fit(self, output: Tensor, x: Tensor) -> Fit:
        """The same, once the data is checked and the output in full precision."""

    @abstractmethod
    def predict(self, output: Tensor) -> Tensor:
        """The likeliest data for a decoder's output."""

    @abstractmethod
    def embed(self, x: Tensor) -> Tensor:
        """Data as the encoder sees it: real numbers, channels first."""

    def channels(self, data: int) -> tuple[int, int]:
        """How many the encoder sees, and the decoder gives, for data with so many."""
        return data, data

    def dimensions(self, x: Tensor) -> float | Tensor:
        """D: how many numbers, or labels, are known of a sample of the batch; on average."""
        return x[0].numel()

    def loss_of_set(self, mean_loss: float, mean_squared_error: float, dimensions: float) -> float:
        """The loss of a whole set of data, from what was found batch by batch in ``eval()``.

        Arguments:
            mean_loss: of the set's samples.
            mean_squared_error: of the set's values.
            dimensions: of a sample.
        """
        return mean_loss

    def check(self, x: Tensor) -> None:
        """Raise if data is not of the kind that this likelihood describes."""


def check_output_shape(output: Tensor, expected: tuple[int, ...], meaning: str) -> None:
    """Raise if a decoder's output does not fit the data."""
    if output.shape != expected:
        raise ValueError(f"the decoder's output must be {meaning} = {expected}, got {tuple(output.shape)}")
