"""Distances to codes as matrix products, and the exact search for the likeliest code."""

from collections.abc import Callable

import torch
from torch import Tensor

from sqvae.distributions.precision import full_float32_products, widest_float


def squared_distance_factors(z: Tensor, codebook: Tensor, precision: Tensor) -> tuple[Tensor, Tensor]:
    r"""Factors of the logits of all four Gaussian types, without a tensor of positions x codes x dimensions.

    .. math:: -\tfrac12 \sum_j \frac{(b_{kj} - z_{ij})^2}{\sigma_{ij}^2}
              = \sum_j \frac{z_{ij}}{\sigma_{ij}^2} b_{kj} - \sum_j \frac{1}{2 \sigma_{ij}^2} b_{kj}^2
              + \mathrm{const}_i

    The mean of the codes is subtracted first. This does not change distances, and it keeps the products as small as the
    spread of the codes, so that their differences are precise.

    Arguments:
        z: the encodings, (N, d).
        codebook: the codes, (K, d).
        precision: :math:`1 / \sigma^2`: (N, 1), (1, 1), or (N, d) if each dimension has its own.

    Returns:
        queries (N, F) and keys (K, F), whose products are the logits up to a constant per position.
    """
    centre = codebook.detach().mean(0)
    z, codebook = z - centre, codebook - centre
    squares = codebook.square() if precision.shape[-1] > 1 else codebook.square().sum(-1, keepdim=True)
    half = (-precision / 2).expand(z.shape[0], squares.shape[-1])
    return torch.cat((z * precision, half), -1), torch.cat((codebook, squares), -1)


def likeliest(
    queries: Tensor, keys: Tensor, exact: Callable[[Tensor | slice], tuple[Tensor, Tensor]]
) -> Tensor:  # (N, F), (K, F) -> (N,)
    r"""The index of the key with the largest product for each query, as in exact arithmetic.

    The error of a product of float32 vectors is at most :math:`(F + 1)\, \epsilon\, |q| |k|`, and the rounding of the
    factors adds a few :math:`\epsilon` to that. If the best product exceeds the second best by more than twice this
    error, it is the best; the few other queries are computed again with higher precision.

    Arguments:
        queries, keys: the factors.
        exact: a function that returns the factors of some queries, or of all, in the widest type.
    """
    if torch.compiler.is_compiling():  # a graph for any size cannot hold a loop whose length depends on the size
        queries, keys = exact(slice(None))
        return (queries @ keys.T).argmax(-1)
    codes = torch.empty(len(queries), dtype=torch.int64, device=queries.device)
    sure = torch.empty(len(queries), dtype=torch.bool, device=queries.device)
    indices = torch.arange(len(keys), dtype=queries.dtype, device=queries.device)
    error = 2 * (queries.shape[1] + 8) * torch.finfo(queries.dtype).eps * keys.norm(dim=-1).amax()
    # On a CPU, blocks are small enough for the second-level cache, and their memory is reused, because allocating new
    # memory takes longer than the products. An accelerator needs few kernel launches instead.
    at_once = 2**17 if queries.device.type == "cpu" else 2**23
    rows = min(max(64, at_once // len(keys)), len(queries))
    block, other = queries.new_empty(2, rows, len(keys))
    with full_float32_products():
        for start in range(0, len(queries), rows):
            some = slice(start, min(start + rows, len(queries)))
            size = some.stop - start
            products = torch.mm(queries[some], keys.T, out=block[:size])
            best = products.amax(-1)
            # The index of the largest product in vectorised passes: on a CPU this takes a third of argmax's time.
            codes[some] = torch.eq(products, best.unsqueeze(-1), out=other[:size]).mul_(indices).amax(-1)
            second = products.scatter_(1, codes[some].unsqueeze(-1), -torch.inf).amax(-1)
            # This is also false after an overflow, where values are NaN.
            sure[some] = best - second > error * queries[some].norm(dim=-1)
    if not sure.all():
        for unsure in (~sure).nonzero().squeeze(-1).split(rows):
            own, others = exact(unsure)
            codes[unsure] = (own @ others.T).argmax(-1)
    return codes


@torch.no_grad()
def nearest(z: Tensor, codebook: Tensor) -> Tensor:  # (N, d), (K, d) -> (N,)
    """The nearest code of each position, computed with as much precision as needed."""
    wide = widest_float(z.device)
    one = z.new_ones(1, 1)
    return likeliest(
        *squared_distance_factors(z, codebook.to(z.dtype), one),
        lambda some: squared_distance_factors(z[some].to(wide), codebook.to(wide), one.to(wide)),
    )
