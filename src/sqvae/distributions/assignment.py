r"""Stochastic assignment of positions to codes: the inner loop of every stochastic quantizer.

Every quantizer of the family has bilinear logits, :math:`l_{ik} = q_i^\top k_k`, and needs four results from them: a
relaxed sample :math:`y_i = \mathrm{softmax}((l_i + g_i) / \tau)` with Gumbel noise g, the quantized vector
:math:`\sum_k y_{ik} b_k`, the entropy of :math:`P_i = \mathrm{softmax}(l_i)`, and the usage of each code. Computed one
after the other, these take a dozen passes over a tensor of positions x codes. Here they are computed block by block,
while a block is in the cache, and only one block exists at a time unless keeping two tensors for the backward pass is
cheap. For a large codebook, the backward pass recomputes each block with the same noise from the same seed. If several
processes share a batch, each uses the noise of its own rows.

For the compiler the whole computation is one opaque operator, so `torch.compile` finds no graph break and draws the
same noise.
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
"""Up to this number of logits (two tensors of 128 MiB in float32), the forward pass keeps what the backward pass needs;
beyond it, the backward pass recomputes it."""


LEAST_SCORE = -60.0
"""The smallest score of a code relative to the best, in nats. What is below takes part in nothing at float32's
precision, but a probability of e^-90 is a denormal number, with which processors compute up to a hundred times more
slowly."""


class Assignment(NamedTuple):
    """The results of one pass over the codes."""

    values: Tensor
    """(N, d): the quantized vectors, from relaxed or hard samples."""
    entropy: Tensor
    """(N,): the entropy of the assignment probabilities, in nats."""
    codes: Tensor
    """(N,): the sampled code of each position, or the most probable one."""
    usage: Tensor
    """(K,): the sum over positions of weight times assignment probability. Without gradient."""
    drawn: Tensor
    """(K,): the sum over positions of weight times relaxed sample, or of weight times one-hot code. In both cases its
    gradient is that of the relaxed sample."""
    spread: Tensor
    r"""(N,): the variance of the logits under the assignment probabilities. It is the rate at which the entropy falls
    with the scale of the logits: :math:`-\partial H / \partial \log a` for logits :math:`a\, l`. Without gradient."""


def assign(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    *,
    temperature: Tensor,
    weights: Tensor | None = None,
    noisy: bool = True,
    hard: bool = False,
    sharing: int = 1,
) -> Assignment:  # (N, F), (K, F), (K, d), (), (N,)
    r"""Assign positions to codes.

    Arguments:
        queries, keys: the factors of the logits, :math:`l = Q K^\top`.
        values: the codebook vectors.
        temperature: :math:`\tau` of the relaxation.
        weights: the weight of each position in `usage` and `drawn`; 1 by default.
        noisy: sample from the distribution; otherwise take its mode.
        hard: return the vector of the sampled code; its gradient is that of the relaxed sample (straight-through).
        sharing: the number of assignments in one step that share the memory for what the backward pass needs.
    """
    weights = queries.new_ones(queries.shape[0]) if weights is None else weights
    needs_gradient = torch.is_grad_enabled() and (queries.requires_grad or keys.requires_grad or values.requires_grad)
    keep = needs_gradient and sharing * queries.shape[0] * keys.shape[0] <= KEPT_LOGITS
    return Assignment(
        *_assign_operator(queries, keys, values, weights, temperature.to(queries.dtype), noisy, hard, keep)[:6]
    )


class _Block(NamedTuple):
    """One block of positions. Its tensors are valid until the next block."""

    rows: slice
    relaxed: Tensor
    """(rows, K): the relaxed sample, if requested."""
    slope: Tensor
    """(rows, K): minus the derivative of the entropy with respect to the logits, if requested."""
    scratch: Tensor
    """(rows, K): free to be overwritten."""


class _Report(NamedTuple):
    """Tensors that the statistics of all blocks are written to."""

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
    r"""Yield relaxed samples and the slopes of the entropy, block by block.

    A block is large enough for efficient matrix products. Everything else is done a few rows at a time, while they are
    in the cache. With the logits l relative to the largest, :math:`P = \mathrm{softmax}(l)` and
    :math:`m = \sum_k P_k l_k`,

    .. math:: H = -\log \max_k P_k - m, \qquad -\frac{\partial H}{\partial l_k} = P_k (l_k - m)

    Arguments:
        soft, slope: tensors to keep the two results in: (N, K), or empty to reuse one block, or None to skip them.
        report: tensors to write the statistics to.
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
                torch.softmax(scores[part].div_(temperature).clamp_min_(LEAST_SCORE), -1, out=relaxed[part])
        yield _Block(block, relaxed, slopes, scores)


def _cut(size: int, few: int, offset: int) -> Iterator[slice]:
    """Slices of 0 ... size that end where a block of noise ends: where offset + stop is a multiple of `few`."""
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
    """Turn the logits of a few rows into scores, in place, and record the statistics that the noise would hide.

    Noise is added, and the largest score of each row is 0, so that they can't overflow at any temperature.

    Arguments:
        rows: the positions of these rows among this process's rows.
        offset: the position of this process's first row in the whole batch.
    """
    logits.sub_(logits.amax(-1, keepdim=True)).clamp_min_(LEAST_SCORE)
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
        # The index of the largest score, in vectorised passes. On a CPU this takes a third of the time of argmax.
        report.codes[rows] = torch.eq(logits, 0, out=probabilities).mul_(report.indices).amax(-1)


def _rows_per_block(codes: int, device: torch.device) -> tuple[int, int]:
    """Number of rows in a block for matrix products, and in a block for the other passes.

    On a CPU the latter should fit into the second-level cache, while matrix products need a few dozen rows to be
    efficient. The former is a multiple of the latter, so that no block of noise is split. An accelerator prefers few
    kernel launches.
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
        # The gradient of `drawn` is treated as one more dimension of the values, so one product gives both.
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
    """The tensors that the forward pass kept, in blocks of the same size as its own."""
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
    ctx.set_materialize_grads(False)  # otherwise zeros of (N, K) are filled in for the kept tensors
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
    if grad_drawn is None:  # the usual case: `drawn` is not part of the loss
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
