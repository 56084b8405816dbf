"""Batches of CIFAR-10 are pickles, and a pickle is a program. Ours is read, and never run."""

import os
import pickle
import pickletools
import random

import numpy as np
import pytest

from sqvae.data.readers.cifar10 import _from_pickle, _in_pickle
from sqvae.data.readers.pickled import Called, read_pickle

PIXELS = np.arange(2 * 3072, dtype=np.uint8).reshape(2, 3072)


def batch(protocol=2):
    return pickle.dumps({b"data": PIXELS, b"labels": [3, 8], b"batch_label": b"x"}, protocol=protocol)


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_what_real_batches_hold_is_read(protocol):
    assert np.array_equal(_from_pickle(batch(protocol)).transpose(0, 3, 1, 2).reshape(2, 3072), PIXELS)
    assert _in_pickle(batch(protocol), "labels") == [3, 8]
    turned = pickle.dumps({"data": np.asfortranarray(PIXELS)}, protocol=protocol)
    assert np.array_equal(_from_pickle(turned).transpose(0, 3, 1, 2).reshape(2, 3072), PIXELS)


def test_a_type_altered_while_in_use_does_not_crash_the_process():
    """An array of bytes whose dtype then becomes one of objects: each eight bytes would be taken for a pointer."""
    content = (
        b"\x80\x02}U\x04datacnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
        b"(K\x01K\x10\x85cnumpy\ndtype\nU\x02V8K\x00K\x01\x87Rq\x01\x89T\x80\x00\x00\x00" + 128 * b"A" + b"tb"
        b"h\x01(K\x03U\x01|NU\x01f\x85}U\x01fcnumpy\ndtype\nU\x01OK\x00K\x01\x87RK\x00\x86sK\x08K\x01K\x3ftb0s."
    )
    with pytest.raises(ValueError, match=r"it has the instruction POP|it holds no uint8 array"):
        _from_pickle(content)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\x80\x02cos\nsystem\nU\x04true\x85Rb.", "takes more from the stack"),
        (b"\x80\x02}(U\x01aK\x01tb.", "sets the state"),
        (b"\x80\x02cnumpy\ndtype\nU\x02u1\x85R}b}b.", "sets the state"),
        (b"\x80\x02cnumpy\ndtype\n}b.", "sets the state"),
        (b"\x80\x02K\x01\x85)R.", "calls something"),
        (b"\x80\x02(.", "takes more from the stack"),
        (b"\x80\x02h\x07.", "memo"),
        (b"\x80\x02}]K\x01s.", "dictionary whose keys"),
        (b"\x80\x02\x82\x01.", "it has the instruction EXT1"),
        (b"\x80\x02K\x01K\x02a.", "appends to something"),
        (b"\x80\x02T\xff\xff\xff\x7fshort", "expected 2147483647 bytes"),
    ],
)
def test_instructions_that_make_no_sense_are_told(content, said):
    with pytest.raises(ValueError, match=said):
        read_pickle(content)


def test_a_call_is_written_down_and_not_made(tmp_path):
    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "owned"),)

    found = read_pickle(pickle.dumps({"data": Evil()}))["data"]
    assert found == Called(f"{os.mkdir.__module__}.mkdir", (str(tmp_path / "owned"),))
    assert not (tmp_path / "owned").exists()


def test_no_mutation_of_a_batch_gives_anything_but_its_pixels_or_a_reason():
    """Every instruction's byte replaced, and a thousand bytes at random."""
    whole, generator = batch(), random.Random(0)
    places = [place for _, _, place in pickletools.genops(whole)] * 4
    refused = 0
    for place in [*places, *(generator.randrange(len(whole)) for _ in range(1000))]:
        content = bytearray(whole)
        content[place] = generator.randrange(256)
        try:
            assert _from_pickle(bytes(content)).shape[1:] == (32, 32, 3)
        except (ValueError, UnicodeDecodeError, IndexError):
            refused += 1
    assert refused > len(places) / 2
