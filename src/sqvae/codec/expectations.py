"""The probabilities of codes that encoder and decoder share, for entropy coding.

- `Adaptive`: the counts of codes in the file so far. It needs nothing else, and adapts while it runs.
- `Histogram`: the counts of codes elsewhere, for example in a training set. Both sides must have it.
- `Learned`: an autoregressive prior. Both sides must have it.

The codes of several images are coded together, position by position: the first of every image, then the second of every
image. So a decoder evaluates a prior once per position for all of them.
"""

import copy
import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sqvae.codec.frequencies import MOST_CODES, TOTAL, WEIGHTS, Integers, counted, edges, edges_of, rounded
from sqvae.codec.range_coding import RangeSource
from sqvae.distributions.checks import check_size
from sqvae.training import fingerprint

Flags = NDArray[np.bool_]
Shape = tuple[int, ...]

_AT_ONCE = 1 << 24
"""Number of logits that an encoder gets from a prior at once: 128 MiB."""

_IN_CACHE = 1 << 20
"""Number of logits that are converted to intervals at once."""


class Intervals(NamedTuple):
    """Codes as intervals for a range coder, in the order of coding: (positions, batch)."""

    left: Integers
    """The start of the interval of each code, within 0 ... `TOTAL`."""
    right: Integers
    """The end of the interval."""
    uncertain: Flags
    """Positions where another machine may compute other probabilities, so that they were not used."""
    bits: float
    """Number of bits of an ideal coder: the sum of -log2 of the probability of every code."""


class Expectation(ABC):
    """Probabilities of codes, for an encoder that knows all codes and a decoder that gets them one by one.

    `seen` contains the counts of codes earlier in the file, (K,).
    """

    codebook_size: int
    kind: ClassVar[int]
    """Its number in files."""
    description: ClassVar[str]

    @property
    @abstractmethod
    def identity(self) -> str:
        """A text that must be the same on both sides."""

    @abstractmethod
    def intervals(self, codes: Tensor, seen: Integers) -> Intervals:  # (batch, h, w), (K,)
        """The intervals of these codes."""

    @abstractmethod
    def decode(
        self, source: RangeSource, batch: int, shape: Shape, uncertain: Flags, seen: Integers
    ) -> Tensor:  # (positions, batch), (K,) -> (batch, *shape)
        """The codes that a source encodes."""


class Adaptive(Expectation):
    r"""The probability of a code is its count in the file so far plus one half, normalised.

    .. math:: P(k) = \frac{n_k + 1/2}{\sum_j n_j + K/2}

    Counts are updated whenever their sum has grown by a 32nd.

    Arguments:
        codebook_size: K.
    """

    kind = 0
    description = "the counts of its own codes"

    def __init__(self, codebook_size: int) -> None:
        self.codebook_size = _checked_size(codebook_size)

    @property
    def identity(self) -> str:
        return ""

    def intervals(self, codes: Tensor, seen: Integers) -> Intervals:
        order = _in_order(codes)
        left, right = np.empty_like(order.ravel()), np.empty_like(order.ravel())
        counts = seen.copy()
        for start, end in _blocks(order.size, int(seen.sum())):
            own = order.ravel()[start:end]
            table = edges(counted(counts))
            left[start:end], right[start:end] = table[own], table[own + 1]
            counts += np.bincount(own, minlength=self.codebook_size)
        return _exact(left.reshape(order.shape), right.reshape(order.shape))

    def decode(self, source: RangeSource, batch: int, shape: Shape, uncertain: Flags, seen: Integers) -> Tensor:
        codes = np.empty(math.prod(shape) * batch, dtype=np.int64)
        counts = seen.copy()
        for start, end in _blocks(len(codes), int(seen.sum())):
            codes[start:end] = source.take_alike(edges(counted(counts)), end - start)
            counts += np.bincount(codes[start:end], minlength=self.codebook_size)
        return _as_pictures(codes, batch, shape)


class AdaptiveCost:
    """The size of codes with :class:`Adaptive`, as a baseline for another expectation.

    Arguments:
        codebook_size: K.
    """

    def __init__(self, codebook_size: int) -> None:
        self.bits = 0.0
        self._expectation = Adaptive(codebook_size)
        self._seen = np.zeros(codebook_size, dtype=np.int64)

    def add(self, codes: Tensor) -> None:  # (batch, h, w)
        """Add some codes, in the order of the file."""
        codes = codes.detach().cpu().long()
        self.bits += self._expectation.intervals(codes, self._seen).bits
        self._seen += np.bincount(codes.flatten().numpy(), minlength=len(self._seen))


class Histogram(Expectation):
    """The probability of a code is its count elsewhere plus one half, normalised.

    Arguments:
        counts: (K,), the counts of codes: integers.
    """

    kind = 1
    description = "a known histogram"

    def __init__(self, counts: Tensor) -> None:
        if counts.ndim != 1 or counts.is_floating_point() or counts.is_complex() or bool((counts < 0).any()):
            raise ValueError(
                f"a histogram must be non-negative integers, one per code; got {counts.dtype} of shape "
                f"{tuple(counts.shape)}. Pass counts, not shares"
            )
        self.codebook_size = _checked_size(len(counts))
        self.edges = edges(counted(counts.cpu().numpy().astype(np.int64)))

    @property
    def identity(self) -> str:
        return hashlib.sha256(self.edges.astype("<i8").tobytes()).hexdigest()

    def intervals(self, codes: Tensor, seen: Integers) -> Intervals:
        order = _in_order(codes)
        return _exact(self.edges[order], self.edges[order + 1])

    def decode(self, source: RangeSource, batch: int, shape: Shape, uncertain: Flags, seen: Integers) -> Tensor:
        return _as_pictures(source.take_alike(self.edges, math.prod(shape) * batch), batch, shape)


class Draft(Protocol):
    """The evaluation of a prior, position by position."""

    def next_logits(self) -> Tensor:
        """(batch, K), the logits at the next position."""

    def put(self, codes: Tensor) -> None:
        """(batch,): sets the codes at that position."""


class Prior(Protocol):
    """What compression needs of an autoregressive prior, which is a module."""

    codebook_size: int

    def logits(self, codes: Tensor) -> Tensor:
        """(batch, h, w) -> (batch, h, w, K): each position depends on the codes before it."""

    def start(self, batch: int, shape: Shape) -> Draft:
        """Start an evaluation for codes that are not known yet."""

    def state_dict(self) -> dict[str, Any]:
        """The weights, from which the prior's fingerprint is computed."""

    def parameters(self) -> Iterator[Any]:
        """The parameters, which determine the device."""

    def double(self: "Own") -> "Own":
        """Convert to float64."""

    def eval(self: "Own") -> "Own":
        """Switch to evaluation mode."""


Own = TypeVar("Own", bound=Prior)


class Learned(Expectation):
    """The probability of a code is that of an autoregressive prior, given the codes before it.

    The prior is copied and evaluated in float64, at once for encoding and step by step for decoding. Positions whose
    probabilities are too close to a rounding boundary (see `frequencies`) are coded with the histogram, or uniformly.

    Arguments:
        prior: a prior that was trained on such codes.
        histogram: a histogram of such codes; both sides must have it, or neither.
        batch_size: number of images that the prior evaluates at once. It affects only speed and memory.
    """

    kind = 2
    description = "a learned prior"

    def __init__(self, prior: Prior, histogram: Histogram | None = None, *, batch_size: int = 64) -> None:
        check_size(batch_size, "batch_size")
        self.codebook_size = _checked_size(prior.codebook_size)
        self.fallback = histogram or Histogram(torch.zeros(self.codebook_size, dtype=torch.int64))
        if self.fallback.codebook_size != self.codebook_size:
            raise ValueError(
                f"prior and histogram must have the same number of codes: got {self.codebook_size} codes in the prior "
                f"and {self.fallback.codebook_size} in the histogram"
            )
        self.batch_size = batch_size
        self._identity = f"{fingerprint(prior.state_dict())} {self.fallback.identity}"
        self.prior = copy.deepcopy(prior).double().eval()
        self._device = next(self.prior.parameters(), torch.empty(0)).device

    @property
    def identity(self) -> str:
        return self._identity

    def intervals(self, codes: Tensor, seen: Integers) -> Intervals:
        room = _AT_ONCE // (codes[0].numel() * self.codebook_size)
        parts = [self._intervals(part) for part in codes.split(max(1, min(self.batch_size, room)))]
        left, right, uncertain, bits = zip(*parts, strict=True)
        return Intervals(np.hstack(left), np.hstack(right), np.hstack(uncertain), sum(bits))

    @torch.inference_mode()
    def _intervals(self, codes: Tensor) -> Intervals:
        shape = (len(codes), codes[0].numel())
        logits = self._checked(self.prior.logits(codes.to(self._device)), tuple(codes.shape)).flatten(0, -2)
        rows = max(1, _IN_CACHE // self.codebook_size)
        parts = [self._shares(*part) for part in zip(codes.flatten().split(rows), logits.split(rows), strict=True)]
        left, right, uncertain, bits = zip(*parts, strict=True)
        order = [np.concatenate(column).reshape(shape).T for column in (left, right, uncertain)]
        return Intervals(order[0], order[1], order[2], sum(bits))

    def _shares(self, codes: Tensor, logits: Tensor) -> Intervals:  # (N,), (N, K)
        steps, close = rounded(logits)
        own, uncertain = codes.cpu().numpy(), close.cpu().numpy()
        left, right = edges_of(own, WEIGHTS[steps.cpu().numpy()])
        unsure = own[uncertain]
        left[uncertain], right[uncertain] = self.fallback.edges[unsure], self.fallback.edges[unsure + 1]
        nats = torch.nn.functional.cross_entropy(logits, codes.to(self._device), reduction="sum")
        return Intervals(left, right, uncertain, float(nats) / math.log(2))

    @torch.inference_mode()
    def decode(self, source: RangeSource, batch: int, shape: Shape, uncertain: Flags, seen: Integers) -> Tensor:
        sizes = [min(self.batch_size, batch - start) for start in range(0, batch, self.batch_size)]
        drafts = [self.prior.start(size, shape) for size in sizes]
        codes = np.empty(uncertain.shape, dtype=np.int64)
        for own, unsure in zip(codes, uncertain, strict=True):
            logits = self._checked(torch.cat([draft.next_logits() for draft in drafts]), (batch,))
            own[:] = np.concatenate(list(self._taken(source, logits, unsure)))
            settled = torch.from_numpy(own).to(self._device).split(sizes)
            for draft, part in zip(drafts, settled, strict=True):
                draft.put(part)
        return _as_pictures(codes, batch, shape)

    def _taken(self, source: RangeSource, logits: Tensor, uncertain: Flags) -> Iterator[Integers]:  # (N, K), (N,)
        rows = max(1, _IN_CACHE // self.codebook_size)
        for start, part in zip(range(0, len(logits), rows), logits.split(rows), strict=True):
            table = edges(WEIGHTS[rounded(part)[0].cpu().numpy()])
            table[uncertain[start : start + rows]] = self.fallback.edges
            yield source.take(table)

    def _checked(self, logits: Tensor, shape: Shape) -> Tensor:
        expected = (*shape, self.codebook_size)
        if tuple(logits.shape) != expected:
            raise ValueError(f"the prior's logits must have the shape {expected}, got {tuple(logits.shape)}")
        return logits


def _checked_size(size: int) -> int:
    if not 1 <= size <= MOST_CODES:
        raise ValueError(f"a codebook to compress with must have 1 to {MOST_CODES:,} codes, got {size:,}")
    return size


def _in_order(codes: Tensor) -> Integers:  # (batch, h, w) -> (positions, batch)
    order: Integers = codes.cpu().flatten(1).T.numpy()
    return np.ascontiguousarray(order, dtype=np.int64)


def _as_pictures(order: Integers, batch: int, shape: Shape) -> Tensor:  # (positions, batch) -> (batch, *shape)
    return torch.from_numpy(np.ascontiguousarray(order.reshape(-1, batch).T)).reshape(batch, *shape)


def _exact(left: Integers, right: Integers) -> Intervals:
    return Intervals(left, right, np.zeros(left.shape, dtype=np.bool_), -float(np.log2((right - left) / TOTAL).sum()))


def _blocks(count: int, seen: int) -> Iterator[tuple[int, int]]:
    start = 0
    while start < count:
        end = min(count, start + 1 + (seen + start) // 32)
        yield start, end
        start = end
