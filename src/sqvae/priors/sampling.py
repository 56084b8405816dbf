"""Sampling of codes: at one position from its logits, or whole maps from a prior."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from sqvae.distributions.checks import check_finite, check_offset, check_size
from sqvae.priors.contract import Condition, Draft, Prior

Progress = Callable[[int, int], None]
"""A function that is called after each code with the number of codes that are done and their total."""

DraftMaker = Callable[[Prior, int, Sequence[int], Condition | None], Draft]


def draw(
    logits: Tensor,
    uniform: Tensor | None = None,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Tensor:  # (batch, K), (batch,) -> (batch,)
    r"""A code drawn for each row of logits.

    .. math:: p = \mathrm{softmax}(l / \tau), \qquad c = \min \{ k : u \sum_j p_j < p_1 + \dots + p_k \}

    With `top_k` or `top_p` the codes are first sorted by their probabilities, and the least likely ones are left out.
    Of equally likely codes, the one with the lower index comes first.

    Arguments:
        logits: the logits l.
        uniform: the random numbers u, at least 0 and below 1; by default torch's generator draws them.
        temperature: the temperature :math:`\tau`; 0 takes the likeliest code.
        top_k: the number of likeliest codes to keep.
        top_p: keep only the fewest likeliest of these codes whose total probability is at least this share of that of
            all of them. It is more than 0 and at most 1.
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
    # Logits are relative to the largest, so that a small temperature does not overflow.
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
    """The first index at which the cumulative weights exceed a share of their sum."""
    cumulated = weights.cumsum(-1)
    total = cumulated[:, -1:]
    # The share must stay below the sum after rounding, because no cumulative weight exceeds the sum.
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
    """Codes sampled from a prior, position by position, and with layers layer by layer at each.

    The random numbers depend on the seed, the index of the example and the place of the code in it only. So the batch
    size makes no difference, up to rounding: ``sample(prior, 8, ...)`` returns what ``sample(prior, 5, ...)`` and
    ``sample(prior, 3, ..., first=5)`` return.

    Arguments:
        prior: one of :data:`sqvae.priors.PRIORS`.
        batch: the number of examples.
        shape: the shape of each example: (h, w), or (n,); with layers one axis more.
        condition: the condition of each example, for a conditional prior.
        temperature, top_k, top_p: see :func:`draw`.
        seed: the seed of the random numbers.
        first: the index of the first example.
        progress: a function that is called after each code with the number of codes that are done and their total.
        draft: a function that starts the draft to evaluate the prior with; by default :meth:`sqvae.priors.Prior.start`.
    """
    check_choices(temperature, top_k, top_p)
    check_size(batch, "batch")
    check_size(first, "first", least=0)
    begun = prior.start(batch, shape, condition) if draft is None else draft(prior, batch, shape, condition)
    uniform = uniform_numbers(seed, range(first, first + batch), begun.steps).to(prior.embedding.weight.device)
    for step in range(begun.steps):
        logits = begun.next_logits()
        begun.put(draw(logits, uniform[:, step], temperature=temperature, top_k=top_k, top_p=top_p))
        if progress is not None:
            progress(step + 1, begun.steps)
    return begun.codes


def uniform_numbers(seed: int, examples: Sequence[int], positions: int) -> Tensor:  # -> (examples, positions)
    """Random numbers in [0, 1), in float64, that depend on the seed, the index of the example and the position only.

    They come from a counter-based generator (Philox), with the seed as its key and the example's index in the upper
    half of its counter, so that the streams of two examples never overlap.
    """
    streams = [np.random.Philox(key=seed % 2**64, counter=example << 128) for example in examples]
    return torch.from_numpy(np.stack([np.random.Generator(stream).random(positions) for stream in streams]))


def check_choices(temperature: float, top_k: int | None, top_p: float | None) -> None:
    """Raise if codes cannot be drawn with these options."""
    check_offset(temperature, "temperature")
    if top_k is not None:
        check_size(top_k, "top_k")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p must be more than 0 and at most 1, got {top_p}; 1 leaves no code out")
