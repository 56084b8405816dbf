"""An order in which similar items are next to each other, from their distances."""

import numpy as np
from numpy.typing import NDArray


def near_order(distances: NDArray[np.float64]) -> NDArray[np.int64]:  # (n, n) -> (n,)
    """The order of the leaves in average-linkage clustering.

    Of all orders of that tree, one is chosen in which the ends that meet are near. Time and memory are O(n^2): the
    algorithm follows a chain of nearest neighbours until two are each other's nearest, and joins these.
    """
    apart = np.array(distances, dtype=np.float64)  # a copy, because rows and columns of joined clusters are modified
    np.fill_diagonal(apart, np.inf)
    leaves = {item: [item] for item in range(len(apart))}
    chain: list[int] = []
    while len(leaves) > 1:
        if not chain:
            chain.append(next(iter(leaves)))
        here = chain[-1]
        nearest = int(apart[here].argmin())
        # Among equals, the previous cluster of the chain is taken; otherwise the chain could run in circles.
        if len(chain) > 1 and apart[here, chain[-2]] <= apart[here, nearest]:
            one, other = chain.pop(), chain.pop()
            _join(apart, one, other, len(leaves[one]), len(leaves[other]))
            leaves[one] = _end_to_end(leaves[one], leaves.pop(other), distances)
        else:
            chain.append(nearest)
    return np.array(next(iter(leaves.values()), []), dtype=np.int64)


def _join(apart: NDArray[np.float64], one: int, other: int, size: int, other_size: int) -> None:
    """Join two clusters: distances from the result are means over all members."""
    mean = (size * apart[one] + other_size * apart[other]) / (size + other_size)
    mean[[one, other]] = np.inf
    apart[one], apart[:, one] = mean, mean
    apart[other], apart[:, other] = np.inf, np.inf


def _end_to_end(one: list[int], other: list[int], distances: NDArray[np.float64]) -> list[int]:
    """Two rows joined into one, each turned so that the ends that meet are as near as possible."""
    ways = [(left, right) for left in (one, one[::-1]) for right in (other, other[::-1])]
    left, right = min(ways, key=lambda way: float(distances[way[0][-1], way[1][0]]))
    return left + right
