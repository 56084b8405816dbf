r"""The modified Bessel function of the first kind, in the log domain, for every real order >= 0.

Only :math:`I_\nu(x) / x^\nu` is computed. It is smooth and positive from :math:`x = 0` on, so nothing overflows,
underflows or cancels. Two facts suffice:

- Debye's expansion, uniform in x, is accurate to the last digits once the order :math:`\mu` is not small. With
  :math:`h = \sqrt{1 + (x/\mu)^2}` and :math:`p = 1/h`,

  .. math:: \log \frac{I_\mu(x)}{x^\mu} = \mu (h - \log \mu - \log(1 + h)) - \tfrac12 \log(2 \pi \mu h)
            + \log \sum_k u_k(p) \mu^{-k}

- the ratios :math:`s_\mu = x I_{\mu+1}(x) / I_\mu(x)` obey :math:`s_{\mu-1} = x^2 / (2 \mu + s_\mu)`, a recurrence that
  is stable towards lower orders and has positive terms only.
"""

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache

import torch
from torch import Tensor

_ORDER = 16  # from this order on, Debye's expansion with this number of terms ...
_TERMS = 10  # ... is accurate to 1e-13
Polynomial = Mapping[int, Fraction]


def log_bessel_ratio(order: float, x: Tensor) -> tuple[Tensor, Tensor]:  # (...) -> (...), (...)
    r""":math:`\log (I_\nu(x) / x^\nu)` and the ratio :math:`I_{\nu+1}(x) / I_\nu(x)` for :math:`x \ge 0`."""
    steps = max(2, math.ceil(_ORDER - order))
    log_scaled, s = _debye(order + steps, x)
    square = x * x
    for step in range(steps, 1, -1):
        denominator = 2 * (order + step) + s
        log_scaled = log_scaled + denominator.log()
        s = square / denominator
    denominator = 2 * (order + 1) + s
    return log_scaled + denominator.log(), x / denominator


def _debye(order: float, x: Tensor) -> tuple[Tensor, Tensor]:
    r""":math:`\log(I_\mu(x) / x^\mu)` and :math:`s_\mu = x I_{\mu+1} / I_\mu = \mu (h V / U - 1)`."""
    h = (1 + (x / order) ** 2).sqrt()
    u_coefficients, v_coefficients = _debye_sums(order)
    powers = (1 / h).unsqueeze(-1) ** torch.arange(len(u_coefficients), device=x.device)
    u, v = (
        (powers * torch.tensor(coefficients, dtype=x.dtype, device=x.device)).sum(-1)
        for coefficients in (u_coefficients, v_coefficients)
    )
    log_scaled = order * (h - math.log(order) - h.log1p()) - (2 * math.pi * order * h).log() / 2 + u.log()
    return log_scaled, order * (h * v / u - 1)


@lru_cache
def _debye_sums(order: float) -> tuple[list[float], list[float]]:
    r"""The coefficients, by power of p, of :math:`U = \sum_k u_k(p) \mu^{-k}` and of V, the same for the derivative."""
    us, vs = _debye_polynomials(_TERMS)
    sums = ([0.0] * (3 * _TERMS + 1), [0.0] * (3 * _TERMS + 1))
    for total, polynomials in zip(sums, (us, vs), strict=True):
        for k, polynomial in enumerate(polynomials):
            for power, coefficient in polynomial.items():
                total[power] += float(coefficient) / order**k
    return sums


@lru_cache
def _debye_polynomials(terms: int) -> tuple[list[Polynomial], list[Polynomial]]:
    r"""Debye's polynomials (DLMF 10.41.9), as exact fractions.

    .. math::
        u_{k+1}(p) &= \tfrac12 p^2 (1 - p^2) u_k'(p) + \tfrac18 \int_0^p (1 - 5 t^2) u_k(t)\, dt \\
        v_{k+1}(p) &= u_{k+1}(p) - p (1 - p^2) \left(\tfrac12 u_k(p) + p u_k'(p)\right)
    """
    us: list[Polynomial] = [{0: Fraction(1)}]
    vs: list[Polynomial] = [{0: Fraction(1)}]
    for _ in range(terms):
        u: dict[int, Fraction] = {}
        v: dict[int, Fraction] = {}
        for power, c in us[-1].items():
            _add(u, power + 1, c * power / 2 + c / (8 * (power + 1)))
            _add(u, power + 3, -c * power / 2 - 5 * c / (8 * (power + 3)))
            _add(v, power + 1, -c * (Fraction(1, 2) + power))
            _add(v, power + 3, c * (Fraction(1, 2) + power))
        for power, c in u.items():
            _add(v, power, c)
        us.append(u)
        vs.append(v)
    return us, vs


def _add(polynomial: dict[int, Fraction], power: int, coefficient: Fraction) -> None:
    polynomial[power] = polynomial.get(power, Fraction(0)) + coefficient
