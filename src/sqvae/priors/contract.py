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

LAYOUTS = {1: "(batch, n)", 2: "(batch, h, w)"}


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

    Arguments:
        codebook_size: the number of codes, :math:`K`.
        channels: the number of channels of the network's layers.
        ndim: 2 for maps (batch, h, w), 1 for sequences (batch, n). Both may have any size.
        classes: the number of classes of a class-conditional prior; None for no classes.
        context: the codebook size of the next coarser level that the prior is conditioned on; None for none.
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
        """The logits at each position, which depend on the codes before it only."""
        check_indices(codes, self.codebook_size, "codes", "; is this the prior of another tokenizer?")
        if codes.ndim != self.ndim + 1:
            raise ValueError(
                f"this prior takes codes as {LAYOUTS[self.ndim]}, got shape {tuple(codes.shape)}; build it with "
                "ndim=1 for sequences, ndim=2 for maps"
            )
        height, width = self._map_shape(codes.shape[1:])
        known = self._known(condition, codes.shape[0], (height, width))
        maps = codes.long().reshape(-1, height, width)
        return self._logits(maps, known).reshape(*codes.shape, self.codebook_size)

    @torch.inference_mode()
    def start(self, batch: int, shape: Sequence[int], condition: Condition | None = None) -> "Draft":
        """A draft that computes the same logits position by position, at the total cost of about one evaluation.

        There is no dropout, as in ``eval()``. The weights must not change until the draft is done.
        """
        check_size(batch, "batch")
        known = self._known(condition, batch, self._map_shape(shape))
        return self._start(batch, shape, known)

    @abstractmethod
    def _logits(self, codes: Tensor, known: Tensor | None) -> Tensor:  # (batch, h, w) -> (batch, h, w, K)
        """The logits of maps, given the features of the condition: (batch, h, w, channels), or (batch, 1, 1,
        channels)."""

    @abstractmethod
    def _start(self, batch: int, shape: Sequence[int], known: Tensor | None) -> "Draft":
        """A draft without dropout, given the features of the condition."""

    def _map_shape(self, shape: Sequence[int]) -> tuple[int, int]:
        """The shape of a map. A sequence is a map of one row."""
        if len(shape) != self.ndim or min(shape) < 1:
            raise ValueError(
                f"this prior takes codes as {LAYOUTS[self.ndim]}, each size at least 1; got the shape {tuple(shape)} "
                "for each example"
            )
        return (1, shape[0]) if self.ndim == 1 else (shape[0], shape[1])

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
        if codes.ndim != self.ndim + 1 or codes.shape[0] != batch:
            raise ValueError(
                f"the condition's codes must be {LAYOUTS[self.ndim]} with batch = {batch}, got shape "
                f"{tuple(codes.shape)}"
            )
        coarse = self._map_shape(codes.shape[1:])
        if any(fine % size for fine, size in zip(shape, coarse, strict=True)):
            raise ValueError(
                "each of the condition's codes must cover the same whole number of positions, but "
                f"{'x'.join(map(str, codes.shape[1:]))} codes do not divide "
                f"{'x'.join(map(str, shape[2 - self.ndim :]))} positions: use codes of the coarser level that belongs "
                "to this shape"
            )
        return codes.long().reshape(batch, *coarse)


class Draft(ABC):
    """Codes that are set one after the other, in raster order.

    All computations run in torch's inference mode: the result of :meth:`next_logits` has no gradient.

    Arguments:
        batch: the number of examples that are drafted in parallel.
        shape: the shape of each example.
        codebook_size: the number of codes, :math:`K`.
        device: the device of the codes.
    """

    def __init__(self, batch: int, shape: Sequence[int], codebook_size: int, device: torch.device) -> None:
        self.batch = batch
        self.shape = tuple(shape)
        self.codebook_size = codebook_size
        self.positions = math.prod(shape)
        self.position = 0
        """The index of the next position. The draft is complete when it equals the number of positions."""
        self._settled = torch.zeros(batch, self.positions, dtype=torch.int64, device=device)
        self._next: Tensor | None = None

    @property
    def codes(self) -> Tensor:  # -> (batch, *shape)
        """The codes that are set so far, and 0 at all other positions."""
        return self._settled.view(self.batch, *self.shape).clone()

    @torch.inference_mode()
    def next_logits(self) -> Tensor:  # -> (batch, K)
        """The logits at the next position, given all codes before it. A second call before :meth:`put` costs
        nothing."""
        if self.position == self.positions:
            raise ValueError(f"all {self.positions} positions are set: start another draft")
        if self._next is None:
            self._next = self._evaluate()
        return self._next

    @torch.inference_mode()
    def put(self, codes: Tensor) -> None:  # (batch,)
        """Set the code at the next position, and move on."""
        self.next_logits()  # this also updates the caches that later positions need
        check_indices(codes, self.codebook_size, "codes")
        if codes.shape != (self.batch,):
            raise ValueError(f"codes must be (batch,) = ({self.batch},), got shape {tuple(codes.shape)}")
        self._settled[:, self.position] = codes
        self.position += 1
        self._next = None

    @abstractmethod
    def _evaluate(self) -> Tensor:  # -> (batch, K)
        """The logits at the next position. It is called once for each position, in order."""


class RecomputedDraft(Draft):
    """A draft without caches, which evaluates the whole map for each position: the reference for faster drafts."""

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
            "each example"
        )
    if given is not None and asked is None:
        raise ValueError(
            f"this prior was built without {argument}: leave {name} out of the condition, or build it with "
            f"{argument}=..."
        )
