r"""Stochastic assignment of positions to codes: the inner loop of every stochastic quantizer.

Every quantizer of the family has bilinear logits, :math:`l_{ik} = q_i^\top k_k`, and from them needs four things at
once: a relaxed sample :math:`y_i = \mathrm{softmax}((l_i + g_i) / \tau)` with Gumbel noise g, its image
:math:`\sum_k y_{ik} b_k`, the entropy of :math:`P_i = \mathrm{softmax}(l_i)`, and how much each code is used. Written
one after the other these are a dozen passes over a tensor of positions x codes; here they are done block by block,
while a block is in the cache, and no more than one block exists at a time unless keeping two tensors for the backward
pass is cheap. A large codebook is recomputed block by block on the way back, with the same noise from the same seed.
Where several processes share a batch, each meets the noise of its own rows of it.

To the compiler the whole is one opaque operator, so that `torch.compile` finds no graph break and draws no other noise.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from sqvae.distributions.noise import GumbelBlocks, draw_seed
from sqvae.distributions.operators import define_operator
from sqvae.distributions.precision import full_float32_products
from sqvae.distributions.processes import processes

KEPT_LOGITS = 2**25
"""Up to so many logits (two tensors of 128 MiB in float32) a step keeps what its backward pass needs; beyond, it
recomputes."""


class Assignment(NamedTuple):
    """What one pass over the codes gives."""

    values: Tensor
    """(N, d): the relaxed or hard sample's image in the codebook."""
    entropy: Tensor
    """(N,): of the assignment probabilities, in nats."""
    codes: Tensor
    """(N,): the sampled code of each position, or the likeliest."""
    usage: Tensor
    """(K,): the sum over positions of weight times assignment probability. Without gradient."""
    drawn: Tensor
    """(K,): the sum over positions of weight times relaxed sample, or times drawn code, with the gradient of the
    former."""
    spread: Tensor
    r"""(N,): the variance of the logits under those probabilities, which is how fast the entropy falls with their
    scale: :math:`-\partial H / \partial \log a` for logits :math:`a\, l`. Without gradient."""


def assign(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    *,
    temperature: Tensor,
    weights: Tensor | None = None,
    noisy: bool = True,
    hard: bool = False,
) -> Assignment:  # (N, F), (K, F), (K, d), (), (N,)
    r"""Assign positions to codes.

    Arguments:
        queries, keys: the factors of the logits, :math:`l = Q K^\top`.
        values: the codebook that the assignment is applied to.
        temperature: :math:`\tau` of the relaxation.
        weights: what each position counts in the usage and in what is drawn; 1 by default.
        noisy: draw from the distribution; otherwise take its mode.
        hard: give the drawn code itself; its gradient is that of the relaxed sample (straight-through).
    """
    weights = queries.new_ones(queries.shape[0]) if weights is None else weights
    needs_gradient = torch.is_grad_enabled() and (queries.requires_grad or keys.requires_grad or values.requires_grad)
    keep = needs_gradient and queries.shape[0] * keys.shape[0] <= KEPT_LOGITS
    return Assignment(
        *_assign_operator(queries, keys, values, weights, temperature.to(queries.dtype), noisy, hard, keep)[:6]
    )


class _Block(NamedTuple):
    """One block of positions. Its tensors live until the next block."""

    rows: slice
    relaxed: Tensor
    """(rows, K): the relaxed sample, if one was asked for."""
    slope: Tensor
    """(rows, K): minus the derivative of the entropy by the logits, if it was asked for."""
    scratch: Tensor
    """(rows, K): free to be written to."""


class _Report(NamedTuple):
    """What the blocks write down as they pass, besides what they yield."""

    entropy: Tensor  # (N,)
    codes: Tensor  # (N,)
    usage: Tensor  # (K,)
    spread: Tensor  # (N,)
    weights: Tensor  # (N,)
    indices: Tensor  # (K,): 0 ... K - 1


def _blocks(
    queries: Tensor,
    keys: Tensor,
    temperature: Tensor,
    seed: int,
    noisy: bool,
    *,
    soft: Tensor | None,
    slope: Tensor | None,
    report: _Report | None = None,
) -> Iterator[_Block]:
    r"""Relaxed samples and the slopes of the entropy, block by block.

    A block is large enough for efficient matrix products, and everything else is done a few rows at a time, while they
    are in the cache. With the logits l relative to the largest, :math:`P = \mathrm{softmax}(l)` and
    :math:`m = \sum_k P_k l_k`,

    .. math:: H = -\log \max_k P_k - m, \qquad -\frac{\partial H}{\partial l_k} = P_k (l_k - m)

    Arguments:
        soft, slope: where to keep the two: (N, K), or empty for one block to be used over again, or None to go without.
        report: where to write the statistics.
    """
    count, codes = len(queries), len(keys)
    rank, number = processes()
    rows, few = _rows_per_block(codes, queries.device)
    rows = min(rows, count)
    few = min(few, number * count)
    noise = None
    if noisy:
        noise = GumbelBlocks(seed, number * count, codes, queries.dtype, queries.device, height=few)
    logits = queries.new_empty(rows, codes)
    probabilities = queries.new_empty(min(few, rows), codes)
    spare = [queries.new_empty(rows if kept is not None and len(kept) == 0 else 0, codes) for kept in (soft, slope)]
    for start in range(0, count, rows):
        block = slice(start, min(start + rows, count))
        size = block.stop - start
        scores = torch.mm(queries[block], keys.T, out=logits[:size])
        relaxed, slopes = (
            kept[block] if kept is not None and len(kept) else own[:size]
            for kept, own in zip((soft, slope), spare, strict=True)
        )
        for part in _cut(size, few, rank * count + start):
            _pass_over(
                scores[part],
                probabilities[: part.stop - part.start],
                slopes[part] if slope is not None else None,
                noise,
                report,
                slice(start + part.start, start + part.stop),
                rank * count,
            )
            if soft is not None:
                torch.softmax(scores[part].div_(temperature), -1, out=relaxed[part])
        yield _Block(block, relaxed, slopes, scores)


def _cut(size: int, few: int, offset: int) -> Iterator[slice]:
    """Slices of 0 ... size that end where a block of noise does: where, with the offset, a multiple of `few` is."""
    start = 0
    while start < size:
        stop = min(size, start + few - (offset + start) % few)
        yield slice(start, stop)
        start = stop


def _pass_over(
    logits: Tensor,
    probabilities: Tensor,
    slope: Tensor | None,
    noise: GumbelBlocks | None,
    report: _Report | None,
    rows: slice,
    offset: int,
) -> None:
    """Turn the logits of a few rows into scores: noise added, and 0 for the largest, so that no temperature can make
    them overflow. On the way, write down what the noise would cover.

    Arguments:
        rows: which of this process's rows they are.
        offset: where those begin in the whole batch.
    """
    logits.sub_(logits.amax(-1, keepdim=True))
    torch.softmax(logits, -1, out=probabilities)
    mean = torch.linalg.vecdot(probabilities, logits)
    if slope is not None:
        torch.sub(logits, mean.unsqueeze(-1), out=slope).mul_(probabilities)
    if report is not None:
        report.entropy[rows] = -probabilities.amax(-1).log() - mean
        weighted = probabilities * (logits - mean.unsqueeze(-1)) if slope is None else slope
        report.spread[rows] = torch.linalg.vecdot(weighted, logits)
        report.usage.addmv_(probabilities.T, report.weights[rows])
    if noise is not None:
        logits.sub_(noise.rows(offset + rows.start, offset + rows.stop))
        logits.sub_(logits.amax(-1, keepdim=True))
    if report is not None:
        # The index of the largest, in vectorised passes: on a CPU this takes a third of argmax's time.
        report.codes[rows] = torch.eq(logits, 0, out=probabilities).mul_(report.indices).amax(-1)


def _rows_per_block(codes: int, device: torch.device) -> tuple[int, int]:
    """How many rows for matrix products, and for the passes in between.

    On a CPU the latter should stay in the second-level cache, while the former need a few dozen rows to be efficient; a
    whole number of the latter, so that no block of noise is cut. An accelerator wants few launches instead.
    """
    if device.type != "cpu":
        return (max(1, 2**23 // codes),) * 2
    few = max(1, 2**18 // codes, min(8, 2**19 // codes))
    return few * max(1, min(64, 2**22 // codes) // few), few


@full_float32_products()
def _assign(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    weights: Tensor,
    temperature: Tensor,
    noisy: bool,
    hard: bool,
    keep: bool,
) -> tuple[Tensor, ...]:
    seed = draw_seed() if noisy else torch.zeros((), dtype=torch.int64, device="cpu")
    image, entropy, codes, usage, drawn, spread, soft, slope, _ = _allocate(queries, keys, values, keep)
    drawn.zero_()
    indices = torch.arange(len(keys), dtype=queries.dtype, device=queries.device)
    report = _Report(entropy, codes, usage.zero_(), spread, weights, indices)
    relax, slopes = soft if keep or not hard else None, slope if keep else None
    for block in _blocks(queries, keys, temperature, int(seed), noisy, soft=relax, slope=slopes, report=report):
        if not hard:
            torch.mm(block.relaxed, values, out=image[block.rows])
            drawn.addmv_(block.relaxed.T, weights[block.rows])
    if hard:
        torch.index_select(values, 0, codes, out=image)
        drawn.index_add_(0, codes, weights)
    return image, entropy, codes, usage, drawn, spread, soft, slope, seed


@full_float32_products()
def _assign_backward(
    grad_image: Tensor,
    grad_entropy: Tensor,
    grad_drawn: Tensor,
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    weights: Tensor,
    temperature: Tensor,
    codes: Tensor,
    soft: Tensor,
    slope: Tensor,
    seed: Tensor,
    noisy: bool,
    hard: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    grad_queries = torch.empty_like(queries)
    # Accumulated as (F, K) and (d, K): products in that order are faster.
    grad_keys, grad_values = (
        torch.zeros_like(factor.T, memory_format=torch.contiguous_format) for factor in (keys, values)
    )
    scaled_grad, targets = grad_image / temperature, values
    if len(grad_drawn):
        # What a code is drawn is one dimension more of its image: the same product has both.
        scaled_grad = torch.cat((scaled_grad, (weights / temperature).unsqueeze(-1)), 1)
        targets = torch.cat((values, grad_drawn.unsqueeze(-1)), 1)
    if len(soft):
        blocks = _kept_blocks(soft, slope)
    else:
        blocks = _blocks(queries, keys, temperature, int(seed), noisy, soft=soft, slope=slope)
    _, few = _rows_per_block(len(keys), queries.device)
    for rows, relaxed, entropy_slope, scratch in blocks:
        grad_logits = torch.mm(scaled_grad[rows], targets.T, out=scratch)
        for gradient, weight, slopes, by_entropy in zip(
            grad_logits.split(few),
            relaxed.split(few),
            entropy_slope.split(few),
            grad_entropy[rows].unsqueeze(-1).split(few),
            strict=True,
        ):
            gradient.sub_(torch.linalg.vecdot(weight, gradient).unsqueeze(-1)).mul_(weight)
            gradient.addcmul_(slopes, by_entropy, value=-1)
        torch.mm(grad_logits, keys, out=grad_queries[rows])
        grad_keys.addmm_(queries[rows].T, grad_logits)
        if not hard:
            grad_values.addmm_(grad_image[rows].T, relaxed)
    if hard:
        grad_values.index_add_(1, codes, grad_image.T)
    return grad_queries, grad_keys.T.contiguous(), grad_values.T.contiguous()


def _kept_blocks(soft: Tensor, slope: Tensor) -> Iterator[_Block]:
    """What the forward pass kept, in blocks like its own."""
    count, codes = soft.shape
    rows, _ = _rows_per_block(codes, soft.device)
    scratch = soft.new_empty(min(rows, count), codes)
    for start in range(0, count, rows):
        block = slice(start, min(start + rows, count))
        yield _Block(block, soft[block], slope[block], scratch[: block.stop - start])


def _allocate_gradients(
    grad_image: Tensor, grad_entropy: Tensor, grad_drawn: Tensor, queries: Tensor, keys: Tensor, values: Tensor, *_: Any
) -> tuple[Tensor, Tensor, Tensor]:
    return torch.empty_like(queries), torch.empty_like(keys), torch.empty_like(values)


def _allocate(queries: Tensor, keys: Tensor, values: Tensor, keep: bool) -> tuple[Tensor, ...]:
    positions, codes = queries.shape[0], keys.shape[0]
    kept = positions if keep else 0
    return (
        queries.new_empty(positions, values.shape[1]),
        queries.new_empty(positions),
        queries.new_empty(positions, dtype=torch.int64),
        queries.new_empty(codes),
        queries.new_empty(codes),
        queries.new_empty(positions),
        queries.new_empty(kept, codes),
        queries.new_empty(kept, codes),
        torch.empty((), dtype=torch.int64, device="cpu"),
    )


def _save_for_backward(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    queries, keys, values, weights, temperature, ctx.noisy, ctx.hard, _ = inputs
    _, _, codes, usage, _, spread, soft, slope, seed = output
    ctx.mark_non_differentiable(codes, usage, spread, soft, slope, seed)
    ctx.set_materialize_grads(False)  # else zeros of (N, K) are filled for the kept tensors
    ctx.save_for_backward(queries, keys, values, weights, temperature, codes, soft, slope, seed)


def _differentiate(
    ctx: Any,
    grad_image: Tensor | None,
    grad_entropy: Tensor | None,
    grad_codes: None,
    grad_usage: None,
    grad_drawn: Tensor | None,
    *_: Any,
) -> tuple[Any, ...]:
    queries, _keys, values, *_rest = ctx.saved_tensors
    if grad_image is None:
        grad_image = queries.new_zeros(queries.shape[0], values.shape[1])
    if grad_entropy is None:
        grad_entropy = queries.new_zeros(queries.shape[0])
    if grad_drawn is None:  # nobody asked for it, as most don't
        grad_drawn = queries.new_empty(0)
    gradients = _backward_operator(grad_image, grad_entropy, grad_drawn, *ctx.saved_tensors, ctx.noisy, ctx.hard)
    return (*gradients, None, None, None, None, None)


_assign_operator = define_operator(
    "assign",
    "(Tensor queries, Tensor keys, Tensor values, Tensor weights, Tensor temperature, bool noisy, bool hard, bool keep)"
    " -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    _assign,
    lambda queries, keys, values, *rest: _allocate(queries, keys, values, keep=rest[-1]),
    random=True,
)
_backward_operator = define_operator(
    "assign_backward",
    "(Tensor grad_image, Tensor grad_entropy, Tensor grad_drawn, Tensor queries, Tensor keys, Tensor values,"
    " Tensor weights, Tensor temperature, Tensor codes, Tensor soft, Tensor slope, Tensor seed, bool noisy, bool hard)"
    " -> (Tensor, Tensor, Tensor)",
    _assign_backward,
    _allocate_gradients,
)
torch.library.register_autograd("sqvae::assign", _differentiate, setup_context=_save_for_backward)
