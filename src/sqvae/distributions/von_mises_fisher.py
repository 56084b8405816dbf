r"""The von Mises-Fisher distribution of directions on the unit sphere.

.. math:: \mathrm{vMF}(v; m, \kappa) = C_F(\kappa) \exp(\kappa\, m^\top v), \qquad v, m \in \mathcal S^{F-1}
"""

import math
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from sqvae.distributions.bessel import log_bessel_ratio
from sqvae.distributions.checks import check_finite, check_size
from sqvae.distributions.operators import define_operator
from sqvae.distributions.precision import widest_float
from sqvae.distributions.processes import own_normal_like, own_rows, processes

_NEWTON_STEPS = 2
_QUADRATURE_NODES = 128
_LARGEST_CONCENTRATION = 1e15  # beyond it, a sample equals the mean in float64


def log_normalizer(concentration: Tensor, dim: int) -> Tensor:  # (...) -> (...)
    r"""The log of the normalising constant, for every concentration >= 0. Twice differentiable.

    .. math:: \log C_F(\kappa) = (F/2 - 1) \log \kappa - \log I_{F/2-1}(\kappa) - (F/2) \log 2\pi

    Its derivative is minus the mean resultant length. (The appendix of the paper prints the integral of the exponential
    as :math:`C_F`; the constant is the reciprocal of that integral, as in the formula above.)

    Arguments:
        concentration: :math:`\kappa`; the computation is in float64 for any input type, if the device supports it.
        dim: :math:`F \ge 2`, the dimension of the space that contains the sphere.
    """
    log_constant, _ = _constants(concentration, dim)
    return log_constant


def mean_resultant_length(concentration: Tensor, dim: int) -> Tensor:  # (...) -> (...)
    r"""The length of the mean of the distribution, :math:`A_F(\kappa) = I_{F/2}(\kappa) / I_{F/2-1}(\kappa) < 1`."""
    _, length = _constants(concentration, dim)
    return length


@torch.no_grad()
def likeliest_concentration(shortfall: Tensor, dim: int) -> Tensor:  # (...) -> (...)
    r"""The maximum-likelihood concentration for directions with a mean cosine of :math:`R` to their centre.

    .. math:: A_F(\kappa) = R, \qquad \kappa \approx \frac{R (F - R^2)}{1 - R^2}

    The approximation (Banerjee et al., 2005) has an error of a few percent; two Newton steps reduce it to a few
    millionths at most. Without gradient.

    Arguments:
        shortfall: :math:`1 - R`, which keeps its digits for directions close together. From 1 on, the result is 0.
        dim: :math:`F \ge 2`, the dimension of the space that contains the sphere.
    """
    tiny = torch.finfo(shortfall.dtype).tiny
    length = (1 - shortfall).clamp_min(0)
    concentration = length * (dim - length**2) / (shortfall * (2 - shortfall)).clamp_min(tiny)
    for _ in range(_NEWTON_STEPS):
        _, found = _constants(concentration, dim)
        slope = _length_slope(concentration, found, dim)
        # For large concentrations the slope has no correct digits left, but there the approximation is exact.
        step = torch.where(slope > 0, (found - length) / slope.clamp_min(tiny), 0)
        concentration = torch.where(step.abs() < concentration / 2, concentration - step, concentration)
    return concentration


def log_density(value: Tensor, mean: Tensor, concentration: Tensor) -> Tensor:  # (..., F), (..., F), (...) -> (...)
    """The log-density of unit vectors with respect to the surface of the sphere."""
    cosine = (value * mean).sum(-1)
    return log_normalizer(concentration, value.shape[-1]) + concentration * cosine


def sample(mean: Tensor, concentration: Tensor) -> Tensor:  # (..., F), (...) -> (..., F)
    r"""Sample directions; differentiable in the mean and the concentration.

    A direction consists of its cosine with the mean and a uniform direction orthogonal to the mean,
    :math:`v = w\, m + \sqrt{1 - w^2}\, t` with :math:`t \perp m`. The cosine is drawn by Wood's rejection scheme and
    differentiated implicitly, :math:`\partial w / \partial \kappa = -\partial_\kappa F(w; \kappa) / f(w; \kappa)`, so
    the gradient does not depend on the rejections.

    Several processes draw the parts of one batch (:func:`~sqvae.distributions.processes.own_rows`), provided that their
    concentrations are the same.
    """
    wide = widest_float(mean.device)
    concentration = concentration.to(wide).expand(mean.shape[:-1]).contiguous()
    cosine: Tensor = _cosine_operator(concentration, mean.shape[-1]).unsqueeze(-1)
    noise = own_normal_like(mean)
    across: Tensor = torch.nn.functional.normalize(noise - (noise * mean).sum(-1, keepdim=True) * mean, dim=-1)
    sine = ((1 - cosine) * (1 + cosine)).clamp_min(torch.finfo(wide).tiny).sqrt()
    return cosine.to(mean.dtype) * mean + sine.to(mean.dtype) * across


def _constants(concentration: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    check_size(dim, "dim", least=2)
    wide = concentration.to(widest_float(concentration.device))
    log_constant: Tensor
    length: Tensor
    log_constant, length = _constants_operator(wide, dim)
    return log_constant.to(concentration.dtype), length.to(concentration.dtype)


def _compute_constants(concentration: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    log_scaled, length = log_bessel_ratio(dim / 2 - 1, concentration)
    return -log_scaled - dim / 2 * math.log(2 * math.pi), length


def _differentiate_constants(ctx: Any, grad_log_constant: Tensor, grad_length: Tensor) -> tuple[Tensor, None]:
    r"""The gradient, with :math:`(\log C_F)' = -A_F` and :math:`A_F' = 1 - A_F^2 - (F - 1) A_F / \kappa`."""
    concentration, length = ctx.saved_tensors
    return grad_length * _length_slope(concentration, length, ctx.dim) - grad_log_constant * length, None


def _length_slope(concentration: Tensor, length: Tensor, dim: int) -> Tensor:  # (...), (...) -> (...)
    per_unit = torch.where(concentration > 0, length / concentration, 1 / dim)
    return 1 - length**2 - (dim - 1) * per_unit


def _draw_cosine(concentration: Tensor, dim: int) -> Tensor:  # (...) -> (...)
    r"""The cosine between a sample and the mean, with density proportional to :math:`e^{\kappa w} (1 - w^2)^{(F-3)/2}`.

    Wood (1994): propose from a transformed Beta distribution; at least about two of three proposals are accepted.
    """
    check_finite(concentration, "concentration")
    own = concentration.flatten().clamp_max(_LARGEST_CONCENTRATION)
    _, number = processes()
    # Rejection consumes an unknown number of random numbers, so the rows of other processes can't be skipped.
    return own_rows(lambda _: _propose_and_reject(own.repeat(number), dim), len(own)).view_as(concentration)


def _propose_and_reject(kappa: Tensor, dim: int) -> Tensor:  # (N,) -> (N,)
    b = (dim - 1) / (2 * kappa + (4 * kappa**2 + (dim - 1) ** 2).sqrt())
    mode = (1 - b) / (1 + b)
    # 1 - mode^2 = 4b / (1 + b)^2, in this form because the mode approaches 1.
    peak = kappa * mode + (dim - 1) * (4 * b / (1 + b) ** 2).log()
    proposal = torch.distributions.Beta(kappa.new_tensor((dim - 1) / 2), kappa.new_tensor((dim - 1) / 2))
    cosine = torch.empty_like(kappa)
    pending = torch.arange(len(kappa), device=kappa.device)
    while len(pending):
        beta = proposal.sample(pending.shape)
        candidate = 1 - 2 * b[pending] * beta / (1 - (1 - b[pending]) * beta)
        height = kappa[pending] * candidate + (dim - 1) * (-mode[pending] * candidate).log1p() - peak[pending]
        accepted = height >= torch.rand_like(height).log()
        cosine[pending[accepted]] = candidate[accepted]
        pending = pending[~accepted]
    return cosine


def _cosine_slope(cosine: Tensor, concentration: Tensor, dim: int) -> Tensor:  # (...), (...) -> (...)
    r"""The implicit derivative of the cosine with respect to the concentration.

    With :math:`\partial_\kappa \log f(s) = s - A_F(\kappa)`, whose integral over the whole range is zero,

    .. math:: \frac{\partial w}{\partial \kappa} = \int_w^1 (s - A_F) \frac{f(s)}{f(w)}\, ds
              = \int_{-1}^w (A_F - s) \frac{f(s)}{f(w)}\, ds,

    the first for :math:`w \ge 0`, the second otherwise. Substituting :math:`1 \mp s = (1 \mp w) y^2` removes the
    singularity of the two-dimensional case at the end of the range. The integral is by Gauss-Legendre quadrature.
    """
    y, weights = (values.to(cosine) for values in _gauss_legendre(_QUADRATURE_NODES))
    side = torch.where(cosine >= 0, 1.0, -1.0).to(cosine).unsqueeze(-1)
    kappa, w = concentration.unsqueeze(-1), cosine.unsqueeze(-1)
    end = (1 - side * w).clamp_min(torch.finfo(cosine.dtype).tiny)
    _, length = _compute_constants(kappa, dim)
    log_ratio = (
        side * kappa * end * (1 - y**2)
        + (dim - 2) * y.log()
        + (dim - 3) / 2 * ((2 - end * y**2).log() - (2 - end).log())
    )
    integrand = 2 * end * log_ratio.exp() * (1 - side * length - end * y**2)
    return (integrand * weights).sum(-1)


@lru_cache
def _gauss_legendre(nodes: int) -> tuple[Tensor, Tensor]:
    """Nodes and weights on [0, 1], from the eigenvalues of the Jacobi matrix (Golub and Welsch, 1969)."""
    k = torch.arange(1, nodes, dtype=torch.float64)
    off_diagonal = k / (4 * k**2 - 1).sqrt()
    values, vectors = torch.linalg.eigh(torch.diag(off_diagonal, 1) + torch.diag(off_diagonal, -1))
    return (values + 1) / 2, vectors[0] ** 2


def _save_constants(ctx: Any, inputs: tuple[Tensor, int], output: tuple[Tensor, Tensor]) -> None:
    concentration, ctx.dim = inputs
    ctx.save_for_backward(concentration, output[1])


def _save_cosine(ctx: Any, inputs: tuple[Tensor, int], output: Tensor) -> None:
    concentration, ctx.dim = inputs
    ctx.save_for_backward(output, concentration)


def _differentiate_cosine(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
    return grad * _cosine_slope_operator(*ctx.saved_tensors, ctx.dim), None


_constants_operator = define_operator(
    "von_mises_fisher_constants",
    "(Tensor concentration, int dim) -> (Tensor, Tensor)",
    _compute_constants,
    lambda concentration, dim: (torch.empty_like(concentration), torch.empty_like(concentration)),
)
_cosine_operator = define_operator(
    "von_mises_fisher_cosine",
    "(Tensor concentration, int dim) -> Tensor",
    _draw_cosine,
    lambda concentration, dim: torch.empty_like(concentration),
    random=True,
)
_cosine_slope_operator = define_operator(
    "von_mises_fisher_cosine_slope",
    "(Tensor cosine, Tensor concentration, int dim) -> Tensor",
    _cosine_slope,
    lambda cosine, concentration, dim: torch.empty_like(cosine),
)
torch.library.register_autograd(
    "sqvae::von_mises_fisher_constants", _differentiate_constants, setup_context=_save_constants
)
torch.library.register_autograd("sqvae::von_mises_fisher_cosine", _differentiate_cosine, setup_context=_save_cosine)
