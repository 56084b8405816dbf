"""A cache whose files were altered is made again, and never believed."""

import random

import numpy as np
import pytest

from runs import write_pictures
from sqvae.data import load

MADE = "decoding"


@pytest.fixture
def source(tmp_path):
    return write_pictures(tmp_path / "pictures.npy", count=60, channels=3)


def loaded(source, cache):
    """All pictures with their names, and whether they were decoded anew."""
    steps = []
    sets = load(source, cache=cache, progress=lambda what, *_: steps.append(what))
    parts = [np.stack([part.take([row])[0] for row in range(len(part))]) for part in (sets.train, sets.test)]
    return parts, list(sets.train.names), MADE in steps


@pytest.mark.parametrize("name", ["pictures.npy", "names.json", "entry.json"])
def test_what_was_altered_is_made_again(name, source, tmp_path):
    cache = tmp_path / "cache"
    expected, names, new = loaded(source, cache)
    assert new
    assert not loaded(source, cache)[2]
    (file,) = cache.glob(f"pictures/*/{name}")
    whole, generator = file.read_bytes(), random.Random(0)
    for _ in range(20):
        content = bytearray(whole)
        place = generator.randrange(len(content))
        content[place] ^= 1 << generator.randrange(8)
        file.write_bytes(content)
        found, found_names, _ = loaded(source, cache)
        assert all(np.array_equal(one, other) for one, other in zip(found, expected, strict=True))
        assert found_names == names


def test_half_of_a_file_overwritten_is_noticed(source, tmp_path):
    cache = tmp_path / "cache"
    expected, _, _ = loaded(source, cache)
    (file,) = cache.glob("pictures/*/pictures.npy")
    content = bytearray(file.read_bytes())
    content[len(content) // 2 :] = random.Random(0).randbytes(len(content) - len(content) // 2)
    file.write_bytes(content)
    found, _, new = loaded(source, cache)
    assert new
    assert all(np.array_equal(one, other) for one, other in zip(found, expected, strict=True))
