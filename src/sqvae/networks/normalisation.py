"""Batch normalisation over all processes that share a batch, and its removal after training."""

import copy
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm

from sqvae.distributions.processes import processes, stack_over_processes


class BatchNorm2d(nn.Module):
    r"""Batch normalisation with the statistics of the global batch.

    .. math:: y = \gamma \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta,

    with the mean and the variance of each channel over batch and positions: in training those of the batch, over all
    processes that share it; in ``eval()`` the running averages of training batches. In one process this equals
    :class:`torch.nn.BatchNorm2d`, and the names in its state are the same. With several processes the statistics of the
    batch are computed from those of each process, :math:`\mu_r` and :math:`\sigma_r^2` over :math:`n_r` values,

    .. math:: \mu = \frac1n \sum_r n_r \mu_r, \qquad
              \sigma^2 = \frac1n \sum_r n_r \left(\sigma_r^2 + (\mu_r - \mu)^2\right), \qquad n = \sum_r n_r.

    :class:`torch.nn.SyncBatchNorm` does the same, but on accelerators only. With :class:`torch.nn.BatchNorm2d` each
    process would normalise by its own slice, and the loss would depend on the number of processes.

    Arguments:
        channels: number of channels, the size of axis 1.
        eps: :math:`\epsilon`.
        momentum: the weight of a batch in the running averages.
    """

    running_mean: Tensor
    running_var: Tensor
    num_batches_tracked: Tensor

    def __init__(self, channels: int, *, eps: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__()
        self.channels = channels
        self.eps = eps
        self.momentum = momentum
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))
        self.register_buffer("num_batches_tracked", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:  # (batch, channels, H, W) -> (batch, channels, H, W)
        if x.ndim != 4 or x.shape[1] != self.channels:
            raise ValueError(f"x must be (batch, {self.channels}, H, W), got shape {tuple(x.shape)}")
        if self.training:
            self.num_batches_tracked += 1
            _, number = processes()
            if number * x.numel() == self.channels:
                raise ValueError(
                    f"batch normalisation can't train on a single value per channel, as in shape {tuple(x.shape)}: "
                    f"use a larger batch, more data, or larger images"
                )
            if number > 1:
                return self._over_processes(x)
        return batch_norm(
            x,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training,
            self.momentum,
            self.eps,
        )

    def _over_processes(self, x: Tensor) -> Tensor:
        wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
        own_variance, own_mean = torch.var_mean(wide, (0, 2, 3), correction=0)
        own_count = own_mean.new_full((1,), x.numel() // self.channels)
        everyone = stack_over_processes(torch.cat((own_count, own_mean, own_variance)))
        counts, means, variances = everyone.split((1, self.channels, self.channels), -1)
        count = counts.sum()
        mean = (counts * means).sum(0) / count
        variance = (counts * (variances + (means - mean).square())).sum(0) / count
        self._average(mean.detach(), (variance * count / (count - 1)).detach())
        scale = self.weight * (variance + self.eps).rsqrt()
        shift = self.bias - mean * scale
        y: Tensor = wide * scale.view(-1, 1, 1) + shift.view(-1, 1, 1)
        return y.to(x.dtype)

    @torch.no_grad()
    def _average(self, mean: Tensor, variance: Tensor) -> None:
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), self.momentum)
        self.running_var.lerp_(variance.to(self.running_var.dtype), self.momentum)

    def extra_repr(self) -> str:
        return f"{self.channels}, eps={self.eps}, momentum={self.momentum}"


def without_batch_norm(network: nn.Module) -> nn.Module:
    r"""A copy of a network for ``eval()``, with batch normalisation merged into the convolutions, which is faster.

    In ``eval()``, :math:`\gamma (W x + c - \mu) / \sigma + \beta` is itself a convolution, with the weights
    :math:`W \gamma / \sigma` and the bias :math:`(c - \mu) \gamma / \sigma + \beta`. The result is the same up to
    rounding.
    """
    network = copy.deepcopy(network).eval()
    for layers in network.modules():
        if isinstance(layers, nn.Sequential):
            for index, (convolution, norm) in enumerate(pairwise(layers)):
                if isinstance(convolution, nn.Conv2d | nn.ConvTranspose2d) and isinstance(norm, BatchNorm2d):
                    _absorb(convolution, norm)
                    layers[index + 1] = nn.Identity()
    return network


@torch.no_grad()
def _absorb(convolution: nn.Conv2d | nn.ConvTranspose2d, norm: BatchNorm2d) -> None:
    scale = norm.weight * (norm.running_var + norm.eps).rsqrt()
    outputs_first = isinstance(convolution, nn.Conv2d)
    convolution.weight.mul_(scale.view(-1, 1, 1, 1) if outputs_first else scale.view(1, -1, 1, 1))
    before = torch.zeros_like(scale) if convolution.bias is None else convolution.bias
    convolution.bias = nn.Parameter((before - norm.running_mean) * scale + norm.bias)
