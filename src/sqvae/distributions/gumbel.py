"""Sampling from categorical distributions given by logits, exactly or relaxed."""

import torch
from torch import Tensor
from torch.nn.functional import one_hot


def gumbel_softmax(
    logits: Tensor, temperature: float | Tensor = 1.0, *, hard: bool = False
) -> Tensor:  # (..., K) -> (..., K)
    r"""A relaxed one-hot sample (Jang et al., 2017; Maddison et al., 2017).

    .. math:: y = \mathrm{softmax}((l + g) / \tau), \qquad g_k \sim \mathrm{Gumbel}(0, 1)

    The largest entry is an exact sample of :math:`\mathrm{softmax}(l)` at every temperature. With ``hard`` the value is
    the one-hot sample and the gradient is that of the relaxed one (straight-through).
    """
    soft = ((logits + gumbel_like(logits)) / temperature).softmax(-1)
    if not hard:
        return soft
    return one_hot(soft.argmax(-1), logits.shape[-1]).to(soft) + soft - soft.detach()


def sample_categorical(logits: Tensor) -> Tensor:  # (..., K) -> (...)
    """Exact samples, by the Gumbel-max trick. The logits need not be normalised."""
    return (logits + gumbel_like(logits)).argmax(-1)


def gumbel_like(logits: Tensor) -> Tensor:
    """Standard Gumbel noise of the same shape, type and device as the logits. It is always finite."""
    uniform = torch.rand_like(logits).clamp_min(torch.finfo(logits.dtype).tiny)
    return -uniform.log().neg().clamp_min(torch.finfo(logits.dtype).tiny).log()
