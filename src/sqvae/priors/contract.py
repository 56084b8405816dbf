"""The interface that all priors share: logits of all positions at once, or of one position after the other."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from sqvae.distributions.checks import check_indices, check_size
from sqvae.networks.modes import evaluating
from sqvae.priors.conditioning import Conditioning
from sqvae.priors.layers import LayerHead

LAYOUTS = {1: "(batch, n)", 2: "(batch, h, w)"}
"""The layout of codes by the number of axes of an example; with layers they are one axis more, the last."""


@dataclass(frozen=True)
class Condition:
    """The condition of each example. Each part is for priors that were built for it only."""

    classes: Tensor | None = None
    """(batch,): the class of each example."""
    codes: Tensor | None = None
    """``(batch, *coarse_shape)``: the codes of the next coarser level, each of which covers an equal block of
    positions."""

    def to(self, device: torch.device) -> "Condition":
        """The same condition on another device."""
        return Condition(
            None if self.classes is None else self.classes.to(device),
            None if self.codes is None else self.codes.to(device),
        )

    def __getitem__(self, examples: slice | Tensor) -> "Condition":
        """The condition of some of the examples."""
        return Condition(
            None if self.classes is None else self.classes[examples],
            None if self.codes is None else self.codes[examples],
        )


class Prior(nn.Module, ABC):
    r"""A distribution over maps or sequences of codes, as a product over positions in raster order.

    .. math:: p(c \mid y) = \prod_i p(c_i \mid c_{<i}, y), \qquad p(c_i = k \mid c_{<i}, y) = \mathrm{softmax}_k(l_i)

    The last axis is the fastest. Subclasses see a sequence as a map of one row.

    With several layers of codes, each position is a product over its layers as well. The network sees the sum of the
    embeddings of a position's codes, and runs once for a position; a small head runs once for a layer: see
    :class:`sqvae.priors.layers.LayerHead`.

    .. math:: p(c \mid y) = \prod_i \prod_l p(c_{il} \mid c_{<i}, c_{i,<l}, y)

    Arguments:
        codebook_size: the number of codes, :math:`K`; with layers, that of each.
        channels: the number of channels of the network's layers.
        ndim: 2 for maps (batch, h, w), 1 for sequences (batch, n). Both may have any size.
        classes: the number of classes of a class-conditional prior; None for no classes.
        context: the codebook size of the next coarser level that the prior is conditioned on; None for none.
        code_layers: the number of codes at each position, (batch, h, w, layers) or (batch, n, layers); None if codes
            have no axis of layers.
        dropout: the dropout probability in the head of the layers in training.
    """

    head: nn.Module
    """What follows the network at each position: (..., channels) -> (..., K), the logits; or with layers
    (..., channels), the features that the logits of the layers are computed from."""

    def __init__(
        self,
        codebook_size: int,
        channels: int,
        *,
        ndim: int = 2,
        classes: int | None = None,
        context: int | None = None,
        code_layers: int | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_size(codebook_size, "codebook_size")
        check_size(channels, "channels")
        if code_layers is not None:
            check_size(code_layers, "code_layers")
        if ndim not in LAYOUTS:
            raise ValueError(f"ndim must be 1 for sequences or 2 for maps, got {ndim!r}")
        self.codebook_size = codebook_size
        self.channels = channels
        self.ndim = ndim
        self.classes = classes
        self.context = context
        self.code_layers = code_layers
        self.embedding = nn.Embedding(codebook_size * (code_layers or 1), channels)
        self.conditioning = Conditioning(channels, rows=ndim > 1, classes=classes, context=context)
        self.layer_head: LayerHead | None = None
        if code_layers is not None:
            self.layer_head = LayerHead(channels, codebook_size, code_layers, dropout=dropout)
            # The sum over a position's layers begins with the variance of a single embedding.
            nn.init.normal_(self.embedding.weight, std=code_layers**-0.5)

    def forward(self, codes: Tensor, condition: Condition | None = None) -> Tensor:
        """See :meth:`logits`."""
        return self.logits(codes, condition)

    def logits(self, codes: Tensor, condition: Condition | None = None) -> Tensor:  # (batch, *shape) -> (..., K)
        """The logits of each code, which depend on the codes before it only: those of earlier positions, and of earlier
        layers at its own."""
        check_indices(codes, self.codebook_size, "codes", "; is this the prior of another tokenizer?")
        if codes.ndim != 1 + self.ndim + len(self.layer_axis):
            raise ValueError(
                f"this prior takes codes as {self._layout}, got shape {tuple(codes.shape)}; build it with ndim=1 for "
                "sequences, ndim=2 for maps, and with code_layers=... for codes with a last axis of layers"
            )
        height, width = self._map_shape(codes.shape[1:])
        known = self._known(condition, codes.shape[0], (height, width))
        e = self.embed(codes.long().reshape(-1, height, width, *self.layer_axis))
        if self.layer_head is None:
            logits: Tensor = self.head(self._features(e, known))
        else:
            logits = self.layer_head(self.head(self._features(e.sum(-2), known)), e)
        return logits.reshape(*codes.shape, self.codebook_size)

    def embed(self, codes: Tensor) -> Tensor:  # (...) -> (..., channels), or (..., l) -> (..., l, channels)
        """The embeddings of codes; with layers those of the first l layers, each of which has its own part of the
        table."""
        if self.code_layers is not None:
            codes = codes + self.codebook_size * torch.arange(codes.shape[-1], device=codes.device)
        embedded: Tensor = self.embedding(codes)
        return embedded

    @property
    def outputs(self) -> int:
        """The number of outputs of the head."""
        return self.codebook_size if self.code_layers is None else self.channels

    @property
    def layer_axis(self) -> tuple[int, ...]:
        """(layers,), the last axis of codes; () for codes without layers."""
        return () if self.code_layers is None else (self.code_layers,)

    @torch.inference_mode()
    def start(self, batch: int, shape: Sequence[int], condition: Condition | None = None) -> "Draft":
        """A draft that computes the same logits code by code, at the total cost of about one evaluation.

        There is no dropout, as in ``eval()``. The weights must not change until the draft is done.

        Arguments:
            batch: the number of examples.
            shape: the shape of each example's codes: (h, w) or (n,), and with layers one axis more.
            condition: the condition of each example, for a conditional prior.
        """
        check_size(batch, "batch")
        known = self._known(condition, batch, self._map_shape(shape))
        return self._start(batch, shape, known)

    @abstractmethod
    def _features(
        self, e: Tensor, known: Tensor | None
    ) -> Tensor:  # (batch, h, w, channels) -> (batch, h, w, channels)
        """What the head gets at each position, from the embeddings of the positions before it.

        Arguments:
            e: the embedding of each position's code, or the sum of those of its layers.
            known: the features of the condition: (batch, h, w, channels), or (batch, 1, 1, channels).
        """

    @abstractmethod
    def _start(self, batch: int, shape: Sequence[int], known: Tensor | None) -> "Draft":
        """A draft without dropout, given the features of the condition."""

    def _map_shape(self, shape: Sequence[int]) -> tuple[int, int]:
        """The shape of a map of positions, from that of an example's codes. A sequence is a map of one row."""
        positions = tuple(shape[: self.ndim])
        if len(positions) != self.ndim or min(positions) < 1 or tuple(shape[self.ndim :]) != self.layer_axis:
            raise ValueError(
                f"this prior takes codes as {self._layout}, each size at least 1; got the shape {tuple(shape)} for "
                "each example"
            )
        return _as_map(positions)

    @property
    def _layout(self) -> str:
        layout = LAYOUTS[self.ndim]
        return layout if self.code_layers is None else f"{layout[:-1]}, {self.code_layers})"

    def _known(self, condition: Condition | None, batch: int, shape: tuple[int, int]) -> Tensor | None:
        """The features of a condition at each position of a map, or the same for all positions."""
        classes, codes = (None, None) if condition is None else (condition.classes, condition.codes)
        _check_asked(classes, self.classes, "classes")
        _check_asked(codes, self.context, "codes")
        if classes is not None and self.classes is not None:
            check_indices(classes, self.classes, "the condition's classes")
            if classes.shape != (batch,):
                raise ValueError(
                    f"the condition's classes must be (batch,) = ({batch},), one for each example; got shape "
                    f"{tuple(classes.shape)}"
                )
        if codes is not None and self.context is not None:
            check_indices(codes, self.context, "the condition's codes", "; are they of another level?")
            codes = self._coarse_map(codes, batch, shape)
        known: Tensor | None = self.conditioning(classes, codes, shape)
        return known

    def _coarse_map(self, codes: Tensor, batch: int, shape: tuple[int, int]) -> Tensor:  # -> (batch, rows, columns)
        if codes.ndim != self.ndim + 1 or codes.shape[0] != batch or min(codes.shape) < 1:
            raise ValueError(
                f"the condition's codes must be {LAYOUTS[self.ndim]} with batch = {batch}, got shape "
                f"{tuple(codes.shape)}"
            )
        coarse = _as_map(codes.shape[1:])
        if any(fine % size for fine, size in zip(shape, coarse, strict=True)):
            raise ValueError(
                "each of the condition's codes must cover the same whole number of positions, but "
                f"{'x'.join(map(str, codes.shape[1:]))} codes do not divide "
                f"{'x'.join(map(str, shape[2 - self.ndim :]))} positions: use codes of the coarser level that belongs "
                "to this shape"
            )
        return codes.long().reshape(batch, *coarse)


class Draft(ABC):
    """Codes that are set one after the other: position after position in raster order, and layer after layer at each.

    All computations run in torch's inference mode: the result of :meth:`next_logits` has no gradient.

    Arguments:
        prior: the prior, whose weights are used.
        batch: the number of examples that are drafted in parallel.
        shape: the shape of each example's codes.
    """

    def __init__(self, prior: Prior, batch: int, shape: Sequence[int]) -> None:
        self.prior = prior
        self.batch = batch
        self.shape = tuple(shape)
        self.codebook_size = prior.codebook_size
        self.layers = prior.code_layers or 1
        self.steps = math.prod(shape)
        """The number of codes of an example: one for each layer of each position."""
        self.step = 0
        """The index of the next code. The draft is complete when it equals the number of codes."""
        self.positions = self.steps // self.layers
        device = prior.embedding.weight.device
        self._settled = torch.zeros(batch, self.steps, dtype=torch.int64, device=device)
        self._next: Tensor | None = None

    @property
    def position(self) -> int:
        """The index of the next code's position."""
        return self.step // self.layers

    @property
    def codes(self) -> Tensor:  # -> (batch, *shape)
        """The codes that are set so far, and 0 for all others."""
        return self._settled.view(self.batch, *self.shape).clone()

    @torch.inference_mode()
    def next_logits(self) -> Tensor:  # -> (batch, K)
        """The logits of the next code, given all codes before it. A second call before :meth:`put` costs nothing."""
        if self.step == self.steps:
            raise ValueError(f"all {self.positions} positions are set: start another draft")
        if self._next is None:
            self._next = self._evaluate()
        return self._next

    @torch.inference_mode()
    def put(self, codes: Tensor) -> None:  # (batch,)
        """Set the next code, and move on."""
        self.next_logits()  # this also updates the caches that later codes need
        check_indices(codes, self.codebook_size, "codes")
        if codes.shape != (self.batch,):
            raise ValueError(f"codes must be (batch,) = ({self.batch},), got shape {tuple(codes.shape)}")
        self._settled[:, self.step] = codes
        self.step += 1
        self._next = None

    @abstractmethod
    def _evaluate(self) -> Tensor:  # -> (batch, K)
        """The logits of the next code. It is called once for each code, in order."""


class RecomputedDraft(Draft):
    """A draft without caches, which evaluates the whole map for each code: the reference for faster drafts."""

    @torch.inference_mode()
    def __init__(self, prior: Prior, batch: int, shape: Sequence[int], condition: Condition | None = None) -> None:
        super().__init__(prior, batch, shape)
        self._condition = condition

    def _evaluate(self) -> Tensor:
        with evaluating(self.prior):
            logits = self.prior.logits(self._settled.view(self.batch, *self.shape), self._condition)
        return logits.flatten(1, -2)[:, self.step]


def _as_map(positions: Sequence[int]) -> tuple[int, int]:
    """The shape of positions as that of a map. A sequence is a map of one row."""
    return (1, positions[0]) if len(positions) == 1 else (positions[0], positions[1])


def _check_asked(given: Tensor | None, asked: int | None, name: str) -> None:
    argument = {"classes": "classes", "codes": "context"}[name]
    if given is None and asked is not None:
        raise ValueError(
            f"this prior was built with {argument}={asked}: pass condition=Condition({name}=...) with one entry for "
            "each example"
        )
    if given is not None and asked is None:
        raise ValueError(
            f"this prior was built without {argument}: leave {name} out of the condition, or build it with "
            f"{argument}=..."
        )
