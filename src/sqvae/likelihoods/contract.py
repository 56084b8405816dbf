"""The interface that all likelihoods share."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Fit:
    """How well a decoder's output explains the data. Scalars are summed over a sample and averaged over the batch."""

    loss: Tensor
    """(): the likelihood's part of the training objective, possibly without constants."""
    log_likelihood: Tensor
    """(): the full log-density or log-probability, in nats."""
    variance: Tensor | None = None
    """(): the variance of a Gaussian decoder."""
    concentration: Tensor | None = None
    """(): the concentration of a von Mises-Fisher decoder."""


class Likelihood(nn.Module, ABC):
    """The distribution of the data given the decoder's output, :math:`p_theta(x | Z_q)`."""

    def forward(self, output: Tensor, x: Tensor, groups: Tensor | None = None) -> Fit:
        """The fit of a decoder's output to a batch of data.

        Arguments:
            output: the decoder's output.
            x: the data.
            groups: (batch, G), True for the group of each sample, from coarse to fine, such as the number of layers of
                codes that it uses. A likelihood whose variance is that of a batch then has one for each group, so that
                the errors of coarse descriptions do not hide what fine ones gain.
        """
        self.check(x)
        if output.dtype in (torch.float16, torch.bfloat16):
            output = output.float()
        return self._fit(output, x) if groups is None else self._fit_groups(output, x, groups)

    @abstractmethod
    def _fit(self, output: Tensor, x: Tensor) -> Fit:
        """The fit, after the data is checked and the output is in full precision."""

    def _fit_groups(self, output: Tensor, x: Tensor, groups: Tensor) -> Fit:
        """The fit of samples in groups. By default groups make no difference."""
        return self._fit(output, x)

    @abstractmethod
    def predict(self, output: Tensor) -> Tensor:
        """The likeliest data for a decoder's output."""

    @abstractmethod
    def embed(self, x: Tensor) -> Tensor:
        """The data as the encoder's input: real numbers, channels first."""

    def channels(self, data: int) -> tuple[int, int]:
        """The number of channels of the encoder's input and of the decoder's output.

        Arguments:
            data: the number of channels of the data.
        """
        return data, data

    def dimensions(self, x: Tensor) -> float | Tensor:
        """The number of values or labels in a sample that are known, D, averaged over the batch."""
        return x[0].numel()

    def loss_of_set(self, mean_loss: float, mean_squared_error: float, dimensions: float) -> float:
        """The loss of a whole data set, from averages over batches in ``eval()``.

        Arguments:
            mean_loss: the mean loss of the set's samples.
            mean_squared_error: the mean squared error of the set's values.
            dimensions: the number of values in a sample.
        """
        return mean_loss

    def check(self, x: Tensor) -> None:
        """Raise if the data is not of the kind that this likelihood describes."""


def check_output_shape(output: Tensor, expected: tuple[int, ...], meaning: str) -> None:
    """Raise if the shape of a decoder's output does not fit the data."""
    if output.shape != expected:
        raise ValueError(f"the decoder's output must be {meaning} = {expected}, got {tuple(output.shape)}")
