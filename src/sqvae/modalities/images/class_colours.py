"""Colours for classes that have none of their own, and for pixels without a class."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

TONES = 20
"""Of each channel, that colours are chosen from: more colours than there may be classes."""

DARKEST, LIGHTEST = 25, 95
"""On the scale from 0 to 100: neither black nor white, which leaves these for pixels without a class."""

WITHOUT_CLASS = ((128, 128, 128), (255, 255, 255), (0, 0, 0), (192, 192, 192), (64, 64, 64))
"""Colours for pixels without a class, the first that can be told from those of the classes."""

TOLD_APART = 20
"""As far apart in CIELAB are colours that no one takes for each other."""

FIRST = (45, 105, 170)

_TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


@cache
def class_colours(number: int) -> tuple[tuple[int, int, int], ...]:
    """Colours that are easy to tell apart: each is, to the eye, as far as can be from all before it."""
    tones = np.linspace(0, 255, TONES).round()
    every = np.array(np.meshgrid(tones, tones, tones)).reshape(3, -1).T
    seen = to_lab(every)
    fit = (seen[:, 0] >= DARKEST) & (seen[:, 0] <= LIGHTEST)
    every, seen = every[fit], seen[fit]
    chosen = [np.array(FIRST, dtype=float)]
    distances = np.full(len(every), np.inf)
    while len(chosen) < number:
        distances = np.minimum(distances, np.linalg.norm(seen - to_lab(chosen[-1]), axis=-1))
        chosen.append(every[distances.argmax()])
    return tuple((int(red), int(green), int(blue)) for red, green, blue in chosen[:number])


@cache
def unlike(colours: tuple[tuple[int, int, int], ...]) -> tuple[int, int, int]:
    """A grey for pixels without a class, which is unlike those of all classes as far as that can be."""
    taken = to_lab(np.array(colours, dtype=float))
    greys = to_lab(np.array(WITHOUT_CLASS, dtype=float))
    distances = np.linalg.norm(greys[:, None] - taken, axis=-1).min(1)
    return WITHOUT_CLASS[int(np.minimum(distances, TOLD_APART).argmax())]


def to_lab(colours: NDArray[np.float64]) -> NDArray[np.float64]:  # (..., 3), 0 to 255 -> (..., 3)
    r"""sRGB as CIELAB, where equal distances look about equal.

    .. math:: L = 116 f(Y) - 16, \quad a = 500 (f(X) - f(Y)), \quad b = 200 (f(Y) - f(Z))

    with X, Y and Z in units of white, and f the cube root, with a straight line where it is dark.
    """
    shares = colours / 255
    linear = np.where(shares > 0.04045, ((shares + 0.055) / 1.055) ** 2.4, shares / 12.92)
    xyz = linear @ _TO_XYZ.T / _TO_XYZ.sum(-1)
    x, y, z = np.moveaxis(np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29), -1, 0)
    return np.stack((116 * y - 16, 500 * (x - y), 200 * (y - z)), -1)
