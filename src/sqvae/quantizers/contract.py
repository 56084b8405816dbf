"""The contract that every quantizer keeps, learned or not, discrete or not."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from numbers import Real
from typing import NamedTuple

import torch
from torch import Tensor, nn

from sqvae.distributions import perplexity
from sqvae.distributions.checks import check_finite, check_indices, check_positive, check_size, check_tensor


class Stage(NamedTuple):
    """How far a run has come, as a quantizer needs to know it: in place of the temperature alone."""

    temperature: float | Tensor = 1.0
    """Of the relaxation, > 0."""
    latent_weight: float | Tensor = 1.0
    """What the quantizer's terms count for its own spread, a variance or a concentration. At 1 that is trained by the
    bound, like all else; towards 0 it goes as far as the error alone asks for."""
    straight_through: float | Tensor = 0.0
    """How much of the decoder's gradient is given to the encodings as it is, besides what comes through the relaxed
    draw. That vanishes as choices become certain, and the encoder would learn nothing more from the error."""
    evenness: float | Tensor = 0.0
    """How strongly the codes' use is pulled towards even, at least 0. At 1 a code that is used e times as often as the
    average costs a nat more than one that is used so."""


@dataclass(frozen=True)
class Quantized:
    """What a quantizer returns. It unpacks as ``z_q, codes, loss``; the rest is there by name.

    All scalars are per sample: summed over the positions of a sample, averaged over the batch, in nats where they are
    terms of the bound.
    """

    z_q: Tensor = field(repr=False)
    """Like z: what the decoder receives."""
    codes: Tensor = field(repr=False)
    """(batch, ...): the index of each position's code: in training the one drawn, in ``eval()`` the likeliest. For a
    continuous latent, the mean itself."""
    loss: Tensor
    """(): the quantizer's part of the training objective."""
    divergence: Tensor
    """(): what the bound on the log-likelihood pays for the latent, constants included."""
    regularizer: Tensor
    """(): the part of the loss that draws encodings and codes together."""
    entropy: Tensor
    """(): of the assignment probabilities; 0 where assignment is deterministic."""
    counts: Tensor = field(repr=False)
    """(K,): how many of the positions that count took each code."""
    mean_probabilities: Tensor = field(repr=False)
    """(K,): the assignment probabilities averaged over the positions that count."""
    variance: Tensor | None = field(default=None, repr=False)
    """The variance of the (de)quantization, with the axes that it depends on; None where there is none."""
    concentration: Tensor | None = None
    """(): the concentration of the von Mises-Fisher (de)quantization, likewise."""

    def __iter__(self) -> Iterator[Tensor]:
        return iter((self.z_q, self.codes, self.loss))

    @property
    def perplexity(self) -> Tensor:
        """(): of the codes taken in this batch, between 1 and K.

        In training codes are drawn, and a quantizer that draws blindly takes them all: to see how many carry
        information, look at it in ``eval()``, over more than one batch, or at the entropy.
        """
        return perplexity(self.counts)

    @property
    def soft_perplexity(self) -> Tensor:
        """(): of the mean assignment probabilities in this batch, between 1 and K."""
        return perplexity(self.mean_probabilities)


@dataclass(frozen=True)
class Positions:
    """A latent map as a list of vectors, and the way back."""

    vectors: Tensor
    """(N, d): one row a position; 0 where the mask leaves a position out."""
    mask: Tensor | None
    """(N,): True where a position counts."""
    shape: torch.Size
    """(batch, ...), without the vectors' axis."""
    channel_first: bool
    dtype: torch.dtype
    """The encodings' own type, which half-precision vectors leave for float32 and return to."""

    @property
    def number(self) -> int:
        """N; by the shape rather than ``len``, which would tie an exported program to one size."""
        return self.vectors.shape[0]

    @property
    def batch(self) -> int:
        return self.shape[0]

    @property
    def weights(self) -> Tensor:  # (N,)
        """1 where a position counts, 0 where it does not."""
        if self.mask is None:
            return self.vectors.new_ones(self.number)
        return self.mask.to(self.vectors.dtype)

    def per_sample(self, values: Tensor) -> Tensor:  # (N,) -> ()
        """Sum over the positions that count, average over the batch."""
        return (values if self.mask is None else values * self.mask).sum() / self.batch

    def per_sample_count(self) -> Tensor:  # -> ()
        """How many positions count, averaged over the batch."""
        return self.weights.sum() / self.batch

    def rows(self, latent: Tensor, name: str) -> Tensor:  # (batch, ..., d) or (batch, d, ...) -> (N, d)
        """Another map of the same layout as a list of vectors, with 0 where the mask leaves a position out."""
        last = latent.movedim(1, -1) if self.channel_first else latent
        rows = last.reshape(self.number, -1).to(self.vectors.dtype)
        if self.mask is not None:
            rows = torch.where(self.mask.unsqueeze(-1), rows, 0)
        check_finite(rows, name)
        return rows

    def as_map(self, vectors: Tensor) -> Tensor:  # (N, d) -> (batch, ..., d) or (batch, d, ...)
        latent = vectors.to(self.dtype).view(*self.shape, vectors.shape[-1])
        return latent.movedim(-1, 1) if self.channel_first else latent

    def as_indices(self, indices: Tensor) -> Tensor:  # (N,) -> (batch, ...)
        return indices.view(self.shape)

    def count(self, codes: Tensor, codebook_size: int) -> Tensor:  # (N,) -> (K,)
        """How many of the positions that count took each code."""
        return self.weights.new_zeros(codebook_size).index_add_(0, codes, self.weights)


class Quantizer(nn.Module, ABC):
    """Turns encodings into codes and codes into vectors.

    Arguments:
        dim: the dimension of a latent vector.
        channel_first: latent maps are (batch, dim, ...), as convolutions give them, rather than (batch, ..., dim).
            Every method takes the same argument for a single call.
    """

    needs_log_variance = False
    """Whether ``forward`` wants a log-variance from the encoder."""

    relaxes = False
    """Whether what it passes on in training is a relaxed draw, a mixture of codes, rather than one of them."""

    def __init__(self, dim: int, *, channel_first: bool = False) -> None:
        super().__init__()
        check_size(dim, "dim")
        self.dim = dim
        self.channel_first = channel_first

    def forward(
        self,
        z: Tensor,
        temperature: float | Tensor | Stage = 1.0,
        *,
        log_variance: Tensor | None = None,
        mask: Tensor | None = None,
        sample: bool = False,
        channel_first: bool | None = None,
    ) -> Quantized:
        """Quantize a batch of encodings.

        In training a stochastic quantizer draws (relaxed) samples; in ``eval()`` the result is deterministic. Inputs
        are checked, except in a compiled graph, which can't raise on what its tensors hold.

        Arguments:
            z: (batch, ..., dim), or (batch, dim, ...) if channel-first; the encoder's output.
            temperature: of the relaxation, > 0, or all that a schedule says of a step. Tensors spare `torch.compile` a
                recompilation when they change.
            log_variance: from the encoder's second head, where the quantizer asks for it: of z's shape, and averaged
                over the axes that share a variance, or with those axes already gone.
            mask: (batch, ...), True where a position counts. The others are left out of the loss, the statistics and
                every update, whatever they hold.
            sample: in ``eval()``, draw a code from the assignment probabilities rather than take the likeliest.
        """
        stage = temperature if isinstance(temperature, Stage) else Stage(temperature)
        self._check_temperature(stage.temperature)
        positions = self._positions(z, mask, channel_first)
        with torch.autocast(z.device.type, enabled=False):
            scale = self._scale(log_variance, positions)
            return self._quantize(positions, scale, stage, sample or self.training)

    @torch.no_grad()
    def encode(
        self,
        z: Tensor,
        *,
        log_variance: Tensor | None = None,
        mask: Tensor | None = None,
        channel_first: bool | None = None,
    ) -> Tensor:  # (batch, ..., d) -> (batch, ...)
        """The likeliest code of each position: deterministic, exact, no loss and no noise.

        Positions that the mask leaves out may hold anything; they get some code as well.
        """
        positions = self._positions(z, mask, channel_first)
        with torch.autocast(z.device.type, enabled=False):
            return self._encode(positions, self._scale(log_variance, positions, optional=True))

    @abstractmethod
    def decode(self, codes: Tensor, *, channel_first: bool | None = None) -> Tensor:  # (batch, ...) -> (batch, ..., d)
        """The vectors that codes stand for."""

    def project(self, vectors: Tensor) -> Tensor:  # (..., d) -> (..., d)
        """Encodings as they are compared with codes: as they are, unless a quantizer says otherwise."""
        return vectors

    @abstractmethod
    def _quantize(self, positions: Positions, scale: Tensor, stage: Stage, sample: bool) -> Quantized:
        """Quantize a list of positions, whose spread `scale` was made by :meth:`_scale`."""

    @abstractmethod
    def _encode(self, positions: Positions, scale: Tensor) -> Tensor:
        """The codes of a list of positions, as a map."""

    def _scale(self, log_variance: Tensor | None, positions: Positions, *, optional: bool = False) -> Tensor:
        """What spreads the (de)quantization: nothing, unless the quantizer says otherwise."""
        if log_variance is not None:
            raise ValueError(f"{type(self).__name__} has no variance that depends on the input: leave out log_variance")
        return positions.vectors.new_zeros(())

    def _positions(self, z: Tensor, mask: Tensor | None, channel_first: bool | None) -> Positions:
        channel_first = self.channel_first if channel_first is None else channel_first
        axis = 1 if channel_first else -1
        layout = "(batch, dim, ...)" if channel_first else "(batch, ..., dim)"
        check_tensor(z, "z")
        if z.ndim < 2:
            raise ValueError(f"z must be {layout} with at least 2 axes, got shape {tuple(z.shape)}")
        if z.numel() == 0:
            raise ValueError(f"z is empty, of shape {tuple(z.shape)}: a batch needs at least one position")
        if not z.is_floating_point():
            raise ValueError(f"z must hold real numbers, got {z.dtype}")
        if z.shape[axis] != self.dim:
            other = -1 if channel_first else 1
            hint = f"; pass channel_first={not channel_first}" if z.shape[other] == self.dim else ""
            raise ValueError(
                f"z must be {layout} with dim = {self.dim}, got shape {tuple(z.shape)}, "
                f"whose axis {axis} has {z.shape[axis]}{hint}"
            )
        z = z.movedim(1, -1) if channel_first else z
        vectors = z.reshape(-1, self.dim)
        if vectors.dtype in (torch.float16, torch.bfloat16):
            vectors = vectors.float()
        if mask is not None:
            if mask.shape != z.shape[:-1] or mask.dtype != torch.bool:
                raise ValueError(
                    f"mask must be boolean, (batch, ...) = {tuple(z.shape[:-1])}, True where a position counts; "
                    f"got {mask.dtype} of shape {tuple(mask.shape)}"
                )
            if not torch.compiler.is_compiling() and not mask.any():
                raise ValueError("mask leaves out every position; it must be True where a position counts")
            mask = mask.reshape(-1)
            vectors = torch.where(mask.unsqueeze(-1), vectors, 0)
        check_finite(vectors, "z")
        return Positions(vectors, mask, z.shape[:-1], channel_first, z.dtype)

    def _check_temperature(self, temperature: float | Tensor) -> None:
        if isinstance(temperature, Tensor) and temperature.ndim:
            raise ValueError(f"temperature must be a single number, got a tensor of shape {tuple(temperature.shape)}")
        if not isinstance(temperature, Tensor | Real):
            raise TypeError(f"temperature must be a number, got {temperature!r}")
        if not torch.compiler.is_compiling():
            check_positive(float(temperature), "temperature")


class CodebookQuantizer(Quantizer, ABC):
    """A quantizer with a finite codebook.

    Arguments:
        codebook_size: the number of codes, :math:`K`.
        dim: the dimension of a code, :math:`d_b`.
        codebook_scale: the standard deviation of the codes' numbers before training.
    """

    def __init__(
        self, codebook_size: int, dim: int, *, codebook_scale: float = 1.0, channel_first: bool = False
    ) -> None:
        super().__init__(dim, channel_first=channel_first)
        check_size(codebook_size, "codebook_size")
        check_positive(codebook_scale, "codebook_scale")
        self.codebook_size = codebook_size
        self.codebook = nn.Parameter(codebook_scale * torch.randn(codebook_size, dim))

    def vectors(self) -> Tensor:  # -> (K, d)
        """The codes as the decoder sees them."""
        return self.codebook

    def _positions(self, z: Tensor, mask: Tensor | None, channel_first: bool | None) -> Positions:
        check_finite(self.codebook.detach(), "the codebook")
        return super()._positions(z, mask, channel_first)

    def decode(self, codes: Tensor, *, channel_first: bool | None = None) -> Tensor:
        check_indices(codes, self.codebook_size, "codes")
        latent = self.vectors()[codes.long()]
        channel_first = self.channel_first if channel_first is None else channel_first
        return latent.movedim(-1, 1) if channel_first else latent

    def extra_repr(self) -> str:
        layout = ", channel_first=True" if self.channel_first else ""
        return f"codebook_size={self.codebook_size}, dim={self.dim}{layout}"
