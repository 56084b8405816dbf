"""Files of codes that nobody's `encode` has written: each gets a sentence that says what is wrong with it.

They are of the version without a checksum, which anybody can put together.
"""

import zipfile

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from kinds import CODES, SHAPE, picture_tokenizer, speech_tokenizer
from runs import said
from sqvae import load
from sqvae.cli import main
from sqvae.codec import NameTaker

HUGE = "1" + "0" * 400
MAPS = torch.zeros(2, 2, 4, dtype=torch.uint8)


def text(content):
    return torch.tensor(list(content), dtype=torch.uint8)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    picture_tokenizer("pictures").save_pretrained(folder / "pictures")
    speech_tokenizer().save_pretrained(folder / "speech")
    return folder


@pytest.fixture(scope="module")
def marks(models):
    return {kind: load(models / kind).fingerprint for kind in ("pictures", "speech")}


def decoded(models, kind, path, capsys, *options):
    code = main(["decode", str(models / kind), str(path), "-o", str(path.parent / "out"), *options])
    return code, said(capsys)


def codes_file(path, mark, tensors, metadata):
    whole = {
        "format": "sqvae-codes-1",
        "fingerprint": mark,
        "codebook_size": str(CODES),
        "picture_shape": str(list(SHAPE["pictures"])),
        **metadata,
    }
    there = {name: value for name, value in whole.items() if value is not None}
    parts = {"codes": MAPS, "names": text(b"a\0b\0"), **tensors}
    save_file({name: value for name, value in parts.items() if value is not None}, path, metadata=there)
    return path


@pytest.mark.parametrize(
    ("tensors", "metadata", "words"),
    [
        ({}, {"fingerprint": None}, "it has no fingerprint"),
        ({}, {"codebook_size": None}, "it has no codebook_size"),
        ({}, {"codebook_size": "many"}, "its codebook_size is 'many'"),
        ({}, {"codebook_size": HUGE}, "its codebook_size must be a number above 0 and up to"),
        ({}, {"codebook_size": "17"}, "2 x 4 codes out of 17 for 3 x 8 x 16"),
        ({}, {"codebook_size": "NaN"}, "must be a number above 0"),
        ({}, {"picture_shape": "[" * 100_000}, "its picture_shape is '[[["),
        ({}, {"picture_shape": "{}"}, "its picture_shape must be 3 or 1 integers above 0, got {}"),
        ({}, {"picture_shape": "[3, 1000000, 1000000]"}, "for 3 x 1,000,000 x 1,000,000"),
        ({"codes": torch.tensor(3, dtype=torch.uint8)}, {}, "codes of the shape ()"),
        ({"codes": MAPS[0]}, {}, "codes of the shape (2, 4)"),
        ({"codes": MAPS.float()}, {}, "codes must be integers, got F32"),
        ({"codes": MAPS.bool()}, {}, "codes must be integers, got BOOL"),
        ({"codes": MAPS.int() - 1}, {}, "codes must lie between 0 and 15, but it has codes from -1 to -1"),
        ({"codes": MAPS + 200}, {}, "codes must lie between 0 and 15, but it has codes from 200 to 200"),
        ({"codes": torch.zeros(2, 3000, 3000, dtype=torch.uint8)}, {}, "3,000 x 3,000 codes out of 16"),
        ({"names": None}, {}, "names"),
        ({"names": torch.zeros(4)}, {}, "names must be bytes of text, got F32 of the shape (4,)"),
        ({"names": text(b"a\0")}, {}, "there are 1 names"),
    ],
)
def test_codes_of_pictures(models, marks, tmp_path, capsys, tensors, metadata, words):
    path = codes_file(tmp_path / "codes.safetensors", marks["pictures"], tensors, metadata)
    code, sentence = decoded(models, "pictures", path, capsys)
    assert code == 1
    assert words in sentence
    assert len(sentence) < 1_000
    assert not list((tmp_path / "out").glob("*")) if (tmp_path / "out").exists() else True


@pytest.mark.parametrize("names", [b"\0\0", b"\xff\xfe\0b\0", b"a" * 5_000 + b".png\0" + b"a" * 5_000 + b".png\0"])
def test_names_that_no_file_can_have_are_made_into_some(models, marks, tmp_path, capsys, names):
    path = codes_file(tmp_path / "codes.safetensors", marks["pictures"], {"names": text(names)}, {})
    code, sentence = decoded(models, "pictures", path, capsys)
    assert code == 0, sentence
    assert len(list((tmp_path / "out").rglob("*.png"))) == 2


def arrays_file(path, mark, changes):
    whole = {
        "codes": MAPS.numpy(),
        "names": np.array(["a", "b"]),
        "format": np.array("sqvae-codes-1"),
        "fingerprint": np.array(mark),
        "codebook_size": np.array(CODES),
        "picture_shape": np.array(SHAPE["pictures"]),
        **changes,
    }
    np.savez(path, **{name: value for name, value in whole.items() if value is not None})
    return path


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"fingerprint": None}, "it has no fingerprint"),
        ({"codes": np.array(3)}, "codes of the shape ()"),
        ({"codes": MAPS.numpy() * 0.5}, "codes must be integers, got float64"),
        ({"codes": np.array([{}], dtype=object)}, "codes must be integers, got object"),
        ({"names": np.array("a")}, "names must be text"),
        ({"names": np.array([1, 2])}, "got int64"),
        ({"codebook_size": np.array([1, 2])}, "its codebook_size must be a number above 0"),
        ({"codebook_size": np.array(np.inf)}, "its codebook_size must be a number above 0"),
    ],
)
def test_codes_in_npz(models, marks, tmp_path, capsys, changes, words):
    code, sentence = decoded(
        models, "pictures", arrays_file(tmp_path / "codes.npz", marks["pictures"], changes), capsys
    )
    assert code == 1
    assert words in sentence


@pytest.mark.parametrize(
    ("member", "header", "words"),
    [
        ("codes", "'descr': '|u1', 'shape': (2, -2, -4)", "shape (2, -2, -4)"),
        ("codes", "'descr': '|u1', 'shape': (2, 99999999999, 99999999999)", "far too many x far too many codes"),
        ("codes", f"'descr': '|u1', 'shape': (2, {'9' * 400}, 4)", "far too many x 4 codes"),
        ("codes", f"'descr': '|u1', 'shape': {'(' * 300}{')' * 300}", "is damaged"),
        ("codes", "'descr': '|O', 'shape': (2, 2, 4)", "codes must be integers, got object"),
        ("names", "'descr': '<U999999999', 'shape': (2,)", "is damaged"),
        ("names", "'descr': '|V0', 'shape': (2,)", "names must be text"),
    ],
)
def test_headers_of_arrays_that_claim_anything(models, marks, tmp_path, capsys, member, header, words):
    whole, path = arrays_file(tmp_path / "whole.npz", marks["pictures"], {}), tmp_path / "codes.npz"
    content = f"{{{header}, 'fortran_order': False, }}".encode().ljust(117) + b"\n"
    with zipfile.ZipFile(whole) as source, zipfile.ZipFile(path, "w") as target:
        for name in source.namelist():
            claimed = b"\x93NUMPY\x01\x00" + len(content).to_bytes(2, "little") + content
            target.writestr(name, claimed if name == f"{member}.npy" else source.read(name))
    code, sentence = decoded(models, "pictures", path, capsys)
    assert code == 1
    assert words in sentence
    assert len(sentence) < 1_000


def whole_numbers(*values):
    return torch.tensor(values, dtype=torch.int32)


@pytest.mark.parametrize(
    ("tensors", "metadata", "words"),
    [
        ({"codes": torch.zeros(6)}, {}, "codes must be integers, got F32"),
        ({"codes": torch.zeros(6, 2, dtype=torch.uint8)}, {}, "is damaged: its parts"),
        ({"codes": torch.full((6,), 200, dtype=torch.uint8)}, {}, "codes must lie between 0 and 15"),
        ({"lengths": torch.tensor([3.0, 3.0])}, {}, "lengths must be integers, got F32"),
        ({"lengths": torch.tensor(3, dtype=torch.int32)}, {}, "lengths must have one axis, got the shape ()"),
        ({"lengths": whole_numbers(-3, 9), "frames": whole_numbers(-6, 18)}, {}, "is damaged: its parts"),
        ({"samples": whole_numbers(-5, 2**31 - 1)}, {}, "is damaged: its parts"),
        ({}, {"rate": "x"}, "its rate is 'x'"),
        ({}, {"rate": HUGE}, "its rate must be a number above 0"),
        ({}, {"codes_per_second": "[" * 99_999}, "its codes_per_second is '[[["),
    ],
)
def test_units_of_speech(models, marks, tmp_path, capsys, tensors, metadata, words):
    parts = {
        "codes": torch.zeros(6, dtype=torch.uint8),
        "names": text(b"a\0b\0"),
        "speakers": text(b"anna\0ben\0"),
        "lengths": whole_numbers(3, 3),
        "frames": whole_numbers(6, 6),
        "samples": whole_numbers(900, 900),
        **tensors,
    }
    marks = {
        "format": "sqvae-units-1",
        "fingerprint": marks["speech"],
        "codebook_size": str(CODES),
        "codes_per_second": "50.0",
        "rate": "16000",
        **metadata,
    }
    save_file(parts, tmp_path / "units.safetensors", metadata=marks)
    code, sentence = decoded(models, "speech", tmp_path / "units.safetensors", capsys)
    assert code == 1
    assert words in sentence
    assert len(sentence) < 1_000


def test_equal_names_are_not_tried_one_by_one(monkeypatch):
    """Of 30,000 equal names each takes two looks, and not as many as there were before it."""
    taker, looks = NameTaker(), 0

    class Counted(set):
        def __contains__(self, name):
            nonlocal looks
            looks += 1
            return super().__contains__(name)

    monkeypatch.setattr(taker, "_taken", Counted())
    names = {taker.take("same.png") for _ in range(30_000)}
    assert len(names) == 30_000
    assert looks < 100_000
