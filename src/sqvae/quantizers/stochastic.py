"""Stochastic quantization: what the Gaussian and the von Mises-Fisher quantizer share."""

import math
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import torch
from torch import Tensor

from sqvae.distributions import assign
from sqvae.distributions.precision import widest_float
from sqvae.distributions.processes import mean_over_processes, sum_over_processes
from sqvae.quantizers.contract import CodebookQuantizer, Positions, Quantized, Stage
from sqvae.quantizers.nearest import likeliest

TINY = 1e-6
"""The lower limit of a code's usage, relative to the average, so that its logarithm is finite."""


COMMITMENT = 1.0
"""The weight of the commitment loss once assignments are certain. VQ usually has a quarter of it, with which encodings
are less near to their codes, and errors are larger in runs of a few thousand steps and more."""

DECAY = 0.99
"""The decay of moving averages once assignments are certain, as in VQ."""

RAREST = 1e-3
"""The relative usage below which the price of a code stays the same."""

MOST = 10.0
"""The largest ratio that one batch can report of the spread to what the scale says."""


class Choice(NamedTuple):
    """The likeliest codes of a list of positions, and the terms of the bound. Without gradient."""

    values: Tensor
    """(N, d): the codes' vectors."""
    codes: Tensor
    """(N,): the codes."""
    entropy: Tensor
    """(N,): the entropy of the assignment probabilities."""
    usage: Tensor
    """(K,): the sum of the assignment probabilities over the positions that count."""
    pull: Tensor
    r"""(N,): each position's part of :math:`\mathcal R_\varphi(Z, Z_q)`."""


class Draw(NamedTuple):
    """Codes that were chosen for a list of positions, and what they cost."""

    values: Tensor
    """(N, d): the quantized vectors, which in training are relaxed samples."""
    codes: Tensor
    """(N,): the codes."""
    entropy: Tensor
    """(N,): the entropy of the assignment probabilities, with the gradient that the schedule's stage asks for."""
    usage: Tensor
    """(K,): the sum of the assignment probabilities over the positions that count. Without gradient."""
    unevenness: Tensor | None
    """(): 0, with the gradient of the unevenness of codebook usage; None if the stage doesn't weigh it."""


class StochasticQuantizer(CodebookQuantizer, ABC):
    r"""A quantizer that draws codes from the posterior of a dequantization process, by Bayes' theorem.

    .. math:: \hat P_\varphi(z_{q,i} = b_k \mid Z) \propto p_\varphi(z_i \mid b_k)

    Its part of the objective, per sample, is

    .. math:: \mathcal R_\varphi(Z, Z_q) - \mathbb E\, \mathcal R_\varphi(Z, \hat Z_q) - H(\hat P_\varphi(Z_q \mid Z)),

    and the latent's part of the bound is that plus :math:`d_z \log K`, for the uniform prior. The expectation in the
    middle is over the dequantization noise around the encoding: :math:`\log q_\omega(Z \mid x)` without the constants
    that cancel. It is 0 without dequantization, where :math:`Z = \hat Z_q`.

    Arguments:
        codebook_size: the number of codes, :math:`K`.
        dim: the dimension of a code, :math:`d_b`.
        dequantize: whether to draw :math:`Z \sim p_\varphi(Z \mid \hat Z_q)` before quantizing, as the bound demands.
            Otherwise the encoding itself is quantized, as in the paper's training.
        codebook_scale, code_dim: see :class:`~sqvae.quantizers.contract.CodebookQuantizer`.
        hard: whether to pass the drawn code itself to the decoder in training, with the gradient of the relaxed sample.
    """

    relaxes = True

    usage: Tensor | None
    """(K,): the smoothed number of positions of a batch that take each code; None before assignments are certain."""

    scale_sign = 1
    """1 if the scale is the logarithm of a variance, -1 if it is the logarithm of a concentration."""

    def __init__(
        self,
        codebook_size: int,
        dim: int,
        *,
        dequantize: bool = False,
        hard: bool = False,
        codebook_scale: float = 1.0,
        code_dim: int | None = None,
        channel_first: bool = False,
    ) -> None:
        super().__init__(
            codebook_size, dim, codebook_scale=codebook_scale, code_dim=code_dim, channel_first=channel_first
        )
        self.dequantize = dequantize
        self.hard = hard
        self.register_buffer("usage", None)

    def logits(
        self, z: Tensor, log_variance: Tensor | None = None, *, channel_first: bool | None = None
    ) -> Tensor:  # (batch, ..., d) -> (batch, ..., K)
        r"""The unnormalised log-probabilities of all codes, relative to the likeliest code, whose value is 0.

        They are computed in float64 and then rounded to z's type, so that they are exact for any variance.
        """
        positions = self._positions(z, None, channel_first)
        with torch.autocast(z.device.type, enabled=False):
            queries, keys = self._exact_factors(positions.vectors, self._scale(log_variance, positions))
            products = queries @ keys.T
            relative = products - products.detach().amax(-1, keepdim=True)
        return relative.to(positions.vectors.dtype).view(*positions.shape, self.codebook_size)

    def _quantize(self, positions: Positions, scale: Tensor, stage: Stage, sample: bool) -> Quantized:
        if stage.certain and self.training and self.settles:
            return self._quantize_for_certain(positions, scale, stage)
        z = self.dequantized(positions.vectors, scale, sample)
        draw = self.draw(z, scale, stage, positions, sample)
        pull = self.pull(z, draw.values, scale, stage, sample)
        regularizer = positions.per_sample(pull.expand(positions.number))
        entropy = positions.per_sample(draw.entropy)
        loss = regularizer - entropy
        if draw.unevenness is not None:
            loss = loss + draw.unevenness
        return Quantized(
            z_q=positions.as_map(passed_on(draw.values, z, stage) if self.training else draw.values),
            codes=positions.as_indices(draw.codes),
            loss=loss,
            divergence=regularizer - entropy + positions.per_sample_count() * math.log(self.codebook_size),
            regularizer=regularizer,
            entropy=entropy,
            counts=positions.count(draw.codes, self.codebook_size),
            mean_probabilities=draw.usage / positions.weights.sum().clamp_min(1),
            **self._report(scale, positions),
        )

    def dequantized(self, vectors: Tensor, scale: Tensor, sample: bool) -> Tensor:  # (N, d) -> (N, d)
        r"""What is quantized: the encodings :math:`\hat Z_q`, or a draw Z around them."""
        encoding = self.project(vectors)
        return self._dequantize(encoding, scale) if sample and self.dequantize else encoding

    def draw(
        self, z: Tensor, scale: Tensor, stage: Stage, positions: Positions, sample: bool, *, sharing: int = 1
    ) -> Draw:  # (N, d)
        """Choose a code for each position, at random or the likeliest.

        Arguments:
            z: what is quantized: see :meth:`dequantized`.
            scale: the logarithm of the variance or concentration.
            stage: the schedule's values.
            positions: the encodings, of which the likeliest codes are those to take without drawing.
            sample: whether to draw at random.
            sharing: see :func:`sqvae.distributions.assign`.
        """
        vectors = self.vectors().to(z.dtype)
        assignment = assign(
            *self._factors(z, vectors, scale),
            vectors,
            temperature=torch.ones((), dtype=z.dtype, device="cpu") * stage.temperature,
            weights=positions.weights,
            noisy=sample,
            hard=self.hard or not self.training,
            sharing=sharing,
        )
        values, codes = assignment.values, assignment.codes
        if not sample:
            codes = self._likeliest(positions.vectors, scale)
            values = vectors[codes]
        unevenness = None
        if sample and _is_set(stage.evenness):
            unevenness = stage.evenness * self._unevenness(assignment.usage, assignment.drawn, positions)
        entropy = assignment.entropy - self._held_back(assignment.spread, scale, stage)
        return Draw(values, codes, entropy, assignment.usage, unevenness)

    def pull(
        self, z: Tensor, z_q: Tensor, scale: Tensor, stage: Stage, sample: bool
    ) -> Tensor:  # (N, d), (N, d) -> (N,)
        r"""Each position's part of :math:`\mathcal R_\varphi(Z, Z_q) - \mathbb E\, \mathcal R_\varphi(Z, \hat Z_q)`."""
        pull = self._regularizer(z, z_q, _with_share_of_gradient(scale, stage.latent_weight))
        return pull - self._dequantization_cost(scale) if sample and self.dequantize else pull

    def _quantize_for_certain(self, positions: Positions, scale: Tensor, stage: Stage) -> Quantized:
        z = self.project(positions.vectors)
        choice = self.follow(positions, scale, stage)
        regularizer, entropy = positions.per_sample(choice.pull), positions.per_sample(choice.entropy)
        return Quantized(
            z_q=positions.as_map(choice.values + (z - z.detach())),
            codes=positions.as_indices(choice.codes),
            loss=positions.per_sample(COMMITMENT * (z - choice.values).square().sum(-1)) + self.idle(scale),
            divergence=regularizer - entropy + positions.per_sample_count() * math.log(self.codebook_size),
            regularizer=regularizer,
            entropy=entropy,
            counts=positions.count(choice.codes, self.codebook_size),
            mean_probabilities=choice.usage / positions.weights.sum().clamp_min(1),
            **self._report(scale, positions),
        )

    @torch.no_grad()
    def follow(self, positions: Positions, scale: Tensor, stage: Stage) -> Choice:  # (N, d)
        r"""Take the likeliest codes at a price, and let codes and scale follow the encodings.

        Codes are moving averages of the encodings that took them, as in VQ, with :math:`n_k` the number of those:

        .. math:: N_k \leftarrow \gamma N_k + (1 - \gamma) n_k, \qquad
                  b_k \leftarrow b_k + \frac{1 - \gamma}{N_k} \textstyle\sum_{i: k_i = k} (z_i - b_k).

        Codes that are used more often than the average have a price, the logarithm of their relative usage, so that
        no code is lost although nothing is random any more. The scale goes to its maximum likelihood: that at which
        the mean of :math:`\mathcal R_\varphi(Z, Z_q)` is the expectation under the model.

        Arguments:
            positions: the encodings.
            scale: the logarithm of the variance or concentration.
            stage: the schedule's values.
        """
        z, vectors, weights = self.project(positions.vectors), self.vectors(), positions.weights
        queries, keys = self._factors(z, vectors.to(z.dtype), scale)
        price = 0.0 if stage.price is None else stage.price
        paid = price * self._dequantization_cost(scale).mean() * self._log_usage(weights)
        assignment = assign(
            torch.cat((queries, queries.new_ones(len(queries), 1)), -1),
            torch.cat((keys, -paid.to(keys.dtype).unsqueeze(-1)), -1),
            vectors.to(z.dtype),
            temperature=z.new_ones(()),
            weights=weights,
            noisy=False,
            hard=True,
        )
        values, codes = assignment.values, assignment.codes
        pull = self._regularizer(z, values, scale).expand(positions.number)
        choice = Choice(values, codes, assignment.entropy, assignment.usage, pull)
        self._follow_encodings(positions, z, codes)
        self._follow_spread(pull, weights, scale)
        return choice

    def _follow_encodings(self, positions: Positions, z: Tensor, codes: Tensor) -> None:  # (N, d), (N,)
        codebook = self.codebook
        codebook.copy_(self.project(codebook))
        counts = positions.count(codes, self.codebook_size)
        sums = codebook.new_zeros(self.codebook_size, self.dim)
        sums.index_add_(0, codes, (z * positions.weights.unsqueeze(-1)).to(sums.dtype))
        counts, sums = sum_over_processes(counts).to(sums.dtype), sum_over_processes(sums)
        assert self.usage is not None
        self.usage.lerp_(counts, 1 - DECAY)
        share = (1 - DECAY) / self.usage.clamp_min(torch.finfo(sums.dtype).tiny)
        self._move(share.unsqueeze(-1) * (sums - counts.unsqueeze(-1) * self.vectors()))

    def _log_usage(self, weights: Tensor) -> Tensor:  # (N,) -> (K,)
        """The logarithm of each code's smoothed usage relative to the average. At first it is 0 for all codes."""
        if self.usage is None:
            total = sum_over_processes(weights.sum()).to(self.codebook.dtype)
            self.usage = (total / self.codebook_size).expand(self.codebook_size).clone()
        return (self.usage / self.usage.mean()).clamp_min(RAREST).log()

    def _move(self, by: Tensor) -> None:  # (K, d)
        """Move code vectors. If codes have fewer components, the vectors move as far in that direction as they can."""
        self.codebook.add_(by if self.basis is None else by @ torch.linalg.pinv(self.basis))

    def _follow_spread(self, pull: Tensor, weights: Tensor, scale: Tensor) -> None:  # (N,), (N,)
        own = self._own_scale()
        if own is None:
            return
        number = mean_over_processes(weights.sum()).clamp_min(1)
        mean = mean_over_processes((pull * weights).sum()) / number
        expected = self._dequantization_cost(scale).mean()
        ratio = (mean / expected).clamp(1 / MOST, MOST)
        own.add_(ratio.log().to(own.dtype), alpha=self.scale_sign * (1 - DECAY))

    @property
    def settles(self) -> bool:
        """Whether a schedule can make assignments certain. A fixed scale could not follow the encodings."""
        return self._own_scale() is not None

    def idle(self, scale: Tensor) -> Tensor:  # -> ()
        """0, with a gradient of 0 for every parameter and for what the encoder says of the scale, as distributed
        training demands of what doesn't learn."""
        return torch.stack([0 * part.sum() for part in (scale, *self.parameters())]).sum()

    def _unevenness(self, usage: Tensor, drawn: Tensor, positions: Positions) -> Tensor:  # (K,), (K,) -> ()
        r"""0, with the gradient of the unevenness of codebook usage, summed over a sample's positions.

        With :math:`\bar P` the mean of the assignment probabilities over the batch,

        .. math:: \mathrm{KL}(\bar P \,\|\, 1/K) = \sum_k \bar P_k \log K \bar P_k, \qquad
                  \frac{\partial}{\partial \bar P_k} = \log K \bar P_k + 1,

        where the 1 has no effect, since probabilities sum to 1. So each code has a price, the logarithm of its relative
        usage, which is added to the loss for each draw.
        """
        total = sum_over_processes(usage.detach())
        price = (total / total.mean().clamp_min(TINY)).clamp_min(TINY).log()
        paid = (drawn * price).sum() / positions.batch
        return paid - paid.detach()

    def _held_back(self, spread: Tensor, scale: Tensor, stage: Stage) -> Tensor:  # (N,), () ... (N, d) -> (N,)
        r"""0, with the gradient that cancels a part of the entropy's gradient with respect to the scale.

        If s is the logarithm of the variance, logits are proportional to :math:`e^{-s}`, so that :math:`\partial H /
        \partial s` is their variance under the assignment probabilities. If s is the logarithm of the concentration,
        the sign is opposite.
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
        return self._factors(self.project(z.to(wide)), self.vectors(wide), scale.to(wide))

    def vectors(self, dtype: torch.dtype | None = None) -> Tensor:
        return self.project(super().vectors(dtype))

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *rest: Any) -> None:
        usage = state_dict.get(f"{prefix}usage")
        if usage is not None and self.usage is None:
            self.usage = torch.empty_like(usage, device=self.codebook.device)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    @abstractmethod
    def _own_scale(self) -> Tensor | None:
        """The trained part of the scale; None if it is fixed."""

    @abstractmethod
    def _factors(self, z: Tensor, vectors: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
        """Queries (N, F) and keys (K, F) whose products are the logits, up to a constant per position."""

    @abstractmethod
    def _regularizer(self, z: Tensor, z_q: Tensor, scale: Tensor) -> Tensor:  # (N, d), (N, d) -> (N,)
        r"""Each position's part of :math:`\mathcal R_\varphi(Z, Z_q)`."""

    @abstractmethod
    def _dequantize(self, encoding: Tensor, scale: Tensor) -> Tensor:  # (N, d) -> (N, d)
        r"""A draw from :math:`p_\varphi(Z \mid \hat Z_q)`."""

    @abstractmethod
    def _dequantization_cost(self, scale: Tensor) -> Tensor:  # -> () or (N,)
        r"""Each position's part of :math:`\mathbb E\, \mathcal R_\varphi(Z, \hat Z_q)`, the expectation over such
        draws."""

    @abstractmethod
    def _report(self, scale: Tensor, positions: Positions) -> dict[str, Any]:
        """The variance or the concentration, under its name in :class:`Quantized`, without gradient."""


def passed_on(z_q: Tensor, z: Tensor, stage: Stage) -> Tensor:  # (N, d), (N, d) -> (N, d)
    """The quantized vectors, with the share of the decoder's gradient that goes straight through to the encodings."""
    return z_q + stage.straight_through * (z - z.detach())


def _is_set(value: float | Tensor) -> bool:
    """Whether a weight has an effect. A tensor always counts as set, because a compiled graph cannot branch on its
    value."""
    return isinstance(value, Tensor) or value != 0


def _with_share_of_gradient(values: Tensor, share: float | Tensor) -> Tensor:
    """The same values, with their gradient multiplied by a share."""
    return values if isinstance(share, float) and share == 1 else values.detach() + share * (values - values.detach())
