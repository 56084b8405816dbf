"""Vector quantization (VQ): the deterministic baselines."""

import math
from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor

from sqvae.distributions.checks import check_positive, check_share, check_size
from sqvae.distributions.processes import same_on_all_processes, sum_over_processes
from sqvae.quantizers.contract import CodebookQuantizer, Positions, Quantized, Stage
from sqvae.quantizers.nearest import nearest


class Choice(NamedTuple):
    """The nearest codes of a list of positions, and what they cost."""

    values: Tensor
    """(N, d): their vectors. Without gradient."""
    codes: Tensor
    """(N,): the codes."""
    counts: Tensor
    """(K,): the number of positions that took each code."""
    regularizer: Tensor
    """(): the commitment loss, per sample."""
    loss: Tensor
    """(): that and the loss that trains the codes, per sample."""


def straight_through(values: Tensor, z: Tensor) -> Tensor:  # (N, d), (N, d) -> (N, d)
    """The value of the codes, the gradient of the encodings."""
    return values.detach() + (z - z.detach())


class DeterministicQuantizer(CodebookQuantizer, ABC):
    r"""Each position takes its nearest code, with the straight-through gradient.

    .. math:: z_{q,i} = \arg\min_{b_k} \lVert \hat z_i - b_k \rVert_2

    As a posterior this has all its mass on one code, so the latent's part of the bound is always :math:`d_z \log K`.
    The temperature is not used.
    """

    def __init__(
        self,
        codebook_size: int,
        dim: int,
        *,
        commitment: float = 0.25,
        codebook_scale: float = 1.0,
        channel_first: bool = False,
    ) -> None:
        super().__init__(codebook_size, dim, codebook_scale=codebook_scale, channel_first=channel_first)
        if not commitment >= 0:
            raise ValueError(f"commitment is a weight and must be at least 0, got {commitment}")
        self.commitment = commitment

    def _quantize(self, positions: Positions, scale: Tensor, stage: Stage, sample: bool) -> Quantized:
        z, choice = positions.vectors, self.choose(positions)
        return Quantized(
            z_q=positions.as_map(straight_through(choice.values, z)),
            codes=positions.as_indices(choice.codes),
            loss=choice.loss,
            divergence=positions.per_sample_count() * math.log(self.codebook_size),
            regularizer=choice.regularizer,
            entropy=choice.loss.new_zeros(()),
            counts=choice.counts,
            mean_probabilities=choice.counts / choice.counts.sum().clamp_min(1),
        )

    def choose(self, positions: Positions) -> Choice:
        """The nearest code of each position; in training the codes are then updated."""
        z = positions.vectors
        codes = nearest(z, self.codebook)
        values = self.codebook[codes].to(z.dtype)
        distances = (z - values.detach()).square().sum(-1)
        regularizer = positions.per_sample(self.commitment * distances)
        counts = positions.count(codes, self.codebook_size)
        loss = regularizer + self._codebook_loss(positions, values)
        if self.training:
            self._update(positions, codes, counts)
        return Choice(values.detach(), codes, counts, regularizer, loss)

    def _encode(self, positions: Positions, scale: Tensor) -> Tensor:
        return positions.as_indices(nearest(positions.vectors, self.codebook))

    @abstractmethod
    def _codebook_loss(self, positions: Positions, chosen: Tensor) -> Tensor:  # (N, d) -> ()
        """The loss that trains the codes by gradient."""

    @abstractmethod
    def _update(self, positions: Positions, codes: Tensor, counts: Tensor) -> None:
        """Update the codes after a training batch, other than by gradient."""


class VectorQuantizer(DeterministicQuantizer):
    r"""Plain VQ (van den Oord et al., 2017), with a codebook trained by gradient.

    .. math:: \lVert \mathrm{sg}[\hat Z] - Z_q \rVert_F^2 + \beta \lVert \hat Z - \mathrm{sg}[Z_q] \rVert_F^2

    Arguments:
        codebook_size: the number of codes, :math:`K`.
        dim: the dimension of a code, :math:`d_b`.
        commitment: the weight :math:`\beta` of the commitment loss.
        codebook_scale: the standard deviation of the codes' components before training.
        channel_first: whether latent maps are (batch, dim, ...).
    """

    def _codebook_loss(self, positions: Positions, chosen: Tensor) -> Tensor:
        return positions.per_sample((positions.vectors.detach() - chosen).square().sum(-1))

    def _update(self, positions: Positions, codes: Tensor, counts: Tensor) -> None:
        """Do nothing: the optimizer updates the codes."""


class EMAVectorQuantizer(DeterministicQuantizer):
    r"""VQ whose codes are an exponential moving average of the encodings; only the commitment loss remains.

    .. math:: N_k \leftarrow \gamma N_k + (1 - \gamma) n_k, \quad
              m_k \leftarrow \gamma m_k + (1 - \gamma) \textstyle\sum_{i: k_i = k} \hat z_i, \quad
              b_k = m_k / N_k

    In distributed training, counts and sums are taken over all processes, so that the codebook is the same in each.

    Arguments:
        codebook_size: the number of codes, :math:`K`.
        dim: the dimension of a code, :math:`d_b`.
        commitment: the weight :math:`\beta` of the commitment loss.
        decay: the decay :math:`\gamma` of the moving average.
        reset_every: the number of batches between resets. A reset moves the least used code next to the most used one
            if its usage in those batches was less than `reset_below` of the latter's. None never resets; the paper's
            variant takes 20.
        reset_below: the share of the most used code's usage below which a code is moved.
        reset_variance: the variance of the normal distribution around the most used code from which the new position is
            drawn.
        codebook_scale: the standard deviation of the codes' components before training.
        channel_first: whether latent maps are (batch, dim, ...).
    """

    smoothed_counts: Tensor
    smoothed_sums: Tensor
    recent_counts: Tensor
    batches: Tensor

    def __init__(
        self,
        codebook_size: int,
        dim: int,
        *,
        commitment: float = 0.25,
        decay: float = 0.99,
        reset_every: int | None = None,
        reset_below: float = 0.03,
        reset_variance: float = 0.01,
        codebook_scale: float = 1.0,
        channel_first: bool = False,
    ) -> None:
        super().__init__(
            codebook_size, dim, commitment=commitment, codebook_scale=codebook_scale, channel_first=channel_first
        )
        check_share(decay, "decay")
        check_share(reset_below, "reset_below")
        check_positive(reset_variance, "reset_variance")
        if reset_every is not None:
            check_size(reset_every, "reset_every")
        self.decay = decay
        self.reset_every = reset_every
        self.reset_below = reset_below
        self.reset_variance = reset_variance
        self.codebook.requires_grad_(False)
        # Each code starts with a count of one position, so that the average equals the codebook.
        self.register_buffer("smoothed_counts", torch.ones(codebook_size))
        self.register_buffer("smoothed_sums", self.codebook.detach().clone())
        if reset_every is not None:
            self.register_buffer("recent_counts", torch.zeros(codebook_size))
            self.register_buffer("batches", torch.zeros((), dtype=torch.int64))

    def _codebook_loss(self, positions: Positions, chosen: Tensor) -> Tensor:
        return chosen.new_zeros(())

    @torch.no_grad()
    def _update(self, positions: Positions, codes: Tensor, counts: Tensor) -> None:
        z = positions.vectors.to(self.smoothed_sums.dtype)  # 0 at masked positions
        sums = torch.zeros_like(self.smoothed_sums).index_add_(0, codes, z)
        counts, sums = sum_over_processes(counts), sum_over_processes(sums)
        self.smoothed_counts.lerp_(counts.to(self.smoothed_counts.dtype), 1 - self.decay)
        self.smoothed_sums.lerp_(sums, 1 - self.decay)
        # The count and the sum of an unused code decay alike, so their quotient stays the same. The floor keeps the
        # code in place after the count has underflowed float32.
        floor = torch.finfo(self.smoothed_counts.dtype).tiny
        alive = (self.smoothed_counts > floor).unsqueeze(-1)
        averages = self.smoothed_sums / self.smoothed_counts.clamp_min(floor).unsqueeze(-1)
        self.codebook.copy_(torch.where(alive, averages, self.codebook))
        if self.reset_every is not None:
            self._reset_least_used(counts, self.reset_every)

    def _reset_least_used(self, counts: Tensor, every: int) -> None:
        r"""Move :math:`b_{least}` to a draw from :math:`\mathcal N(b_{most}, s^2 I)`, without a branch that depends
        on data."""
        self.recent_counts += counts.to(self.recent_counts.dtype)
        self.batches += 1
        most, least = (extreme(self.recent_counts, 0, keepdim=True) for extreme in (torch.argmax, torch.argmin))
        rare = self.recent_counts[least] < self.reset_below * self.recent_counts[most]
        move = rare & (self.batches % every == 0)
        noise = same_on_all_processes(torch.randn_like(self.codebook[most]))
        beside = self.codebook[most] + math.sqrt(self.reset_variance) * noise
        replacements = (
            (self.codebook, beside),
            (self.smoothed_sums, beside),
            (self.smoothed_counts, torch.ones_like(rare)),
        )
        for state, value in replacements:
            moved = move.view(-1, *[1] * (state.ndim - 1))
            state.index_copy_(0, least, torch.where(moved, value.to(state.dtype), state[least]))
        self.recent_counts.mul_(self.batches % every != 0)
