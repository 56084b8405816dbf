"""Entropies and perplexities of categorical distributions, in nats."""

from collections.abc import Sequence

import torch
from torch import Tensor


def entropy(probabilities: Tensor) -> Tensor:  # (..., K) -> (...)
    r"""Shannon entropy over the last axis.

    .. math:: H(P) = -\sum_k P_k \log P_k

    Outcomes with probability 0 contribute nothing, and their gradient is zero instead of infinite.
    """
    possible = probabilities > 0
    log_probabilities = torch.where(possible, probabilities, 1).log()
    return -(probabilities * log_probabilities).sum(-1)


def perplexity(counts: Tensor) -> Tensor:  # (..., K) -> (...)
    r"""The effective number of codes: the number of equally used codes with the same entropy.

    .. math:: \exp H(c / \textstyle\sum_k c_k), \qquad 1 \le \cdot \le K

    Arguments:
        counts: how often each code was used, or its total probability. If all are 0, the perplexity is 1.
    """
    total = counts.sum(-1, keepdim=True)
    return entropy(counts / total.clamp_min(torch.finfo(torch.float32).tiny)).exp()


def layer_perplexities(counts: Tensor, sizes: Sequence[int]) -> Tensor:  # (K,) -> (layers,)
    """The perplexity of each layer of codes.

    Arguments:
        counts: how often each code was used, for one layer after the other.
        sizes: the number of codes of each layer.
    """
    return torch.stack([perplexity(own) for own in counts.split(tuple(sizes))])
