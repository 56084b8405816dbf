"""Residual quantization: several layers of codes, each of which quantizes what the layers before it left over."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar, cast

import torch
from torch import Tensor, nn

from sqvae.distributions.checks import check_finite, check_indices, check_size, check_tensor
from sqvae.distributions.processes import own_uniform
from sqvae.quantizers.contract import LEFT_OUT, CodebookQuantizer, Positions, Quantized, Quantizer, Stage
from sqvae.quantizers.gaussian import PER_INPUT, GaussianQuantizer, Heads, Variance
from sqvae.quantizers.stochastic import COMMITMENT, Draw, passed_on
from sqvae.quantizers.stochastic import Choice as Followed
from sqvae.quantizers.vector import EMAVectorQuantizer, straight_through


@contextmanager
def all_layers(module: nn.Module) -> Iterator[None]:
    """Within the block, layer dropout of all quantizers in a module leaves nothing out."""
    found = [part for part in module.modules() if isinstance(part, LayeredQuantizer)]
    before = [part.layer_dropout for part in found]
    try:
        for part in found:
            part.layer_dropout = 0.0
        yield
    finally:
        for part, share in zip(found, before, strict=True):
            part.layer_dropout = share


class Chosen(Protocol):
    """What a layer chose for its positions."""

    @property
    def values(self) -> Tensor:  # (N, d)
        """The vectors."""

    @property
    def codes(self) -> Tensor:  # (N,)
        """The codes."""


Choice = TypeVar("Choice", bound=Chosen)


@dataclass(frozen=True)
class Descent(Generic[Choice]):
    """What all layers chose, one after the other."""

    z_q: Tensor
    """(N, d): the sum of the vectors."""
    codes: Tensor
    """(batch, ..., layers) or (batch, layers, ...): the codes."""
    counts: list[Tensor]
    """(K,) of each layer: the number of positions that took each code."""
    constant: Tensor
    """(): the cost of the uniform prior, per sample."""
    distances: list[Tensor]
    """() of each layer: the squared distance that it left, per sample."""
    choices: list[tuple[Positions, Choice]]
    """The positions of each layer, and what it chose for them."""


class LayeredQuantizer(Quantizer, ABC):
    r"""A quantizer with several codes for each position, whose vectors add up.

    .. math:: r_0 = z, \qquad z_l = Q_l(r_{l-1}), \qquad r_l = r_{l-1} - z_l, \qquad y = \sum_l z_l

    Codes have one more axis than those of other quantizers. Those of the first n layers are a coarser description of
    the same encodings, and :meth:`decode` takes them as well.

    Arguments:
        codebook_size: the number of codes of each layer, :math:`K`; or one number for each layer.
        dim: the dimension of a latent vector.
        layers: the number of layers, L.
        layer: makes a layer with a number of codes.
        layer_dropout: the share of the samples of a training batch that use a random number of layers, evenly between 1
            and L, so that one model serves all of them.
        codes_first: whether the axis of the layers in codes comes after the batch, (batch, layers, ...), as in audio
            codecs. Otherwise it is the last, (batch, ..., layers).
        channel_first: whether latent maps are (batch, dim, ...).
    """

    codebook_size: int
    """The number of codes of all layers together."""

    layers: nn.ModuleList

    def __init__(
        self,
        codebook_size: int | Sequence[int],
        dim: int,
        layers: int,
        *,
        layer: Callable[[int], CodebookQuantizer],
        layer_dropout: float,
        codes_first: bool,
        channel_first: bool,
    ) -> None:
        super().__init__(dim, channel_first=channel_first)
        check_size(layers, "layers")
        if not 0 <= layer_dropout <= 1:
            raise ValueError(f"layer_dropout is a share of the samples, between 0 and 1; got {layer_dropout}")
        sizes = list(codebook_size) if isinstance(codebook_size, Sequence) else [codebook_size] * layers
        if len(sizes) != layers:
            raise ValueError(f"codebook_size must be one number, or one for each of {layers} layers; got {sizes}")
        self.codebook_sizes = tuple(sizes)
        self.codebook_size = sum(sizes)
        self.layer_dropout = layer_dropout
        self.codes_first = codes_first
        self.layers = nn.ModuleList(layer(size) for size in sizes)

    def forward(
        self,
        z: Tensor,
        temperature: float | Tensor | Stage = 1.0,
        *,
        log_variance: Tensor | None = None,
        mask: Tensor | None = None,
        sample: bool = False,
        channel_first: bool | None = None,
        layers: int | None = None,
    ) -> Quantized:
        """Quantize a batch of encodings.

        Arguments:
            z, temperature, log_variance, mask, sample, channel_first: see :meth:`Quantizer.forward`.
            layers: use this number of layers for all samples. None: all of them; with layer dropout in training, a
                random number for some samples.
        """
        depth = self._depth(layers)

        def quantize(positions: Positions, scale: Tensor, stage: Stage, sample: bool) -> Quantized:
            numbers = self._random_numbers(positions) if layers is None and self.training else None
            return self._quantize_layers(positions, scale, stage, sample, depth, numbers)

        return self._checked(quantize, z, temperature, log_variance, mask, sample, channel_first)

    @torch.no_grad()
    def encode(
        self,
        z: Tensor,
        *,
        log_variance: Tensor | None = None,
        mask: Tensor | None = None,
        channel_first: bool | None = None,
        layers: int | None = None,
    ) -> Tensor:  # (batch, ..., d) -> (batch, ..., layers) or (batch, layers, ...)
        """The likeliest codes at each position, layer by layer: see :meth:`Quantizer.encode`.

        Arguments:
            z, log_variance, mask, channel_first: see :meth:`Quantizer.encode`.
            layers: use this number of layers; None: all. The codes are the first of those of all layers.
        """
        depth = self._depth(layers)
        return self._checked_codes(
            lambda positions, scale: self._encode_layers(positions, scale, depth), z, log_variance, mask, channel_first
        )

    def decode(self, codes: Tensor, *, channel_first: bool | None = None) -> Tensor:
        """The sums of the vectors of codes, which may be those of the first layers only.

        Arguments:
            codes: (batch, ..., n) or, with ``codes_first``, (batch, n, ...), with n from 1 to the number of layers.
            channel_first: the layout of the result; None takes the quantizer's own.
        """
        check_tensor(codes, "codes")
        axis = 1 if self.codes_first else -1
        if codes.ndim < 2 or not 1 <= codes.shape[axis] <= len(self.layers):
            layout = "(batch, layers, ...)" if self.codes_first else "(batch, ..., layers)"
            raise ValueError(
                f"codes must be {layout} with 1 to {len(self.layers)} layers, got shape {tuple(codes.shape)}"
            )
        total: Tensor = codes.new_zeros(())
        for index, (layer, own) in enumerate(zip(self.books, codes.unbind(axis), strict=False)):
            check_indices(own, layer.codebook_size, f"codes of layer {index + 1}")
            vectors = layer.vectors()[own.long()]
            total = vectors if index == 0 else total + vectors
        channel_first = self.channel_first if channel_first is None else channel_first
        return total.movedim(-1, 1) if channel_first else total

    def vectors(self, layer: int = 0) -> Tensor:  # -> (K, d)
        """The code vectors of a layer."""
        return self.books[layer].vectors()

    @property
    def books(self) -> Sequence[CodebookQuantizer]:
        return cast("Sequence[CodebookQuantizer]", self.layers)

    @abstractmethod
    def _quantize_layers(
        self,
        positions: Positions,
        scale: Tensor,
        stage: Stage,
        sample: bool,
        depth: int,
        numbers: Tensor | None,
    ) -> Quantized:
        """Quantize a list of positions with the first layers.

        Arguments:
            positions, scale, stage, sample: see :meth:`Quantizer._quantize`.
            depth: the number of layers.
            numbers: (N,), the number of layers of each position; None: all of `depth`.
        """

    def _quantize(self, positions: Positions, scale: Tensor, stage: Stage, sample: bool) -> Quantized:
        return self._quantize_layers(positions, scale, stage, sample, len(self.layers), None)

    def _encode(self, positions: Positions, scale: Tensor) -> Tensor:
        return self._encode_layers(positions, scale, len(self.layers))

    def _positions(self, z: Tensor, mask: Tensor | None, channel_first: bool | None) -> Positions:
        for index, layer in enumerate(self.books):
            check_finite(layer.codebook.detach(), f"the codebook of layer {index + 1}")
        return super()._positions(z, mask, channel_first)

    def _encode_layers(self, positions: Positions, scale: Tensor, depth: int) -> Tensor:
        rest, codes = positions.vectors, []
        for layer, own in zip(self.books[:depth], scale, strict=False):
            codes.append(layer._encode(replace(positions, vectors=rest), own).flatten())
            rest = rest - layer.vectors()[codes[-1]].to(rest.dtype)
        return self._as_indices(codes, positions)

    def _as_indices(self, codes: Sequence[Tensor], positions: Positions) -> Tensor:  # (N,) each
        stacked = torch.stack(tuple(codes), -1).view(*positions.shape, len(codes))
        return stacked.movedim(-1, 1) if self.codes_first else stacked

    def _depth(self, layers: int | None) -> int:
        if layers is None:
            return len(self.layers)
        check_size(layers, "layers")
        if layers > len(self.layers):
            raise ValueError(f"layers must be at most {len(self.layers)}, the number of layers; got {layers}")
        return layers

    def _random_numbers(self, positions: Positions) -> Tensor | None:  # -> (N,)
        """The number of layers of each position, which is the same throughout a sample; None: all have all."""
        if not self.layer_dropout:
            return None
        draw = own_uniform(positions.batch, positions.vectors.device) / self.layer_dropout
        numbers = (1 + draw * len(self.layers)).clamp_max(len(self.layers)).long()
        return numbers.repeat_interleave(positions.number // positions.batch)

    def _descend(
        self,
        positions: Positions,
        z: Tensor,
        depth: int,
        numbers: Tensor | None,
        choose: Callable[[int, Positions], Choice],
    ) -> Descent[Choice]:  # (N, d), (N,)
        """Let each layer choose codes for what those before it left over.

        Arguments:
            positions, depth, numbers: see :meth:`_quantize_layers`.
            z: what is quantized.
            choose: takes the index of a layer and what it quantizes.
        """
        rest, z_q, constant = z, torch.zeros_like(z), z.new_zeros(())
        codes: list[Tensor] = []
        counts: list[Tensor] = []
        distances: list[Tensor] = []
        choices: list[tuple[Positions, Choice]] = []
        for index, size in enumerate(self.codebook_sizes[:depth]):
            here = self._in_layer(positions, rest, numbers, index)
            choice = choose(index, here)
            values = choice.values if numbers is None else choice.values * (numbers > index).unsqueeze(-1)
            rest, z_q = rest - values, z_q + values
            constant = constant + here.per_sample_count() * math.log(size)
            codes.append(_marked(choice.codes, numbers, index))
            counts.append(here.count(choice.codes, size))
            distances.append(here.per_sample(rest.square().sum(-1)))
            choices.append((here, choice))
        return Descent(z_q, self._as_indices(codes, positions), counts, constant, distances, choices)

    def _in_layer(self, positions: Positions, rest: Tensor, numbers: Tensor | None, index: int) -> Positions:
        """The positions that a layer quantizes, with what is left of them."""
        if numbers is None:
            return replace(positions, vectors=rest)
        mask = numbers > index if positions.mask is None else positions.mask & (numbers > index)
        return replace(positions, vectors=torch.where(mask.unsqueeze(-1), rest, 0), mask=mask)

    def extra_repr(self) -> str:
        sizes = set(self.codebook_sizes)
        size = sizes.pop() if len(sizes) == 1 else list(self.codebook_sizes)
        dropout = f", layer_dropout={self.layer_dropout:g}" if self.layer_dropout else ""
        return f"codebook_size={size}, dim={self.dim}{dropout}"


def _marked(codes: Tensor, numbers: Tensor | None, index: int) -> Tensor:  # (N,)
    """The codes of a layer, with a mark where the layer was left out."""
    return codes if numbers is None else torch.where(numbers > index, codes, LEFT_OUT)


def _of_samples(numbers: Tensor | None, positions: Positions) -> Tensor | None:  # (N,) -> (batch,)
    """The number of layers of each sample, which all of its positions have."""
    return None if numbers is None else numbers.view(positions.batch, -1)[:, 0]


def _probabilities(made: Descent[Draw] | Descent[Followed]) -> Tensor:  # -> (K,)
    """The mean assignment probabilities, layer after layer."""
    return torch.cat([choice.usage / here.weights.sum().clamp_min(1) for here, choice in made.choices])


def _of_sums(scales: Sequence[Tensor], numbers: Tensor | None) -> Tensor:  # (1, 1), (N, 1) or (N, d)
    """The logarithm of the sum of the layers' variances, or of those of the first layers of each position."""
    if numbers is None:
        return scales[0] if len(scales) == 1 else torch.stack(tuple(scales)).logsumexp(0)
    sums = torch.stack(tuple(scales)).logcumsumexp(0).expand(-1, len(numbers), -1)
    return sums.gather(0, (numbers - 1).view(1, -1, 1).expand(1, -1, sums.shape[-1])).squeeze(0)


class ResidualQuantizer(LayeredQuantizer):
    r"""Residual stochastic quantization (RSQ), with a variance of its own for each layer.

    Each layer draws codes for what the layers before it left over, and the decoder gets the sum of all:

    .. math:: \hat P_\varphi(z_l = b_k \mid r_{l-1}) = \mathrm{softmax}_k\left(
              -\frac{\lVert b_k - r_{l-1} \rVert^2}{2 \sigma_l^2}\right)

    The sum is (de)quantized with the sum of the variances, so that the quantizer's part of the objective is

    .. math:: \sum_i \frac{\lVert z_i - y_i \rVert^2}{2 \sum_l \sigma_l^2} - \sum_l H(\hat P_l),

    with sums over the positions of a sample. The latent's part of the bound is that plus
    :math:`d_z \sum_l \log K_l`. With one layer it is a :class:`~sqvae.quantizers.GaussianQuantizer`, to the bit.

    There is no such quantizer on the sphere, where the sum of two codes is no code.

    Arguments:
        codebook_size: the number of codes of each layer, :math:`K`; or one number for each layer.
        dim: the dimension of a latent vector.
        layers: the number of layers, L.
        variance: the axes that share a variance, as in :class:`~sqvae.quantizers.GaussianQuantizer`. What the encoder
            says of it holds for all layers, each of which adds a trained scalar.
        initial_variance: the variance of each layer before training.
        code_dim: the number of components of a code, at most ``dim``: see
            :class:`~sqvae.quantizers.GaussianQuantizer`.
        variance_offset, heads, dequantize, hard, codebook_scale: see :class:`~sqvae.quantizers.GaussianQuantizer`.
        shared_codebook: whether all layers have the same codes.
        layer_dropout, codes_first, channel_first: see :class:`LayeredQuantizer`.
    """

    relaxes = True

    def __init__(
        self,
        codebook_size: int | Sequence[int],
        dim: int,
        layers: int = 4,
        variance: Variance = "shared",
        *,
        initial_variance: float | None = None,
        variance_offset: float = 0.0,
        heads: Heads = "product",
        dequantize: bool = False,
        hard: bool = False,
        codebook_scale: float = 1.0,
        code_dim: int | None = None,
        shared_codebook: bool = False,
        layer_dropout: float = 0.0,
        codes_first: bool = False,
        channel_first: bool = False,
    ) -> None:
        def layer(size: int) -> GaussianQuantizer:
            return GaussianQuantizer(
                size,
                dim,
                variance,
                initial_variance=initial_variance,
                variance_offset=variance_offset,
                heads=heads,
                dequantize=dequantize,
                hard=hard,
                codebook_scale=codebook_scale,
                code_dim=code_dim,
            )

        super().__init__(
            codebook_size,
            dim,
            layers,
            layer=layer,
            layer_dropout=layer_dropout,
            codes_first=codes_first,
            channel_first=channel_first,
        )
        self.needs_log_variance = variance in PER_INPUT
        self.shared_codebook = shared_codebook
        if shared_codebook:
            self._share_codebook()

    @property
    def books(self) -> Sequence[GaussianQuantizer]:
        return cast("Sequence[GaussianQuantizer]", self.layers)

    def _share_codebook(self) -> None:
        """Give all layers the codebook of the first, and save it once."""
        if len(set(self.codebook_sizes)) > 1:
            raise ValueError(f"layers that share a codebook must have one size, got {list(self.codebook_sizes)}")
        names = [f"layers.{index}.codebook" for index in range(1, len(self.layers))]
        for layer in self.books:
            layer.codebook = self.books[0].codebook

        def save_once(_module: nn.Module, state: dict[str, Tensor], prefix: str, _local: object) -> None:
            for name in names:
                state.pop(prefix + name)

        def load_for_all(_module: nn.Module, state: dict[str, Tensor], prefix: str, *_: object) -> None:
            for name in names:
                state.setdefault(prefix + name, state[f"{prefix}layers.0.codebook"])

        self.register_state_dict_post_hook(save_once)  # type: ignore[no-untyped-call]
        self.register_load_state_dict_pre_hook(load_for_all)  # type: ignore[no-untyped-call]

    def _scale(
        self, log_variance: Tensor | None, positions: Positions, *, optional: bool = False
    ) -> Tensor:  # -> (L, 1, 1), (L, N, 1) or (L, N, d)
        return torch.stack([layer._scale(log_variance, positions, optional=optional) for layer in self.books])

    def _quantize_layers(
        self,
        positions: Positions,
        scale: Tensor,
        stage: Stage,
        sample: bool,
        depth: int,
        numbers: Tensor | None,
    ) -> Quantized:
        layers = self.books[:depth]
        if stage.certain and self.training and layers[0].settles:
            return self._quantize_for_certain(positions, scale, stage, depth, numbers)
        scales = scale.unbind(0)[:depth]
        joint = _of_sums(scales, numbers)
        z = layers[0].dequantized(positions.vectors, joint, sample)

        def draw(index: int, here: Positions) -> Draw:
            return layers[index].draw(here.vectors, scales[index], stage, here, sample, sharing=depth)

        made = self._descend(positions, z, depth, numbers, draw)
        pull = layers[0].pull(z, made.z_q, joint, stage, sample)
        regularizer = positions.per_sample(pull.expand(positions.number))
        entropies = [here.per_sample(draw.entropy) for here, draw in made.choices]
        entropy = sum(entropies[1:], entropies[0])
        unevenness = [draw.unevenness for _, draw in made.choices if draw.unevenness is not None]
        return Quantized(
            z_q=positions.as_map(passed_on(made.z_q, z, stage) if self.training else made.z_q),
            codes=made.codes,
            loss=sum(unevenness, regularizer - entropy),
            divergence=regularizer - entropy + made.constant,
            regularizer=regularizer,
            entropy=entropy,
            counts=torch.cat(made.counts),
            mean_probabilities=_probabilities(made),
            layer_sizes=self.codebook_sizes[:depth],
            variance=self._variances(scale[:depth], positions),
            layer_entropies=torch.stack([each.detach() for each in entropies]),
            depths=_of_samples(numbers, positions),
        )

    def _quantize_for_certain(
        self, positions: Positions, scale: Tensor, stage: Stage, depth: int, numbers: Tensor | None
    ) -> Quantized:
        z, layers, scales = positions.vectors, self.books[:depth], scale.unbind(0)[:depth]

        def follow(index: int, here: Positions) -> Followed:
            return layers[index].follow(here, scales[index], stage)

        made = self._descend(positions, z, depth, numbers, follow)
        pull = layers[0]._regularizer(z, made.z_q, _of_sums(scales, numbers)).detach()
        regularizer = positions.per_sample(pull.expand(positions.number))
        entropies = torch.stack([here.per_sample(choice.entropy) for here, choice in made.choices])
        return Quantized(
            z_q=positions.as_map(straight_through(made.z_q, z)),
            codes=made.codes,
            loss=COMMITMENT * torch.stack(made.distances).mean() + sum(layer.idle(scale) for layer in self.books),
            divergence=regularizer - entropies.sum() + made.constant,
            regularizer=regularizer,
            entropy=entropies.sum(),
            counts=torch.cat(made.counts),
            mean_probabilities=_probabilities(made),
            layer_sizes=self.codebook_sizes[:depth],
            variance=self._variances(scale[:depth], positions),
            layer_entropies=entropies,
            depths=_of_samples(numbers, positions),
        )

    def _variances(self, scale: Tensor, positions: Positions) -> Tensor:  # -> (L, ...)
        reports = [layer._report(own, positions)["variance"] for layer, own in zip(self.books, scale, strict=False)]
        return torch.stack(reports)


class ResidualVectorQuantizer(LayeredQuantizer):
    r"""Residual vector quantization (RVQ) whose codes are moving averages: the deterministic baseline.

    Each layer takes the nearest code to what is left, and only the commitment losses remain:

    .. math:: \beta \sum_l \lVert r_{l-1} - \mathrm{sg}[z_l] \rVert^2

    Arguments:
        codebook_size: the number of codes of each layer, :math:`K`; or one number for each layer.
        dim: the dimension of a latent vector.
        layers: the number of layers, L.
        commitment, decay, reset_every, reset_below, reset_variance, codebook_scale: see
            :class:`~sqvae.quantizers.EMAVectorQuantizer`.
        layer_dropout, codes_first, channel_first: see :class:`LayeredQuantizer`.
    """

    def __init__(
        self,
        codebook_size: int | Sequence[int],
        dim: int,
        layers: int = 4,
        *,
        commitment: float = 0.25,
        decay: float = 0.99,
        reset_every: int | None = None,
        reset_below: float = 0.03,
        reset_variance: float = 0.01,
        codebook_scale: float = 1.0,
        layer_dropout: float = 0.0,
        codes_first: bool = False,
        channel_first: bool = False,
    ) -> None:
        def layer(size: int) -> EMAVectorQuantizer:
            return EMAVectorQuantizer(
                size,
                dim,
                commitment=commitment,
                decay=decay,
                reset_every=reset_every,
                reset_below=reset_below,
                reset_variance=reset_variance,
                codebook_scale=codebook_scale,
            )

        super().__init__(
            codebook_size,
            dim,
            layers,
            layer=layer,
            layer_dropout=layer_dropout,
            codes_first=codes_first,
            channel_first=channel_first,
        )

    @property
    def books(self) -> Sequence[EMAVectorQuantizer]:
        return cast("Sequence[EMAVectorQuantizer]", self.layers)

    def _scale(self, log_variance: Tensor | None, positions: Positions, *, optional: bool = False) -> Tensor:
        return super()._scale(log_variance, positions).expand(len(self.layers))

    def _quantize_layers(
        self,
        positions: Positions,
        scale: Tensor,
        stage: Stage,
        sample: bool,
        depth: int,
        numbers: Tensor | None,
    ) -> Quantized:
        z = positions.vectors
        made = self._descend(positions, z, depth, numbers, lambda index, here: self.books[index].choose(here))
        loss = torch.stack([choice.loss for _, choice in made.choices]).sum()
        return Quantized(
            z_q=positions.as_map(straight_through(made.z_q, z)),
            codes=made.codes,
            loss=loss,
            divergence=made.constant,
            regularizer=torch.stack([choice.regularizer for _, choice in made.choices]).sum(),
            entropy=loss.new_zeros(()),
            counts=torch.cat(made.counts),
            mean_probabilities=torch.cat([each / each.sum().clamp_min(1) for each in made.counts]),
            layer_sizes=self.codebook_sizes[:depth],
            layer_entropies=z.new_zeros(depth),
            depths=_of_samples(numbers, positions),
        )
