r"""Dynamic time warping: the distance of two sequences of frames, independent of their speeds.

.. math:: d(x, y) = \frac{1}{|\pi^*|} \sum_{(i, j) \in \pi^*} c(x_i, y_j), \qquad
          \pi^* = \arg\min_\pi \sum_{(i, j) \in \pi} c(x_i, y_j)

over paths :math:`\pi` from the first pair of frames to the last that advance by one frame in x, in y, or in both. Of
several cheapest paths the shortest counts, which makes the distance unique and symmetric.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

# A path is stored as one integer, with its cost above its length, so that the smallest integer is the cheapest path and
# the shortest of those. Costs are multiples of 2^-33 of the largest frame distance: sums of integers are exact in any
# order, so equal paths have equal costs.
_COST_BITS = 33
_LENGTH_BITS = 14
_NO_PATH = 2**62

_SAME = 1e-12  # relative to a squared length: the difference of equal frames in float64 due to rounding
_KL_FLOOR = 1e-6
_NUMBERS_AT_ONCE = 2**21  # 16 MB


@dataclass(frozen=True)
class FrameDistance:
    """A distance of frames.

    Arguments:
        prepare: converts all frames, (N, d) or (N,), to the form that `between` needs; returns them and the factor by
            which its distances must be multiplied.
        between: takes two batches of prepared sequences, (P, n, ...) and (P, m, ...); returns distances (P, n, m) in
            [0, 1].
        units: whether a frame is one integer instead of a vector.
    """

    prepare: Callable[[NDArray[Any]], tuple[NDArray[Any], float]]
    between: Callable[[NDArray[Any], NDArray[Any]], Floats]
    units: bool = False


def _directions(frames: NDArray[Any]) -> tuple[Floats, float]:
    frames = frames.astype(np.float64)
    # Divided by the largest value first, so that squares neither overflow nor vanish.
    frames /= _positive(np.abs(frames).max(-1, keepdims=True))
    return frames / _positive(np.linalg.norm(frames, axis=-1, keepdims=True)), 1.0


def _angle(x: Floats, y: Floats) -> Floats:
    cosine = x @ y.swapaxes(-1, -2)
    cosine = np.where(np.abs(cosine) > 1 - _SAME, np.sign(cosine), cosine)
    zero_x, zero_y = (x == 0).all(-1)[..., :, None], (y == 0).all(-1)[..., None, :]
    cosine = np.where(zero_x | zero_y, np.where(zero_x & zero_y, 1.0, -1.0), cosine)
    return np.arccos(cosine) / math.pi


def _centred(frames: NDArray[Any]) -> tuple[Floats, float]:
    # Distances don't depend on the mean; subtracting it preserves digits.
    frames = frames.astype(np.float64)
    frames -= frames.mean(0)
    largest = float(_positive(np.abs(frames).max()))
    frames /= largest
    farthest = 2 * float(_positive(np.linalg.norm(frames, axis=-1).max()))
    return frames / farthest, largest * farthest


def _straight(x: Floats, y: Floats) -> Floats:
    squares = (x**2).sum(-1)[..., :, None] + (y**2).sum(-1)[..., None, :]
    squared = squares - 2 * x @ y.swapaxes(-1, -2)
    return np.sqrt(np.where(squared > _SAME * squares, squared, 0.0))


def _probabilities(frames: NDArray[Any]) -> tuple[Floats, float]:
    p = frames.astype(np.float64)
    if p.min() < 0 or p.sum(-1).min() <= 0:
        raise ValueError(
            f"frames have values down to {p.min():.3g} and sums down to {p.sum(-1).min():.3g}; the distance 'kl' is "
            f"for probabilities, >= 0 with a sum > 0: pass such frames, or use 'cosine' or 'euclidean'"
        )
    p = p / p.sum(-1, keepdims=True) + _KL_FLOOR
    p /= p.sum(-1, keepdims=True)
    return np.concatenate((p, np.log(p)), -1), math.log(1 + 1 / _KL_FLOOR)


def _divergence(x: Floats, y: Floats) -> Floats:
    dim = x.shape[-1] // 2
    entropies = [(z[..., :dim] * z[..., dim:]).sum(-1) for z in (x, y)]
    crossed = x @ np.roll(y, dim, -1).swapaxes(-1, -2)
    twice = entropies[0][..., :, None] + entropies[1][..., None, :] - crossed
    return np.where(twice > _SAME, twice, 0.0) / (2 * math.log(1 + 1 / _KL_FLOOR))


def _units(frames: NDArray[Any]) -> tuple[NDArray[Any], float]:
    return frames, 1.0


def _unlike(x: NDArray[Any], y: NDArray[Any]) -> Floats:
    return np.where(x[..., :, None] == y[..., None, :], 0.0, 1.0)


FRAME_DISTANCES: Mapping[str, FrameDistance] = {
    "cosine": FrameDistance(_directions, _angle),
    "euclidean": FrameDistance(_centred, _straight),
    "kl": FrameDistance(_probabilities, _divergence),
    "identical": FrameDistance(_units, _unlike, units=True),
}
r"""The distances of frames by name.

- ``cosine``: the angle, :math:`\arccos(x^\top y / |x| |y|) / \pi`. A zero vector has the distance 0 to another zero
  vector and 1, the largest, to everything else.
- ``euclidean``: :math:`|x - y|`.
- ``kl``: :math:`(\mathrm{KL}(x \| y) + \mathrm{KL}(y \| x)) / 2`, of frames that are normalised to the sum 1, increased
  by 10^-6 in each value, and normalised again.
- ``identical``: for integers, 0 if they are equal and 1 if not: twice the cosine distance of one-hot vectors.

Vectors are compared in float64, and those closer than about a millionth of their length count as equal.
"""


def frame_distance(name: str) -> FrameDistance:
    """One of :data:`FRAME_DISTANCES`; raises an error that lists them if there is none of that name."""
    if name not in FRAME_DISTANCES:
        raise ValueError(f"the distance {name!r} is not known, expected one of {', '.join(FRAME_DISTANCES)}")
    return FRAME_DISTANCES[name]


class TokenDistances:
    """The distances of tokens, which are sequences of frames, by dynamic time warping.

    Arguments:
        frames: all frames, (N, d), or (N,) for units.
        starts: the first frame of each token, (tokens,).
        lengths: the number of frames of each token, >= 1, (tokens,).
        distance: the distance of frames.
    """

    def __init__(self, frames: NDArray[Any], starts: Integers, lengths: Integers, distance: FrameDistance) -> None:
        if 2 * lengths.max() > 2**_LENGTH_BITS:
            raise ValueError(
                f"a token has {lengths.max()} frames, more than the {2 ** (_LENGTH_BITS - 1)} that can be aligned; "
                f"cut it, or use a larger frame shift"
            )
        self.distance = distance
        self.frames, self.scale = distance.prepare(frames)
        self.starts = starts
        self.lengths = lengths

    @property
    def tolerance(self) -> float:
        """Distances that differ by at most this are equal: 2^-30, or about 10^-9, of the largest frame distance.

        It is larger than the rounding error of vectors, and smaller than the smallest difference of units.
        """
        return self.scale * 2.0**-30

    def between(self, first: Integers, second: Integers) -> Floats:  # (P,), (P,) -> (P,)
        """The distance of each pair of tokens, in memory that does not depend on the number of pairs."""
        # The distance is symmetric: with the longer token first, more pairs have the same shape.
        swap = self.lengths[first] < self.lengths[second]
        long, short = np.where(swap, second, first), np.where(swap, first, second)
        distances = np.empty(len(first))
        for chosen in self._chunks(self.lengths[long], self.lengths[short]):
            distances[chosen] = self._aligned(long[chosen], short[chosen])
        return distances

    def _chunks(self, rows: Integers, columns: Integers) -> Iterator[Integers]:  # (P,), (P,)
        """Yield groups of pairs with similar lengths, small enough for memory."""
        sizes = np.stack((rows, columns), 1) + 3 & ~3
        dim = math.prod(self.frames.shape[1:])
        shapes, members = np.unique(sizes, axis=0, return_inverse=True)
        order = np.argsort(members.ravel(), kind="stable")
        ends = np.cumsum(np.bincount(members.ravel(), minlength=len(shapes)))[:-1]
        for (n, m), chosen in zip(shapes.tolist(), np.split(order, ends), strict=True):
            many = max(1, _NUMBERS_AT_ONCE // (3 * n * m + (n + m) * dim))
            yield from (chosen[at : at + many] for at in range(0, len(chosen), many))

    def _aligned(self, first: Integers, second: Integers) -> Floats:  # (P,), (P,) -> (P,)
        costs = self.distance.between(self._padded(first), self._padded(second))
        cost, length = warp(costs, self.lengths[first], self.lengths[second])
        return self.scale * cost / length

    def _padded(self, tokens: Integers) -> NDArray[Any]:  # (P,) -> (P, n, d)
        lengths = self.lengths[tokens]
        # Values beyond the end of a token do not affect paths to its last frame.
        places = np.minimum(np.arange(lengths.max()), lengths[:, None] - 1)
        found: NDArray[Any] = self.frames[self.starts[tokens][:, None] + places]
        return found


def warp(
    costs: Floats, rows: Integers, columns: Integers
) -> tuple[Floats, Integers]:  # (P, n, m), (P,), (P,) -> (P,), (P,)
    r"""The cost and the length of the best path through each matrix of costs in [0, 1].

    .. math:: D_{ij} = c_{ij} + \min(D_{i-1,j},\, D_{i,j-1},\, D_{i-1,j-1})

    for all pairs at once, one anti-diagonal :math:`i + j` after the other. Costs are rounded to multiples of 2^-33.

    Arguments:
        costs: a matrix for each pair; its upper left part is used.
        rows: number of rows of each matrix that are used, >= 1.
        columns: number of columns of each matrix that are used, >= 1.
    """
    pairs, n, m = costs.shape
    table = np.full((n + 1, m + 1, pairs), _NO_PATH, dtype=np.int64)
    table[0, 0] = 0
    steps = np.rint(costs * 2.0**_COST_BITS).astype(np.int64)
    table[1:, 1:] = (steps.transpose(1, 2, 0) << _LENGTH_BITS) + 1
    # In the flat table, the cells of an anti-diagonal are m apart.
    flat = table.reshape(-1, pairs)
    for diagonal in range(2, n + m + 1):
        low, high = max(1, diagonal - m), min(n, diagonal - 1)
        here = slice(diagonal + low * m, diagonal + high * m + 1, m)
        before = [slice(here.start - back, here.stop - back, m) for back in (1, m + 1, m + 2)]
        best = np.minimum(flat[before[0]], flat[before[1]])
        flat[here] += np.minimum(best, flat[before[2]], out=best)
    ends = table[rows, columns, np.arange(pairs)]
    return (ends >> _LENGTH_BITS) / 2.0**_COST_BITS, ends & 2**_LENGTH_BITS - 1


def _positive(values: Floats) -> Floats:
    return np.where(values > 0, values, 1.0)
