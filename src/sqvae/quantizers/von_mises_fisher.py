"""Von Mises-Fisher stochastic quantization."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from sqvae.distributions import von_mises_fisher
from sqvae.distributions.checks import check_log_scale, check_offset, check_positive, check_size
from sqvae.distributions.precision import widest_float
from sqvae.quantizers.contract import Positions
from sqvae.quantizers.stochastic import StochasticQuantizer


class VonMisesFisherQuantizer(StochasticQuantizer):
    r"""Quantization by direction: codes and encodings live on the unit sphere.

    .. math:: p_\varphi(z_i \mid Z_q) = \mathrm{vMF}(z_{q,i}, \kappa_\varphi), \qquad
              \hat P_\varphi(z_{q,i} = b_k \mid Z) = \mathrm{softmax}_k(\kappa_\varphi\, b_k^\top z_i)

    .. math:: \mathcal R_\varphi^{\mathrm{vMF}}(Z, Z_q) = \sum_i \kappa_\varphi (1 - z_{q,i}^\top z_i)

    The concentration is :math:`\kappa_\varphi = c + e^s`. In the paper c is 0; in its authors' code it is 1.

    Encodings and codebook are normalised here, so the encoder need not normalise its output. With dequantization, the
    mean of the draws has the length :math:`A(\kappa_\varphi) < 1`, and each draw costs :math:`\kappa_\varphi (1 -
    A(\kappa_\varphi))` on average; the paper sets the length of the mean to 1.

    Arguments:
        codebook_size: the number of codes, :math:`K`.
        dim: the dimension of a code, :math:`d_b \ge 2`.
        initial_concentration: :math:`e^s` at the start; 1 makes the first assignments nearly uniform.
        concentration_offset: c, at least 0.
        dequantize, hard: see :class:`~sqvae.quantizers.stochastic.StochasticQuantizer`.
        codebook_scale: the standard deviation of the codes' components before they are normalised. It does not change
            their directions, but a training step of the same size turns shorter vectors further. None takes :math:`1 /
            \sqrt{d_b}`, for a length of about 1.
        channel_first: whether latent maps are (batch, dim, ...).
    """

    # It can be set to True. In short trials on label maps it costs error: see docs/schedule.md.
    settles = False
    scale_sign = -1

    def __init__(
        self,
        codebook_size: int,
        dim: int,
        *,
        initial_concentration: float = 1.0,
        concentration_offset: float = 0.0,
        dequantize: bool = False,
        hard: bool = False,
        codebook_scale: float | None = None,
        channel_first: bool = False,
    ) -> None:
        check_size(dim, "dim", least=2)
        super().__init__(
            codebook_size,
            dim,
            dequantize=dequantize,
            hard=hard,
            codebook_scale=1 / math.sqrt(dim) if codebook_scale is None else codebook_scale,
            channel_first=channel_first,
        )
        check_positive(initial_concentration, "initial_concentration")
        check_offset(concentration_offset, "concentration_offset")
        self.concentration_offset = concentration_offset
        self.log_concentration = nn.Parameter(torch.tensor(math.log(initial_concentration)))

    def project(self, vectors: Tensor) -> Tensor:
        return normalize(vectors, dim=-1)

    def _factors(self, z: Tensor, vectors: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
        return scale.exp() * z, vectors

    def _regularizer(self, z: Tensor, z_q: Tensor, scale: Tensor) -> Tensor:
        cosine: Tensor = torch.linalg.vecdot(z, z_q)
        return scale.exp() * (1 - cosine)

    def _dequantize(self, encoding: Tensor, scale: Tensor) -> Tensor:
        return von_mises_fisher.sample(encoding, scale.exp())

    def _dequantization_cost(self, scale: Tensor) -> Tensor:
        # For a large concentration 1 - A is far smaller than A, and float32 is not precise enough for it.
        concentration = scale.to(widest_float(scale.device)).exp()
        cost = concentration * (1 - von_mises_fisher.mean_resultant_length(concentration, self.dim))
        return cost.to(scale.dtype)

    def _own_scale(self) -> Tensor:
        return self.log_concentration

    def _report(self, scale: Tensor, positions: Positions) -> dict[str, Any]:
        return {"concentration": scale.detach().exp()}

    def _scale(self, log_variance: Tensor | None, positions: Positions, *, optional: bool = False) -> Tensor:
        super()._scale(log_variance, positions)
        check_log_scale(self.log_concentration.detach(), "the quantizer's log_concentration")
        scale: Tensor = self.log_concentration
        if self.concentration_offset:
            scale = torch.logaddexp(scale, scale.new_tensor(math.log(self.concentration_offset)))
        return scale.to(positions.vectors.dtype)
