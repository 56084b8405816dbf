"""The interface that all quantizers share."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import NamedTuple

import torch
from torch import Tensor, nn

from sqvae.distributions import layer_perplexities, perplexity
from sqvae.distributions.checks import check_finite, check_indices, check_positive, check_size, check_tensor

LEFT_OUT = -1
"""The code of a layer that layer dropout has left out of a sample. It occurs in training only."""


class Stage(NamedTuple):
    """The schedule's values at one training step, as a quantizer needs them. It can be passed in place of the
    temperature."""

    temperature: float | Tensor = 1.0
    """The temperature of the relaxation, > 0."""
    latent_weight: float | Tensor = 1.0
    """The weight of the quantizer's terms in the gradient of its own variance or concentration. At 1 the bound
    trains the variance, like all other parameters; towards 0 only the reconstruction error does."""
    straight_through: float | Tensor = 0.0
    """The share of the decoder's gradient that is passed straight to the encodings, in addition to the gradient
    through the relaxed sample. The latter vanishes as assignments become certain, and the encoder would then learn
    nothing more from the reconstruction error."""
    evenness: float | Tensor = 0.0
    """The weight, at least 0, of a term that makes codebook usage even. At 1, a code that is used e times as often
    as the average costs one nat more than a code of average use."""
    price: float | Tensor | None = None
    """None while codes are drawn. Otherwise assignments are certain: each position takes its likeliest code, and codes
    and variance follow the encodings as moving averages. What a stochastic quantizer then trains is a VQ, whose codes
    have a price so that none of them is lost: that of a code that is used e times as often as the average, relative to
    the mean squared distance between encodings and their codes."""

    @property
    def certain(self) -> bool:
        """Whether assignments are certain."""
        return self.price is not None


@dataclass(frozen=True)
class Quantized:
    """The output of a quantizer. It unpacks as ``z_q, codes, loss``; all other values are attributes.

    All scalars are per sample: summed over the positions of a sample and averaged over the batch. Terms of the bound
    are in nats.
    """

    z_q: Tensor = field(repr=False)
    """The quantized latents, of the shape of z: the decoder's input."""
    codes: Tensor = field(repr=False)
    """(batch, ...): the index of the code at each position. In training it is the code that was drawn, in ``eval()``
    the likeliest. A quantizer with layers has one more axis of them, and :data:`LEFT_OUT` where layer dropout left a
    layer out. For a continuous latent it is the mean itself."""
    loss: Tensor
    """(): the quantizer's part of the training objective."""
    divergence: Tensor
    """(): the latent's part of the bound on the log-likelihood, constants included."""
    regularizer: Tensor
    """(): the part of the loss that pulls encodings and codes together."""
    entropy: Tensor
    """(): the entropy of the assignment probabilities; 0 if the assignment is deterministic."""
    counts: Tensor = field(repr=False)
    """(K,): the number of unmasked positions that took each code; with layers for one layer after the other."""
    mean_probabilities: Tensor = field(repr=False)
    """(K,): the assignment probabilities, averaged over the unmasked positions; with layers likewise."""
    variance: Tensor | None = field(default=None, repr=False)
    """The variance of the (de)quantization, with the axes that it depends on; None if the quantizer has none."""
    concentration: Tensor | None = None
    """(): the concentration of the von Mises-Fisher (de)quantization; None if the quantizer has none."""
    layer_sizes: tuple[int, ...] | None = None
    """The number of codes of each layer; None if the quantizer has no layers."""
    layer_entropies: Tensor | None = None
    """(L,): the part of each layer in the entropy; None if the quantizer has no layers."""
    depths: Tensor | None = None
    """(batch,): the number of layers that each sample uses, if layer dropout has made them differ."""

    def __iter__(self) -> Iterator[Tensor]:
        return iter((self.z_q, self.codes, self.loss))

    @property
    def groups(self) -> Tensor | None:
        """(batch, L): True for the number of layers that each sample uses, if layer dropout has made them differ."""
        if self.depths is None or self.layer_sizes is None:
            return None
        return self.depths.unsqueeze(-1) == torch.arange(1, len(self.layer_sizes) + 1, device=self.depths.device)

    @property
    def levels(self) -> tuple["Quantized", ...]:
        """The output of each level: of a quantizer by itself, its own."""
        return (self,)

    @property
    def perplexity(self) -> Tensor:
        """(), or (L,) with layers: the perplexity of the codes in this batch, between 1 and K.

        In training, codes are drawn at random, and a quantizer that draws them blindly uses them all. To see how many
        codes carry information, measure it in ``eval()`` over several batches, or look at the entropy.
        """
        return self._perplexity(self.counts)

    @property
    def soft_perplexity(self) -> Tensor:
        """(), or (L,) with layers: the perplexity of the mean assignment probabilities in this batch."""
        return self._perplexity(self.mean_probabilities)

    def _perplexity(self, usage: Tensor) -> Tensor:  # (K,) -> () or (layers,)
        return perplexity(usage) if self.layer_sizes is None else layer_perplexities(usage, self.layer_sizes)


@dataclass(frozen=True)
class Positions:
    """A latent map as a list of vectors, and the way back to a map."""

    vectors: Tensor
    """(N, d): one row for each position; 0 at masked positions."""
    mask: Tensor | None
    """(N,): True at the positions that count."""
    shape: torch.Size
    """(batch, ...): the shape of the map without the vectors' axis."""
    channel_first: bool
    dtype: torch.dtype
    """The data type of the encodings. Half-precision vectors are computed in float32 and returned in this type."""

    @property
    def number(self) -> int:
        """The number of positions, N. It is read from the shape, because ``len`` would fix the size in an exported
        program."""
        return self.vectors.shape[0]

    @property
    def batch(self) -> int:
        return self.shape[0]

    @property
    def weights(self) -> Tensor:  # (N,)
        """1 at the positions that count, 0 at masked ones."""
        if self.mask is None:
            return self.vectors.new_ones(self.number)
        return self.mask.to(self.vectors.dtype)

    def per_sample(self, values: Tensor) -> Tensor:  # (N,) -> ()
        """The sum over the unmasked positions, averaged over the batch."""
        return (values if self.mask is None else values * self.mask).sum() / self.batch

    def per_sample_count(self) -> Tensor:  # -> ()
        """The number of unmasked positions, averaged over the batch."""
        return self.weights.sum() / self.batch

    def rows(self, latent: Tensor, name: str) -> Tensor:  # (batch, ..., d) or (batch, d, ...) -> (N, d)
        """Another map of the same layout as a list of vectors, with 0 at masked positions."""
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
        """The number of unmasked positions that took each code."""
        return self.weights.new_zeros(codebook_size).index_add_(0, codes, self.weights)


class Quantizer(nn.Module, ABC):
    """Turns encodings into codes, and codes into vectors.

    Arguments:
        dim: the dimension of a latent vector.
        channel_first: whether latent maps are (batch, dim, ...), as convolutions return them, rather than (batch, ...,
            dim). Every method takes the same argument for a single call.
    """

    needs_log_variance = False
    """Whether ``forward`` needs a log-variance from the encoder."""

    codebook_sizes: tuple[int, ...] = ()
    """The number of codes of each layer, the coarsest first. Most quantizers have one layer."""

    relaxes = False
    """Whether z_q in training is a relaxed sample, a mixture of codes, rather than a single code."""

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
        are checked, except in a compiled graph, which cannot raise depending on the values of its tensors.

        Arguments:
            z: (batch, ..., dim), or (batch, dim, ...) if channel-first; the encoder's output.
            temperature: the temperature of the relaxation, > 0, or a `Stage` with all values of a schedule. Tensors
                avoid a recompilation by `torch.compile` when the values change.
            log_variance: the output of the encoder's second head, if the quantizer needs it. It has z's shape, and is
                averaged over the axes that share a variance, or it lacks those axes.
            mask: (batch, ...), True at the positions that count. Masked positions are left out of the loss, the
                statistics and every update, whatever they hold.
            sample: in ``eval()``, draw a code from the assignment probabilities instead of taking the likeliest.
            channel_first: the layout of z for this call; None takes the quantizer's own.
        """
        return self._checked(self._quantize, z, temperature, log_variance, mask, sample, channel_first)

    @torch.no_grad()
    def encode(
        self,
        z: Tensor,
        *,
        log_variance: Tensor | None = None,
        mask: Tensor | None = None,
        channel_first: bool | None = None,
    ) -> Tensor:  # (batch, ..., d) -> (batch, ...)
        """The likeliest code at each position: deterministic and exact, without loss or noise.

        Masked positions may hold anything; they get some code as well.
        """
        return self._checked_codes(self._encode, z, log_variance, mask, channel_first)

    @abstractmethod
    def decode(self, codes: Tensor, *, channel_first: bool | None = None) -> Tensor:  # (batch, ...) -> (batch, ..., d)
        """The code vectors of the codes."""

    @property
    def books(self) -> Sequence["CodebookQuantizer"]:
        """The parts that have a codebook: one for each layer of codes, and none for a continuous latent."""
        return ()

    @property
    def levels(self) -> tuple["Quantizer", ...]:
        """The quantizer of each level of a hierarchy: of a quantizer by itself, its own."""
        return (self,)

    def project(self, vectors: Tensor) -> Tensor:  # (..., d) -> (..., d)
        """Encodings in the form in which they are compared with codes. By default they are unchanged."""
        return vectors

    @abstractmethod
    def _quantize(self, positions: Positions, scale: Tensor, stage: Stage, sample: bool) -> Quantized:
        """Quantize a list of positions, with the `scale` that :meth:`_scale` returned."""

    @abstractmethod
    def _encode(self, positions: Positions, scale: Tensor) -> Tensor:
        """The codes of a list of positions, as a map."""

    def _checked(
        self,
        quantize: Callable[[Positions, Tensor, Stage, bool], Quantized],
        z: Tensor,
        temperature: float | Tensor | Stage,
        log_variance: Tensor | None,
        mask: Tensor | None,
        sample: bool,
        channel_first: bool | None,
    ) -> Quantized:
        """Check what :meth:`forward` was given, and quantize it in full precision."""
        stage = temperature if isinstance(temperature, Stage) else Stage(temperature)
        self._check_temperature(stage.temperature)
        positions = self._positions(z, mask, channel_first)
        with torch.autocast(z.device.type, enabled=False):
            scale = self._scale(log_variance, positions)
            return quantize(positions, scale, stage, sample or self.training)

    def _checked_codes(
        self,
        encode: Callable[[Positions, Tensor], Tensor],
        z: Tensor,
        log_variance: Tensor | None,
        mask: Tensor | None,
        channel_first: bool | None,
    ) -> Tensor:
        """Check what :meth:`encode` was given, and encode it in full precision."""
        positions = self._positions(z, mask, channel_first)
        with torch.autocast(z.device.type, enabled=False):
            return encode(positions, self._scale(log_variance, positions, optional=True))

    def _scale(self, log_variance: Tensor | None, positions: Positions, *, optional: bool = False) -> Tensor:
        """The log-scale of the (de)quantization. By default there is none, and it is 0."""
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
            raise ValueError(f"z is empty, with shape {tuple(z.shape)}: a batch needs at least one position")
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
                    f"mask must be boolean, (batch, ...) = {tuple(z.shape[:-1])}, True at the positions that count; "
                    f"got {mask.dtype} of shape {tuple(mask.shape)}"
                )
            if not torch.compiler.is_compiling() and not mask.any():
                raise ValueError("mask leaves out all positions; it must be True at the positions that count")
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
        codebook_scale: the standard deviation of the codes' components before training.
        code_dim: the number of components of a code, if it is less than `dim`: the code vectors are then the codes
            times a trained matrix. None: the codes are the vectors.
        channel_first: whether latent maps are (batch, dim, ...).
    """

    def __init__(
        self,
        codebook_size: int,
        dim: int,
        *,
        codebook_scale: float = 1.0,
        code_dim: int | None = None,
        channel_first: bool = False,
    ) -> None:
        super().__init__(dim, channel_first=channel_first)
        check_size(codebook_size, "codebook_size")
        check_positive(codebook_scale, "codebook_scale")
        if code_dim is not None:
            check_size(code_dim, "code_dim")
            if code_dim > dim:
                raise ValueError(f"code_dim must be at most dim, which is {dim}; got {code_dim}")
        self.codebook_size = codebook_size
        self.codebook_sizes = (codebook_size,)
        self.codebook = nn.Parameter(codebook_scale * torch.randn(codebook_size, code_dim or dim))
        self.basis: nn.Parameter | None = None
        """(code_dim, d): the matrix that codes are multiplied by, if they have fewer components than their vectors."""
        if code_dim is not None:
            self.basis = nn.Parameter(torch.randn(code_dim, dim) / math.sqrt(code_dim))

    @property
    def books(self) -> Sequence["CodebookQuantizer"]:
        return (self,)

    def vectors(self, dtype: torch.dtype | None = None) -> Tensor:  # -> (K, d)
        """The code vectors as the decoder sees them, computed in their own data type or in another one."""
        codebook = self.codebook if dtype is None else self.codebook.to(dtype)
        return codebook if self.basis is None else codebook @ self.basis.to(codebook.dtype)

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
