"""An order in which near things are near, from their distances."""

import numpy as np
from numpy.typing import NDArray


def near_order(distances: NDArray[np.float64]) -> NDArray[np.int64]:  # (n, n) -> (n,)
    """The leaves of a tree that joins the nearest clusters first, by the mean distance between their members.

    Of the ways to draw that tree, one is chosen in which the ends that meet are the nearest. Takes time and memory of
    the order of n^2: a chain of nearest neighbours ends where two are each other's nearest, and these are joined.
    """
    apart = np.array(distances, dtype=np.float64)  # a copy; rows and columns of joined clusters are worked in
    np.fill_diagonal(apart, np.inf)
    leaves = {item: [item] for item in range(len(apart))}
    chain: list[int] = []
    while len(leaves) > 1:
        if not chain:
            chain.append(next(iter(leaves)))
        here = chain[-1]
        nearest = int(apart[here].argmin())
        # Among equals the one before in the chain is taken, or the chain would run in circles.
        if len(chain) > 1 and apart[here, chain[-2]] <= apart[here, nearest]:
            one, other = chain.pop(), chain.pop()
            _join(apart, one, other, len(leaves[one]), len(leaves[other]))
            leaves[one] = _end_to_end(leaves[one], leaves.pop(other), distances)
        else:
            chain.append(nearest)
    return np.array(next(iter(leaves.values()), []), dtype=np.int64)


def _join(apart: NDArray[np.float64], one: int, other: int, size: int, other_size: int) -> None:
    """Make one cluster of two: distances from it are means over all members."""
    mean = (size * apart[one] + other_size * apart[other]) / (size + other_size)
    mean[[one, other]] = np.inf
    apart[one], apart[:, one] = mean, mean
    apart[other], apart[:, other] = np.inf, np.inf


def _end_to_end(one: list[int], other: list[int], distances: NDArray[np.float64]) -> list[int]:
    """Two rows as one, each turned so that the ends that meet are as near as they can be."""
    ways = [(left, right) for left in (one, one[::-1]) for right in (other, other[::-1])]
    left, right = min(ways, key=lambda way: float(distances[way[0][-1], way[1][0]]))
    return left + right
