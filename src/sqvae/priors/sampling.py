"""Drawing codes: one position from its logits, or whole maps from a prior."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from sqvae.distributions.checks import check_finite, check_offset, check_size
from sqvae.priors.contract import Condition, Draft, Prior

Progress = Callable[[int, int], None]
"""Told after each position how many are settled, and of how many."""

DraftMaker = Callable[[Prior, int, Sequence[int], Condition | None], Draft]


def draw(
    logits: Tensor,
    uniform: Tensor | None = None,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Tensor:  # (batch, K), (batch,) -> (batch,)
    r"""A code for each row of logits.

    .. math:: p = \mathrm{softmax}(l / \tau), \qquad c = \min \{ k : u \sum_j p_j < p_1 + \dots + p_k \}

    With `top_k` or `top_p` the codes are first brought into the order of their probabilities, and those at the end left
    out. Of codes that are equally likely the one of the lower number comes first.

    Arguments:
        logits: l.
        uniform: u, at least 0 and below 1; drawn by torch's own generator by default.
        temperature: :math:`\tau`; 0 takes the likeliest code.
        top_k: leave out all but so many of the likeliest codes.
        top_p: of those, leave out all but the fewest likeliest that together have at least this share of what they
            all have. More than 0, and at most 1.
    """
    check_choices(temperature, top_k, top_p)
    if logits.ndim != 2:
        raise ValueError(f"logits must be (batch, K), got shape {tuple(logits.shape)}")
    check_finite(logits, "the logits")
    if temperature == 0:
        return logits.argmax(-1)
    if uniform is not None and uniform.shape != logits.shape[:1]:
        raise ValueError(f"uniform must be (batch,) = ({len(logits)},), got shape {tuple(uniform.shape)}")
    if uniform is None:
        uniform = torch.rand(len(logits), dtype=torch.float64, device=logits.device)
    # Relative to the largest, so that no temperature is too small.
    probabilities = ((logits - logits.amax(-1, keepdim=True)).double() / temperature).softmax(-1)
    if top_k is None and top_p is None:
        return _invert(probabilities, uniform)
    ordered, codes = probabilities.sort(dim=-1, descending=True, stable=True)
    kept = ordered[:, :top_k]
    if top_p is not None and top_p < 1:
        before = kept.cumsum(-1) - kept
        kept = torch.where(before < top_p * kept.sum(-1, keepdim=True), kept, 0)
    return codes.gather(-1, _invert(kept, uniform).unsqueeze(-1)).squeeze(-1)


def _invert(weights: Tensor, uniform: Tensor) -> Tensor:  # (batch, n), (batch,) -> (batch,)
    """Where the cumulated weights first exceed a share of their sum."""
    cumulated = weights.cumsum(-1)
    total = cumulated[:, -1:]
    # Rounding must not reach the sum itself, which no weight exceeds.
    share = torch.minimum(uniform.to(weights)[:, None] * total, total.nextafter(torch.zeros_like(total)))
    return torch.searchsorted(cumulated, share, right=True).squeeze(-1)


def sample(
    prior: Prior,
    batch: int,
    shape: Sequence[int],
    *,
    condition: Condition | None = None,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
    first: int = 0,
    progress: Progress | None = None,
    draft: DraftMaker | None = None,
) -> Tensor:  # -> (batch, *shape)
    """Codes from a prior, position by position.

    Each example of a seed has random numbers of its own, one for each position, so the batches in which examples are
    drawn make no difference, as far as rounding goes: ``sample(prior, 8, ...)`` gives what ``sample(prior, 5, ...)``
    and ``sample(prior, 3, ..., first=5)`` give.

    Arguments:
        prior: see :data:`sqvae.priors.PRIORS`.
        batch: how many examples.
        shape: of each: (h, w), or (n,).
        condition: of each example, for priors that were built for one.
        temperature, top_k, top_p: see :func:`draw`.
        seed: of the random numbers.
        first: the index of the first example.
        progress: told after each position how many are settled, and of how many.
        draft: what evaluates the prior; by default its own :meth:`sqvae.priors.Prior.start`.
    """
    check_choices(temperature, top_k, top_p)
    check_size(batch, "batch")
    check_size(first, "first", least=0)
    begun = prior.start(batch, shape, condition) if draft is None else draft(prior, batch, shape, condition)
    uniform = uniform_numbers(seed, range(first, first + batch), begun.positions).to(prior.embedding.weight.device)
    for position in range(begun.positions):
        logits = begun.next_logits()
        begun.put(draw(logits, uniform[:, position], temperature=temperature, top_k=top_k, top_p=top_p))
        if progress is not None:
            progress(position + 1, begun.positions)
    return begun.codes


def uniform_numbers(seed: int, examples: Sequence[int], positions: int) -> Tensor:  # -> (examples, positions)
    """At least 0 and below 1, in float64: a function of the seed, the index of the example and the position alone.

    They come from a generator that counts (Philox), with the seed as its key and the example's index in the upper half
    of its counter: no two examples can meet.
    """
    streams = [np.random.Philox(key=seed % 2**64, counter=example << 128) for example in examples]
    return torch.from_numpy(np.stack([np.random.Generator(stream).random(positions) for stream in streams]))


def check_choices(temperature: float, top_k: int | None, top_p: float | None) -> None:
    """Raise if codes can't be drawn like that."""
    check_offset(temperature, "temperature")
    if top_k is not None:
        check_size(top_k, "top_k")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p must be more than 0 and at most 1, got {top_p}; 1 leaves no code out")
