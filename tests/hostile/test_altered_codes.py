"""Files of codes that are no longer as they were written are refused, or give what was written."""

import json
import random

import numpy as np
import pytest
import torch

from sqvae.codec import CodeFile, CodeFileError, CodeWriter, UnitFile
from sqvae.codec.formats import to_npz
from sqvae.codec.units import UnitWriter

NAMES = [f"folder/picture {number}.png" for number in range(40)]
CODES = torch.randint(0, 200, (40, 4, 4), generator=torch.Generator().manual_seed(0))


def codes_file(path):
    with CodeWriter(path, codebook_size=200, fingerprint="f" * 32, shape=(3, 16, 16)) as writer:
        writer.write(NAMES[:25], CODES[:25])
        writer.write(NAMES[25:], CODES[25:])
    return path


def units_file(path):
    with UnitWriter(path, codebook_size=200, fingerprint="f" * 32, codes_per_second=50.0, rate=16_000) as writer:
        for name, row in zip(NAMES, CODES.flatten(1), strict=True):
            writer.add(row)
            writer.end(name, "anna", frames=2 * len(row), samples=320 * len(row))
    return path


def read_codes(path):
    file = CodeFile.open(path)
    return file.fingerprint, file.codebook_size, file.picture_shape, file.names, file.codes().tolist()


def read_units(path):
    file = UnitFile.open(path)
    rows = [(unit.name, unit.speaker, unit.frames, unit.samples, unit.codes.tolist()) for unit in file.units()]
    return file.fingerprint, file.codebook_size, file.rate, file.codes_per_second, rows


@pytest.mark.parametrize(
    ("write", "read", "ending"),
    [
        (codes_file, read_codes, ".safetensors"),
        (units_file, read_units, ".safetensors"),
        (codes_file, read_codes, ".npz"),
    ],
)
def test_no_mutation_gives_other_codes_or_names(write, read, ending, tmp_path):
    path = write(tmp_path / "codes.safetensors")
    if ending == ".npz":
        to_npz(path, tmp_path / "codes.npz")
        path = tmp_path / "codes.npz"
    expected, whole, generator = read(path), path.read_bytes(), random.Random(0)
    refused = 0
    for number in range(400):
        content = bytearray(whole)
        for _ in range(generator.choice((1, 1, 4))):
            content[generator.randrange(len(content))] ^= 1 << generator.randrange(8)
        if number % 8 == 0:  # and a part is missing, or stands twice
            start = generator.randrange(len(content))
            content[start : start + 64] = content[start : start + 64] * generator.choice((0, 2))
        path.write_bytes(content)
        try:
            assert read(path) == expected
        except CodeFileError:
            refused += 1
    assert refused > 100


def test_a_file_without_a_checksum_is_read_and_said_to_be_unchecked(tmp_path):
    path = codes_file(tmp_path / "codes.safetensors")
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    del header["__metadata__"]["checksum"]

    def written(header):
        path.write_bytes(content[:8] + json.dumps(header).encode().ljust(length) + content[8 + length :])
        return path

    with pytest.raises(CodeFileError, match=r"is damaged: .*checksum"):
        CodeFile.open(written(header))
    header["__metadata__"]["format"] = "sqvae-codes-1"
    old = CodeFile.open(written(header))
    assert not old.checked
    assert np.array_equal(old.codes(), CODES)
