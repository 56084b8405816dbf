"""The contract that every prior keeps: all positions at once, or one after the other."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from sqvae.distributions.checks import check_indices, check_size
from sqvae.networks.modes import evaluating
from sqvae.priors.conditioning import Conditioning

LAYOUTS = {1: "(batch, n)", 2: "(batch, h, w)"}


@dataclass(frozen=True)
class Condition:
    """What is known of each example before its first code, each part only for priors that were built for it."""

    classes: Tensor | None = None
    """(batch,): the class of each example."""
    codes: Tensor | None = None
    """``(batch, *coarse_shape)``: the codes of the level above, each of which covers an equal block of positions."""

    def to(self, device: torch.device) -> "Condition":
        """The same on another device."""
        return Condition(
            None if self.classes is None else self.classes.to(device),
            None if self.codes is None else self.codes.to(device),
        )

    def __getitem__(self, examples: slice | Tensor) -> "Condition":
        """Of some of the examples."""
        return Condition(
            None if self.classes is None else self.classes[examples],
            None if self.codes is None else self.codes[examples],
        )


class Prior(nn.Module, ABC):
    r"""A distribution over maps or sequences of codes, as a product over positions in raster order.

    .. math:: p(c \mid y) = \prod_i p(c_i \mid c_{<i}, y), \qquad p(c_i = k \mid c_{<i}, y) = \mathrm{softmax}_k(l_i)

    The last axis is the fastest. A sequence is a map of one row to what inherits from this.

    Arguments:
        codebook_size: the number of codes, :math:`K`.
        channels: the width of the network.
        ndim: 2 for maps (batch, h, w), 1 for sequences (batch, n). Either may have any size.
        classes: how many classes a condition's examples may have; None: it has no classes.
        context: how many codes the level above has; None: there is none.
    """

    def __init__(
        self,
        codebook_size: int,
        channels: int,
        *,
        ndim: int = 2,
        classes: int | None = None,
        context: int | None = None,
    ) -> None:
        super().__init__()
        check_size(codebook_size, "codebook_size")
        check_size(channels, "channels")
        if ndim not in LAYOUTS:
            raise ValueError(f"ndim must be 1 for sequences or 2 for maps, got {ndim!r}")
        self.codebook_size = codebook_size
        self.channels = channels
        self.ndim = ndim
        self.classes = classes
        self.context = context
        self.embedding = nn.Embedding(codebook_size, channels)
        self.conditioning = Conditioning(channels, rows=ndim > 1, classes=classes, context=context)

    def forward(self, codes: Tensor, condition: Condition | None = None) -> Tensor:
        """See :meth:`logits`."""
        return self.logits(codes, condition)

    def logits(self, codes: Tensor, condition: Condition | None = None) -> Tensor:  # (batch, *shape) -> (..., K)
        """At each position, from the codes before it only: what stands at the position itself makes no difference."""
        check_indices(codes, self.codebook_size, "codes", "; is this the prior of another tokenizer?")
        if codes.ndim != self.ndim + 1:
            raise ValueError(
                f"this prior takes codes as {LAYOUTS[self.ndim]}, got shape {tuple(codes.shape)}; "
                f"build it with ndim=1 for sequences, ndim=2 for maps"
            )
        height, width = self._map_shape(codes.shape[1:])
        known = self._known(condition, codes.shape[0], (height, width))
        maps = codes.long().reshape(-1, height, width)
        return self._logits(maps, known).reshape(*codes.shape, self.codebook_size)

    @torch.inference_mode()
    def start(self, batch: int, shape: Sequence[int], condition: Condition | None = None) -> "Draft":
        """The same logits position by position, at the cost of one evaluation for all of them.

        Nothing is dropped, as in ``eval()``. The weights must stay as they are until the draft is done.
        """
        check_size(batch, "batch")
        known = self._known(condition, batch, self._map_shape(shape))
        return self._start(batch, shape, known)

    @abstractmethod
    def _logits(self, codes: Tensor, known: Tensor | None) -> Tensor:  # (batch, h, w) -> (batch, h, w, K)
        """The logits of maps, given what the condition tells: (batch, h, w, channels), or (batch, 1, 1, channels)."""

    @abstractmethod
    def _start(self, batch: int, shape: Sequence[int], known: Tensor | None) -> "Draft":
        """A draft, given what the condition tells, that drops nothing."""

    def _map_shape(self, shape: Sequence[int]) -> tuple[int, int]:
        """A shape as that of a map: a sequence is one row."""
        if len(shape) != self.ndim or min(shape) < 1:
            raise ValueError(
                f"this prior takes codes as {LAYOUTS[self.ndim]}, each size at least 1; got the shape {tuple(shape)} "
                f"for each example"
            )
        return (1, shape[0]) if self.ndim == 1 else (shape[0], shape[1])

    def _known(self, condition: Condition | None, batch: int, shape: tuple[int, int]) -> Tensor | None:
        """What a condition tells each position of a map, or all of them alike."""
        classes, codes = (None, None) if condition is None else (condition.classes, condition.codes)
        _check_asked(classes, self.classes, "classes")
        _check_asked(codes, self.context, "codes")
        if classes is not None and self.classes is not None:
            check_indices(classes, self.classes, "the condition's classes")
            if classes.shape != (batch,):
                raise ValueError(
                    f"the condition's classes must be (batch,) = ({batch},), one for each example; "
                    f"got shape {tuple(classes.shape)}"
                )
        if codes is not None and self.context is not None:
            check_indices(codes, self.context, "the condition's codes", "; are they of another level?")
            codes = self._coarse_map(codes, batch, shape)
        known: Tensor | None = self.conditioning(classes, codes, shape)
        return known

    def _coarse_map(self, codes: Tensor, batch: int, shape: tuple[int, int]) -> Tensor:  # -> (batch, rows, columns)
        if codes.ndim != self.ndim + 1 or codes.shape[0] != batch:
            raise ValueError(
                f"the condition's codes must be {LAYOUTS[self.ndim]} with batch = {batch}, got shape "
                f"{tuple(codes.shape)}"
            )
        coarse = self._map_shape(codes.shape[1:])
        if any(fine % size for fine, size in zip(shape, coarse, strict=True)):
            raise ValueError(
                f"each of the condition's codes must cover the same whole number of positions, but "
                f"{'x'.join(map(str, codes.shape[1:]))} codes can't divide "
                f"{'x'.join(map(str, shape[2 - self.ndim :]))} positions: take the level above "
                f"that belongs to this shape"
            )
        return codes.long().reshape(batch, *coarse)


class Draft(ABC):
    """Codes that are settled one after the other, in raster order.

    Everything runs in torch's inference mode: what :meth:`next_logits` returns can't enter a graph of gradients.

    Arguments:
        batch: how many examples are drafted side by side.
        shape: of each.
        codebook_size: the number of codes, :math:`K`.
        device: of the codes.
    """

    def __init__(self, batch: int, shape: Sequence[int], codebook_size: int, device: torch.device) -> None:
        self.batch = batch
        self.shape = tuple(shape)
        self.codebook_size = codebook_size
        self.positions = math.prod(shape)
        self.position = 0
        """The one that comes next; all are settled once it has reached the number of positions."""
        self._settled = torch.zeros(batch, self.positions, dtype=torch.int64, device=device)
        self._next: Tensor | None = None

    @property
    def codes(self) -> Tensor:  # -> (batch, *shape)
        """Those that are settled, and 0 for the others."""
        return self._settled.view(self.batch, *self.shape).clone()

    @torch.inference_mode()
    def next_logits(self) -> Tensor:  # -> (batch, K)
        """At the next position, given all that are settled. Asked again before :meth:`put`, it costs nothing."""
        if self.position == self.positions:
            raise ValueError(f"all {self.positions} positions are settled: start another draft")
        if self._next is None:
            self._next = self._evaluate()
        return self._next

    @torch.inference_mode()
    def put(self, codes: Tensor) -> None:  # (batch,)
        """Settle the next position, and move on."""
        self.next_logits()  # what later positions remember of this one comes with its logits
        check_indices(codes, self.codebook_size, "codes")
        if codes.shape != (self.batch,):
            raise ValueError(f"codes must be (batch,) = ({self.batch},), got shape {tuple(codes.shape)}")
        self._settled[:, self.position] = codes
        self.position += 1
        self._next = None

    @abstractmethod
    def _evaluate(self) -> Tensor:  # -> (batch, K)
        """The logits at the next position. It is called once for each, in order."""


class RecomputedDraft(Draft):
    """Without any memory: every position evaluates the whole map anew. What faster drafts are measured against."""

    @torch.inference_mode()
    def __init__(self, prior: Prior, batch: int, shape: Sequence[int], condition: Condition | None = None) -> None:
        super().__init__(batch, shape, prior.codebook_size, prior.embedding.weight.device)
        self._prior = prior
        self._condition = condition

    def _evaluate(self) -> Tensor:
        with evaluating(self._prior):
            logits = self._prior.logits(self._settled.view(self.batch, *self.shape), self._condition)
        return logits.flatten(1, -2)[:, self.position]


def _check_asked(given: Tensor | None, asked: int | None, name: str) -> None:
    argument = {"classes": "classes", "codes": "context"}[name]
    if given is None and asked is not None:
        raise ValueError(
            f"this prior was built with {argument}={asked}: pass condition=Condition({name}=...) with one entry for "
            f"each example"
        )
    if given is not None and asked is None:
        raise ValueError(
            f"this prior was built without {argument}: leave {name} out of the condition, or build it with "
            f"{argument}=..."
        )
