"""Stochastic quantization: what its instances share."""

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor

from sqvae.distributions import assign
from sqvae.distributions.precision import widest_float
from sqvae.distributions.processes import sum_over_processes
from sqvae.quantizers.contract import CodebookQuantizer, Positions, Quantized, Stage
from sqvae.quantizers.nearest import likeliest

TINY = 1e-6
"""Of the average use: what no code is taken to be used less than, so that its price is finite."""


class StochasticQuantizer(CodebookQuantizer, ABC):
    r"""Codes drawn from a posterior that follows from a dequantization process by Bayes' theorem.

    .. math:: \hat P_\varphi(z_{q,i} = b_k \mid Z) \propto p_\varphi(z_i \mid b_k)

    Its part of the objective, per sample, is

    .. math:: \mathcal R_\varphi(Z, Z_q) - \mathbb E\, \mathcal R_\varphi(Z, \hat Z_q) - H(\hat P_\varphi(Z_q \mid Z)),

    and what the bound pays for the latent is that plus :math:`d_z \log K`, for the uniform prior. The expectation in
    the middle is that of the dequantization noise around the encoding, :math:`\log q_\omega(Z \mid x)` without the
    constants that cancel: 0 where dequantization is off and :math:`Z = \hat Z_q`.

    Arguments:
        codebook_size: the number of codes, :math:`K`.
        dim: the dimension of a code, :math:`d_b`.
        dequantize: draw :math:`Z \sim p_\varphi(Z \mid \hat Z_q)` before quantizing, as the bound wants it, rather than
            quantize the encoding itself, as the paper trains.
        codebook_scale: see :class:`~sqvae.quantizers.contract.CodebookQuantizer`.
        hard: in training, pass the drawn code itself to the decoder, and the relaxed sample's gradient back.
    """

    relaxes = True

    scale_sign = 1
    """1 where the scale is the logarithm of a variance, -1 where it is that of its reciprocal."""

    def __init__(
        self,
        codebook_size: int,
        dim: int,
        *,
        dequantize: bool = False,
        hard: bool = False,
        codebook_scale: float = 1.0,
        channel_first: bool = False,
    ) -> None:
        super().__init__(codebook_size, dim, codebook_scale=codebook_scale, channel_first=channel_first)
        self.dequantize = dequantize
        self.hard = hard

    def logits(
        self, z: Tensor, log_variance: Tensor | None = None, *, channel_first: bool | None = None
    ) -> Tensor:  # (batch, ..., d) -> (batch, ..., K)
        r"""The unnormalised log-probabilities of all codes, relative to the likeliest: 0 is the largest.

        Computed in float64 and then rounded to z's type, so that they are exact however small the variance.
        """
        positions = self._positions(z, None, channel_first)
        with torch.autocast(z.device.type, enabled=False):
            queries, keys = self._exact_factors(positions.vectors, self._scale(log_variance, positions))
            products = queries @ keys.T
            relative = products - products.detach().amax(-1, keepdim=True)
        return relative.to(positions.vectors.dtype).view(*positions.shape, self.codebook_size)

    def _quantize(self, positions: Positions, scale: Tensor, stage: Stage, sample: bool) -> Quantized:
        encoding = self.project(positions.vectors)
        z = self._dequantize(encoding, scale) if sample and self.dequantize else encoding
        vectors = self.vectors().to(z.dtype)
        weights = positions.weights
        assignment = assign(
            *self._factors(z, vectors, scale),
            vectors,
            temperature=torch.ones((), dtype=z.dtype, device="cpu") * stage.temperature,
            weights=weights,
            noisy=sample,
            hard=self.hard or not self.training,
        )
        z_q, codes = assignment.values, assignment.codes
        if not sample:
            codes = self._likeliest(positions.vectors, scale)
            z_q = vectors[codes]
        pull = self._regularizer(z, z_q, _with_share_of_gradient(scale, stage.latent_weight))
        if sample and self.dequantize:
            pull = pull - self._dequantization_cost(scale)
        regularizer = positions.per_sample(pull.expand(positions.number))
        entropy = positions.per_sample(assignment.entropy - self._held_back(assignment.spread, scale, stage))
        loss = regularizer - entropy
        if sample and _is_set(stage.evenness):
            loss = loss + stage.evenness * self._unevenness(assignment.usage, assignment.drawn, positions)
        passed_on = z_q if not self.training else z_q + stage.straight_through * (z - z.detach())
        return Quantized(
            z_q=positions.as_map(passed_on),
            codes=positions.as_indices(codes),
            loss=loss,
            divergence=regularizer - entropy + positions.per_sample_count() * math.log(self.codebook_size),
            regularizer=regularizer,
            entropy=entropy,
            counts=positions.count(codes, self.codebook_size),
            mean_probabilities=assignment.usage / weights.sum().clamp_min(1),
            **self._report(scale, positions),
        )

    def _unevenness(self, usage: Tensor, drawn: Tensor, positions: Positions) -> Tensor:  # (K,), (K,) -> ()
        r"""0, with the gradient of how uneven the use of codes is, summed over a sample's positions.

        With :math:`\bar P` the mean of the assignment probabilities over the batch,

        .. math:: \mathrm{KL}(\bar P \,\|\, 1/K) = \sum_k \bar P_k \log K \bar P_k, \qquad
                  \frac{\partial}{\partial \bar P_k} = \log K \bar P_k + 1,

        where the 1 has no effect, since probabilities sum to 1. So each code has a price, the logarithm of its use, and
        the draws pay it.
        """
        total = sum_over_processes(usage.detach())
        price = (total / total.mean().clamp_min(TINY)).clamp_min(TINY).log()
        paid = (drawn * price).sum() / positions.batch
        return paid - paid.detach()

    def _held_back(self, spread: Tensor, scale: Tensor, stage: Stage) -> Tensor:  # (N,), () ... (N, d) -> (N,)
        r"""0, with the part of the entropy's gradient by the scale that is not to count.

        Logits fall with the logarithm of the variance as :math:`e^{-s}`, so that :math:`\partial H / \partial s` is
        their variance under the assignment probabilities; with that of the concentration it is minus that.
        """
        if isinstance(stage.latent_weight, float) and stage.latent_weight == 1:
            return torch.zeros_like(spread)
        common = scale.mean(-1) if scale.ndim else scale
        return self.scale_sign * (1 - stage.latent_weight) * spread * (common - common.detach())

    def _encode(self, positions: Positions, scale: Tensor) -> Tensor:
        return positions.as_indices(self._likeliest(positions.vectors, scale))

    @torch.no_grad()
    def _likeliest(self, z: Tensor, scale: Tensor) -> Tensor:  # (N, d) -> (N,)
        def exact(some: Tensor | slice) -> tuple[Tensor, Tensor]:
            shared = scale.ndim == 0 or scale.shape[0] == 1
            return self._exact_factors(z[some], scale if shared else scale[some])

        return likeliest(*self._factors(self.project(z), self.vectors().to(z.dtype), scale), exact)

    def _exact_factors(self, z: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
        wide = widest_float(z.device)
        return self._factors(self.project(z.to(wide)), self.project(self.codebook.to(wide)), scale.to(wide))

    def vectors(self) -> Tensor:
        return self.project(self.codebook)

    @abstractmethod
    def _factors(self, z: Tensor, vectors: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
        """Queries (N, F) and keys (K, F) whose products are the logits, up to a constant per position."""

    @abstractmethod
    def _regularizer(self, z: Tensor, z_q: Tensor, scale: Tensor) -> Tensor:  # (N, d), (N, d) -> (N,)
        r"""Each position's part of :math:`\mathcal R_\varphi(Z, Z_q)`."""

    @abstractmethod
    def _dequantize(self, encoding: Tensor, scale: Tensor) -> Tensor:  # (N, d) -> (N, d)
        r"""A draw of :math:`p_\varphi(Z \mid \hat Z_q)`."""

    @abstractmethod
    def _dequantization_cost(self, scale: Tensor) -> Tensor:  # -> () or (N,)
        r"""Each position's part of :math:`\mathbb E\, \mathcal R_\varphi(Z, \hat Z_q)` over such draws."""

    @abstractmethod
    def _report(self, scale: Tensor, positions: Positions) -> dict[str, Tensor]:
        """The spread, under its name in :class:`Quantized`, without gradient."""


def _is_set(value: float | Tensor) -> bool:
    """Whether a number has an effect; of a tensor that is not asked, since a graph could not depend on it."""
    return isinstance(value, Tensor) or value != 0


def _with_share_of_gradient(values: Tensor, share: float | Tensor) -> Tensor:
    """The same values, with so much of their gradient."""
    return values if isinstance(share, float) and share == 1 else values.detach() + share * (values - values.detach())
