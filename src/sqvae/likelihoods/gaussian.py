"""The Gaussian likelihood of continuous data."""

import math
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from sqvae.distributions.checks import check_choice, check_finite, check_positive, check_share, check_tensor
from sqvae.distributions.processes import mean_over_processes
from sqvae.likelihoods.averages import average_in
from sqvae.likelihoods.contract import Fit, Likelihood, check_output_shape

DecoderVariance = Literal["closed_form", "learned", "fixed"]


class GaussianLikelihood(Likelihood):
    r"""The decoder's output is the mean, and all values share one variance.

    .. math:: -\log p_\theta(x \mid Z_q) = \frac{1}{2 \sigma^2} \lVert x - f_\theta(Z_q) \rVert_2^2
              + \frac D2 \log 2 \pi \sigma^2

    Arguments:
        variance: where :math:`\sigma^2` comes from. ``"closed_form"`` takes its maximum-likelihood value for the
            minibatch, the mean squared error, which leaves :math:`\frac D2 \log \mathrm{MSE}` to train. In distributed
            training the minibatch is that of all processes, because the logarithm of a mean is not the mean of
            logarithms. In ``eval()`` it takes the average over recent training batches instead, because a density may
            not depend on the data that it is evaluated on. ``"learned"`` trains :math:`\log \sigma^2` with the other
            parameters; ``"fixed"`` keeps its initial value.
        initial_variance: :math:`\sigma^2` before training.
        decay: the decay of the average that ``"closed_form"`` keeps.
    """

    log_variance: Tensor
    batches: Tensor

    def __init__(
        self, variance: DecoderVariance = "closed_form", *, initial_variance: float = 0.1, decay: float = 0.99
    ) -> None:
        super().__init__()
        check_choice(variance, get_args(DecoderVariance), "variance")
        check_positive(initial_variance, "initial_variance")
        check_share(decay, "decay")
        self.variance: DecoderVariance = variance
        self.decay = decay
        log_variance = torch.tensor(math.log(initial_variance))
        if variance == "learned":
            self.log_variance = nn.Parameter(log_variance)
        else:
            self.register_buffer("log_variance", log_variance)
        if variance == "closed_form":
            self.register_buffer("batches", torch.zeros((), dtype=torch.int64))

    def _fit(self, output: Tensor, x: Tensor) -> Fit:
        check_output_shape(output, tuple(x.shape), "of the data's shape")
        dimensions = x[0].numel()
        error = (output - x).square().mean()
        if self.variance == "closed_form" and self.training:
            error = mean_over_processes(error)
            log_variance = error.clamp_min(torch.finfo(error.dtype).tiny).log()
            average_in(self.log_variance, self.batches, log_variance.detach(), self.decay)
            loss = dimensions / 2 * log_variance
            log_likelihood = -loss - dimensions / 2 * (math.log(2 * math.pi) + 1)
        else:
            log_variance = self.log_variance.to(error.dtype)
            loss = dimensions / 2 * (error * (-log_variance).exp() + log_variance)
            log_likelihood = -loss - dimensions / 2 * math.log(2 * math.pi)
        return Fit(loss, log_likelihood, variance=log_variance.detach().exp())

    def _fit_groups(self, output: Tensor, x: Tensor, groups: Tensor) -> Fit:
        r"""With a closed-form variance, each group has that of its own samples, a share :math:`c_g` of the batch:

        .. math:: \frac D2 \sum_g c_g \log \mathrm{MSE}_g

        The variance to report, and to use in ``eval()``, is that of the last group.
        """
        if self.variance != "closed_form" or not self.training:
            return self._fit(output, x)
        check_output_shape(output, tuple(x.shape), "of the data's shape")
        dimensions, tiny = x[0].numel(), torch.finfo(output.dtype).tiny
        errors = (output - x).square().flatten(1).mean(1)
        belongs = groups.to(errors.dtype)
        shares = mean_over_processes(belongs.mean(0))
        means = mean_over_processes((belongs * errors.unsqueeze(-1)).mean(0)) / shares.clamp_min(tiny)
        log_variances = means.clamp_min(tiny).log()
        last = torch.where(shares[-1] > 0, log_variances[-1].detach(), self.log_variance)
        average_in(self.log_variance, self.batches, last, self.decay)
        loss = dimensions / 2 * (shares * log_variances).sum()
        log_likelihood = -loss - dimensions / 2 * (math.log(2 * math.pi) + 1)
        return Fit(loss, log_likelihood, variance=last.exp())

    def loss_of_set(self, mean_loss: float, mean_squared_error: float, dimensions: float) -> float:
        r"""The loss of a set. With a closed-form variance, it is the loss of the set as one batch: :math:`\frac D2
        \log \mathrm{MSE}`."""
        if self.variance != "closed_form":
            return mean_loss
        return dimensions / 2 * math.log(max(mean_squared_error, torch.finfo(torch.float32).tiny))

    def predict(self, output: Tensor) -> Tensor:
        return output

    def embed(self, x: Tensor) -> Tensor:
        self.check(x)
        return x

    def check(self, x: Tensor) -> None:
        check_tensor(x, "x")
        if not x.is_floating_point():
            raise ValueError(f"a Gaussian likelihood needs real-valued data, got {x.dtype}; convert it to floats first")
        check_finite(x, "x")

    def extra_repr(self) -> str:
        return f"variance={self.variance!r}"
