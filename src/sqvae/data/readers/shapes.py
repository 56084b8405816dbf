"""Pictures that are made up: enough to see that everything works, with nothing to download."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sqvae.data.collection import Block, File, Found, Part, Rows
from sqvae.data.preprocessing import Header

_SIDE = 64
_NUMBERS: dict[Part, int] = {"train": 512, "validation": 64, "test": 64}


def open_shapes() -> Found:
    """Discs and boxes of random colours, places and sizes before a slope of colour."""
    return _found(_picture, grey=False)


def open_shape_maps() -> Found:
    """Label maps of the same: what is no shape is 0, discs are 1 and boxes are 2."""
    return _found(_label_map, grey=True)


def _found(make: Callable[[np.random.Generator], NDArray[np.uint8]], *, grey: bool) -> Found:
    source = File("shapes", Path(__file__))  # what it says decides the pictures

    def part(name: Part, seed: int) -> Rows:
        def rows() -> Iterator[NDArray[np.uint8]]:
            random = np.random.default_rng(seed)
            return (make(random) for _ in range(_NUMBERS[name]))

        return Rows(lambda: [Block(name, lambda: _NUMBERS[name], rows)], [source], Header(_SIDE, _SIDE, grey=grey))

    return Found({name: part(name, seed) for seed, name in enumerate(_NUMBERS)})


def _picture(random: np.random.Generator) -> NDArray[np.uint8]:  # -> (H, W, 3)
    down, right = _places()
    slope = (down * random.uniform(-1, 1) + right * random.uniform(-1, 1))[..., None]
    pixels = random.uniform(60, 200, 3) + slope * random.uniform(20, 90, 3)
    for _ in range(random.integers(1, 4)):
        inside, _ = _shape(random)
        pixels[inside] = random.uniform(0, 255, 3)
    return np.asarray(pixels.clip(0, 255).round(), np.uint8)


def _label_map(random: np.random.Generator) -> NDArray[np.uint8]:  # -> (H, W)
    labels = np.zeros((_SIDE, _SIDE), np.uint8)
    for _ in range(random.integers(1, 4)):
        inside, is_disc = _shape(random)
        labels[inside] = 1 if is_disc else 2
    return labels


def _places() -> NDArray[np.float64]:  # -> (2, H, W)
    places: NDArray[np.float64] = np.mgrid[0:_SIDE, 0:_SIDE] / _SIDE
    return places


def _shape(random: np.random.Generator) -> tuple[NDArray[np.bool_], bool]:  # -> (H, W)
    """What a shape covers, and whether it is a disc."""
    down, right = _places()
    top, left = random.uniform(0.2, 0.8, 2)
    height, width = random.uniform(0.1, 0.3, 2)
    across, along = (down - top) / height, (right - left) / width
    is_disc = bool(random.random() < 0.5)
    return across**2 + along**2 < 1 if is_disc else np.maximum(abs(across), abs(along)) < 1, is_disc
