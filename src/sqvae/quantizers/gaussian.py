"""Gaussian stochastic quantization, types I to IV."""

import math
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from sqvae.distributions.checks import check_choice, check_log_scale, check_offset, check_positive
from sqvae.distributions.processes import own_normal_like
from sqvae.quantizers.contract import Positions
from sqvae.quantizers.nearest import squared_distance_factors
from sqvae.quantizers.stochastic import StochasticQuantizer

Variance = Literal["shared", "per_sample", "per_position", "per_dimension", "fixed"]
Heads = Literal["product", "sum", "bounded"]

PER_INPUT = ("per_sample", "per_position", "per_dimension")
"""The variances that depend on what the encoder says of its input."""


class GaussianQuantizer(StochasticQuantizer):
    r"""Quantization by distance, with a variance that decreases by itself in training.

    .. math:: p_\varphi(z_i \mid Z_q) = \mathcal N(z_{q,i}, \Sigma_\varphi), \qquad
              \hat P_\varphi(z_{q,i} = b_k \mid Z) = \mathrm{softmax}_k\left(
              -\tfrac12 (b_k - z_i)^\top \Sigma_\varphi^{-1} (b_k - z_i)\right)

    .. math:: \mathcal R_\varphi^{\mathcal N}(Z, Z_q) = \sum_i \tfrac12 (z_i - z_{q,i})^\top
              \Sigma_\varphi^{-1} (z_i - z_{q,i})

    The types differ in the axes over which :math:`\Sigma_\varphi = \exp(h(x) + s)` is shared, where s is a trained
    scalar and h is the ``log_variance`` from the encoder (none for the first and the last), averaged over the axes that
    share a variance:

    ===================  ====  ==========================================================
    variance             type  :math:`\Sigma_\varphi`
    ===================  ====  ==========================================================
    ``"shared"``         I     one number
    ``"per_sample"``     II    one number per sample
    ``"per_position"``   III   one number per position
    ``"per_dimension"``  IV    one number per position and dimension
    ``"fixed"``                one number, not trained
    ===================  ====  ==========================================================

    That is the form in the paper. Its authors' code has two other forms, which the paper does not state; with an offset
    c,

    .. math:: \Sigma_\varphi = c + e^s \quad \text{(type I)}, \qquad
              \Sigma_\varphi = \begin{cases} e^{h(x)} (c + e^s) & \text{heads = "product"} \\
              e^{h(x)} + c + e^s & \text{heads = "sum"} \end{cases} \quad \text{(types II to IV)}:

    it takes c = 1 for type I, and the sum with c = 0 for the others. Self-annealing cannot go below c.

    With a high learning rate h(x) diverges in both. A third form bounds it, and only the trained scalar anneals:
    :math:`\Sigma_\varphi = e^{\tanh h(x)} (c + e^s)`, heads = "bounded".

    Arguments:
        codebook_size: the number of codes, :math:`K`.
        dim: the dimension of a code, :math:`d_b`.
        variance: the axes that share a variance: see above.
        initial_variance: :math:`e^s` at the start; 10 by default (good for images of 28x28; use 20 for larger ones), or
            1 if fixed.
        variance_offset: the offset c, at least 0. A fixed variance takes none: it is ``initial_variance`` itself.
        heads: how the encoder's h(x) and the trained scalar s are combined into one variance, for types II to IV.
        code_dim: the number of components of a code, at most ``dim``. The code vectors are then the codes times a
            trained matrix, so that they span a space of so many dimensions; None: the codes themselves.
        dequantize, hard, codebook_scale: see :class:`~sqvae.quantizers.stochastic.StochasticQuantizer`.
        channel_first: whether latent maps are (batch, dim, ...).
    """

    log_variance: Tensor

    def __init__(
        self,
        codebook_size: int,
        dim: int,
        variance: Variance = "shared",
        *,
        initial_variance: float | None = None,
        variance_offset: float = 0.0,
        heads: Heads = "product",
        dequantize: bool = False,
        hard: bool = False,
        codebook_scale: float = 1.0,
        code_dim: int | None = None,
        channel_first: bool = False,
    ) -> None:
        super().__init__(
            codebook_size,
            dim,
            code_dim=code_dim,
            dequantize=dequantize,
            hard=hard,
            codebook_scale=codebook_scale,
            channel_first=channel_first,
        )
        check_choice(variance, get_args(Variance), "variance")
        if initial_variance is None:
            initial_variance = 1.0 if variance == "fixed" else 10.0
        check_positive(initial_variance, "initial_variance")
        check_offset(variance_offset, "variance_offset")
        check_choice(heads, get_args(Heads), "heads")
        self.needs_log_variance = variance in PER_INPUT
        if variance_offset and variance == "fixed":
            raise ValueError(
                f"variance='fixed' is initial_variance itself and takes no variance_offset, got {variance_offset}; "
                f"pass initial_variance={initial_variance + variance_offset:g}"
            )
        if heads != "product" and not self.needs_log_variance:
            raise ValueError(
                f"variance={variance!r} does not depend on the encoder, so heads={heads!r} has no effect; leave heads "
                "out"
            )
        self.variance: Variance = variance
        self.variance_offset = variance_offset
        self.heads: Heads = heads
        log_variance = torch.tensor(math.log(initial_variance))
        if variance == "fixed":
            self.register_buffer("log_variance", log_variance)
        else:
            self.log_variance = nn.Parameter(log_variance)

    def _factors(self, z: Tensor, vectors: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
        return squared_distance_factors(z, vectors, (-scale).exp())

    def _regularizer(self, z: Tensor, z_q: Tensor, scale: Tensor) -> Tensor:
        difference = (z - z_q) * (-scale / 2).exp()
        squared_distance: Tensor = torch.linalg.vecdot(difference, difference)
        return squared_distance / 2

    def _dequantize(self, encoding: Tensor, scale: Tensor) -> Tensor:
        return encoding + (scale / 2).exp() * own_normal_like(encoding)

    def _dequantization_cost(self, scale: Tensor) -> Tensor:
        return scale.new_tensor(self.dim / 2)

    def _own_scale(self) -> Tensor | None:
        return None if self.variance == "fixed" else self.log_variance

    def _report(self, scale: Tensor, positions: Positions) -> dict[str, Any]:
        variance = scale.detach().exp()
        if self.variance == "per_sample":
            return {"variance": variance.view(positions.batch, -1)[:, 0]}
        if self.variance == "per_position":
            return {"variance": variance.view(positions.shape)}
        if self.variance == "per_dimension":
            return {"variance": positions.as_map(variance)}
        return {"variance": variance.squeeze()}

    def _scale(
        self, log_variance: Tensor | None, positions: Positions, *, optional: bool = False
    ) -> Tensor:  # -> (1, 1), (N, 1) or (N, d)
        r"""The log-variance of each position: :math:`h(x) + \log(c + e^s)`, or the logarithm of the sum.

        With `optional`, ``log_variance`` may be missing for the likeliest code, which does not depend on a variance
        that all dimensions share.
        """
        own = self.log_variance.to(positions.vectors.dtype).view(1, 1)
        if self.variance_offset:
            own = torch.logaddexp(own, torch.full_like(own, math.log(self.variance_offset)))
        check_log_scale(own.detach(), "the quantizer's own log_variance")
        if not self.needs_log_variance:
            if log_variance is not None:
                raise ValueError(f"variance={self.variance!r} takes no log_variance from the encoder; leave it out")
            return own
        if log_variance is None:
            if optional and self.variance != "per_dimension":
                return own
            raise ValueError(
                f"variance={self.variance!r} needs log_variance= from the encoder, of shape "
                f"{self._shapes(positions)}; got none"
            )
        log_variance = log_variance.to(own.dtype)
        if self.heads == "bounded":
            log_variance = log_variance.tanh()
        head = self._spread(log_variance, positions)
        scale = torch.logaddexp(own, head) if self.heads == "sum" else own + head
        check_log_scale(scale.detach(), "log_variance, added to the quantizer's own,")
        return scale

    def _spread(self, log_variance: Tensor, positions: Positions) -> Tensor:  # -> (N, 1) or (N, d)
        """The head's output, averaged over the axes that share a variance and repeated over positions."""
        full, short = self._accepted(positions)
        if log_variance.shape == short:
            log_variance = log_variance.reshape(self._with_shared_axes(positions))
        fits = log_variance.ndim == len(full) and all(
            size in (whole, part)
            for size, whole, part in zip(log_variance.shape, full, self._with_shared_axes(positions), strict=True)
        )
        if not fits:
            raise ValueError(
                f"log_variance for variance={self.variance!r} must have the shape {self._shapes(positions)}, got "
                f"{tuple(log_variance.shape)}"
            )
        rows = positions.rows(log_variance.expand(full), "log_variance")
        if self.variance == "per_dimension":
            return rows
        means = rows.mean(-1, keepdim=True)
        return means if self.variance == "per_position" else self._per_sample_mean(means, positions)

    def _per_sample_mean(self, values: Tensor, positions: Positions) -> Tensor:  # (N, 1) -> (N, 1)
        weights = positions.weights.view(positions.batch, -1)
        means = (values.view_as(weights) * weights).sum(-1, keepdim=True) / weights.sum(-1, keepdim=True).clamp_min(1)
        return means.expand_as(weights).reshape(-1, 1)

    def _accepted(self, positions: Positions) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
        """The valid shapes of a log-variance: that of the latent map, and that without the shared axes."""
        batch, *places = positions.shape
        full = (batch, self.dim, *places) if positions.channel_first else (batch, *places, self.dim)
        reduced = {"per_sample": (batch,), "per_position": (batch, *places)}.get(self.variance)
        return full, reduced

    def _with_shared_axes(self, positions: Positions) -> tuple[int, ...]:
        """The shape of the latent map, with 1 for each axis that shares a variance."""
        full, _ = self._accepted(positions)
        if self.variance == "per_dimension":
            return full
        channel = 1 if positions.channel_first else len(full) - 1
        kept = {0} if self.variance == "per_sample" else set(range(len(full))) - {channel}
        return tuple(size if axis in kept else 1 for axis, size in enumerate(full))

    def _shapes(self, positions: Positions) -> str:
        return " or ".join(str(shape) for shape in self._accepted(positions) if shape is not None)

    def extra_repr(self) -> str:
        offset = f", variance_offset={self.variance_offset:g}" if self.variance_offset else ""
        heads = f", heads={self.heads!r}" if self.heads != "product" else ""
        return f"{super().extra_repr()}, variance={self.variance!r}{offset}{heads}"
