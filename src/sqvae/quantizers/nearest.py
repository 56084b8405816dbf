"""Distances to codes as matrix products, and the exact search for the likeliest code."""

import torch
from torch import Tensor

from sqvae.distributions.precision import widest_float

_LOGITS_AT_ONCE = 2**22


def squared_distance_factors(z: Tensor, codebook: Tensor, precision: Tensor) -> tuple[Tensor, Tensor]:
    r"""Factors of the logits of all four Gaussian types: no tensor of positions x codes x dimensions.

    .. math:: -\tfrac12 \sum_j \frac{(b_{kj} - z_{ij})^2}{\sigma_{ij}^2}
              = \sum_j \frac{z_{ij}}{\sigma_{ij}^2} b_{kj} - \sum_j \frac{1}{2 \sigma_{ij}^2} b_{kj}^2
              + \mathrm{const}_i

    Everything is measured from the codes' centre first: distances don't change, and the products, whose differences are
    wanted, stay as small as the codes' spread rather than as large as their offset from the origin.

    Arguments:
        z: (N, d).
        codebook: (K, d).
        precision: :math:`1 / \sigma^2`: (N, 1), (1, 1), or (N, d) where each dimension has its own.

    Returns:
        queries (N, F) and keys (K, F), whose products are the logits up to a constant per position.
    """
    centre = codebook.detach().mean(0)
    z, codebook = z - centre, codebook - centre
    squares = codebook.square() if precision.shape[-1] > 1 else codebook.square().sum(-1, keepdim=True)
    half = (-precision / 2).expand(z.shape[0], squares.shape[-1])
    return torch.cat((z * precision, half), -1), torch.cat((codebook, squares), -1)


def likeliest(queries: Tensor, keys: Tensor) -> Tensor:  # (N, F), (K, F) -> (N,)
    """The key with the largest product for each query, a bounded number of products at a time."""
    if torch.compiler.is_compiling():  # a graph for any size can't hold a loop whose length depends on it
        return (queries @ keys.T).argmax(-1)
    rows = max(1, _LOGITS_AT_ONCE // len(keys))
    chunks = [(chunk @ keys.T).argmax(-1) for chunk in queries.split(rows)]
    return torch.cat(chunks) if chunks else queries.new_empty(0, dtype=torch.int64)


@torch.no_grad()
def nearest(z: Tensor, codebook: Tensor) -> Tensor:  # (N, d), (K, d) -> (N,)
    """The nearest code of each position, in float64 so that near-ties in float32 don't mislead."""
    wide = widest_float(z.device)
    z, codebook = z.to(wide), codebook.to(wide)
    return likeliest(*squared_distance_factors(z, codebook, z.new_ones(1, 1)))
