"""Codes as token ids for language models, and back."""

import json
import os
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from runs import said
from sqvae.cli import main
from sqvae.codec import (
    PATTERNS,
    CodeFile,
    CodeFileError,
    CodeWriter,
    LanguageFile,
    UnitWriter,
    Vocabulary,
    write_language_file,
)
from sqvae.codec.formats import to_npz

K = 5
SHAPES = {"images": (2, 3), "layers": (2, 3, 4), "one layer": (2, 3, 1), "vectors": (7,), "vectors of layers": (7, 2)}
PICTURES = {"images": (3, 8, 12), "layers": (3, 8, 12), "one layer": (1, 8, 12), "vectors": (6,)}
EXAMPLES = 9

patterns = pytest.mark.parametrize("pattern", PATTERNS)
shapes = pytest.mark.parametrize("kind", SHAPES)


def layers_of(kind: str) -> int | None:
    return SHAPES[kind][-1] if "layer" in kind else None


def write_codes(path: Path, kind: str) -> Tensor:
    codes = torch.randint(K, (EXAMPLES, *SHAPES[kind]))
    shape = PICTURES.get(kind, (6,))
    with CodeWriter(path, codebook_size=K, fingerprint="abc", shape=shape, layers=layers_of(kind)) as writer:
        writer.write([f"{number}.png" for number in range(EXAMPLES)], codes)
    return codes


@given(
    pattern=st.sampled_from(list(PATTERNS)),
    size=st.integers(1, 40),
    layers=st.one_of(st.none(), st.integers(1, 6)),
    positions=st.lists(st.integers(0, 5), min_size=1, max_size=2),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=200, deadline=None)
def test_codes_can_be_had_back(pattern, size, layers, positions, seed):
    shape = (*positions, *(() if layers is None else (layers,)))
    codes = torch.randint(size, shape, generator=torch.Generator().manual_seed(seed))
    vocabulary = Vocabulary(size, layers, pattern)
    ids = vocabulary.ids(codes)
    assert tuple(ids.shape) == vocabulary.shape_of_ids(shape)
    assert ids.numel() == 0 or 0 <= ids.min() <= ids.max() < vocabulary.size
    assert torch.equal(vocabulary.codes(ids, shape), codes)


def test_each_layer_has_ids_of_its_own():
    codes = torch.tensor([[0, 4], [1, 0], [2, 3]])  # three positions of two layers
    flat, delayed = Vocabulary(K, 2, "flat"), Vocabulary(K, 2, "delayed")
    assert (flat.size, flat.pad) == (11, 10)
    assert flat.ids(codes).tolist() == [0, 9, 1, 5, 2, 8]
    assert delayed.ids(codes).tolist() == [[0, 10], [1, 9], [2, 5], [10, 8]]


def test_delayed_ids_come_one_step_later_for_each_layer():
    codes = torch.randint(K, (6, 3))
    steps = Vocabulary(K, 3, "delayed").ids(codes)
    assert steps.shape == (8, 3)
    for position in range(6):
        for layer in range(3):
            assert steps[position + layer, layer] == layer * K + codes[position, layer]
    assert (steps == 15).sum() == 2 * (0 + 1 + 2)


WRONG = [
    ("flat", [0, 9, 1, 5, 2], (3, 2), r"must have the shape \(6,\) in the pattern flat, got \(5,\)"),
    (
        "flat",
        [0, 9, 1, 5, 2, 11],
        (3, 2),
        "ids must lie between 0 and 10, got values from 0 to 11; are they of another",
    ),
    ("flat", [0, 9, 1, 4, 2, 8], (3, 2), "id of layer 1 at position 1 must lie between 5 and 9, got 4"),
    ("flat", [0, 9, 1, 10, 2, 8], (3, 2), "id of layer 1 at position 1 must lie between 5 and 9, got 10"),
    ("flat", [0, 9, 1, 5, 2, 8], (2, 3), r"shape of codes must end with 2 layers, got \(2, 3\)"),
    ("delayed", [[0, 10], [1, 9], [2, 5], [10, 8]], (4, 2), r"must have the shape \(5, 2\) in the pattern delayed"),
    ("delayed", [[0, 9], [1, 9], [2, 5], [10, 8]], (3, 2), "must be 10 where the pattern delayed has no code"),
    ("delayed", [[0.0, 10.0]], (1, 2), "ids must be integers"),
]


@pytest.mark.parametrize(("pattern", "ids", "shape", "message"), WRONG)
def test_wrong_ids_are_named(pattern, ids, shape, message):
    with pytest.raises(ValueError, match=message):
        Vocabulary(K, 2, pattern).codes(torch.tensor(ids), shape)


def test_wrong_codes_and_vocabularies_are_named():
    with pytest.raises(ValueError, match=r"must end with 2 layers, got \(3,\)"):
        Vocabulary(K, 2).ids(torch.zeros(3, dtype=torch.int64))
    with pytest.raises(ValueError, match="codes must lie between 0 and 4, got values from 5"):
        Vocabulary(K).ids(torch.tensor([5]))
    with pytest.raises(ValueError, match="pattern must be one of 'flat', 'delayed'; got 'parallel'"):
        Vocabulary(K, 2, "parallel")
    with pytest.raises(ValueError, match="layers must be at least 1"):
        Vocabulary(K, 0)


@patterns
@shapes
@pytest.mark.parametrize("ending", [".safetensors", ".npz"])
def test_a_file_of_codes_becomes_a_table_and_comes_back(pattern, kind, ending, tmp_path):
    codes = write_codes(tmp_path / "codes.safetensors", kind)
    if ending == ".npz":
        to_npz(tmp_path / "codes.safetensors", tmp_path / "codes.npz")
    told = []
    file = write_language_file(
        tmp_path / f"codes{ending}", tmp_path / "ids.jsonl", pattern=pattern, progress=lambda *one: told.append(one)
    )
    assert file == LanguageFile.open(tmp_path / "ids.jsonl")
    assert file.vocabulary == Vocabulary(K, layers_of(kind), pattern)
    assert file.fingerprint == "abc"
    assert told[-1] == ("writing token ids", EXAMPLES, EXAMPLES)
    names, restored = zip(*file.rows(), strict=True)
    assert list(names) == CodeFile.open(tmp_path / f"codes{ending}").names
    assert torch.equal(torch.stack(restored), codes)


@pytest.mark.parametrize("layers", [None, 3])
@patterns
def test_units_of_speech_are_rows_of_any_length(pattern, layers, tmp_path):
    axis = () if layers is None else (layers,)
    units = [torch.randint(K, (length, *axis)) for length in (4, 1, 0, 9)]
    about = {"codebook_size": K, "fingerprint": "f", "codes_per_second": 50, "rate": 16_000, "layers": layers}
    with UnitWriter(tmp_path / "units.safetensors", **about) as writer:
        for number, codes in enumerate(units):
            writer.add(codes)
            writer.end(f"{number}.wav", "anna", frames=2 * len(codes), samples=320 * len(codes))
    file = write_language_file(tmp_path / "units.safetensors", tmp_path / "ids.jsonl", pattern=pattern)
    rows = list(file.rows())
    assert [name for name, _ in rows] == ["0.wav", "1.wav", "2.wav", "3.wav"]
    assert all(torch.equal(found, codes) for (_, found), codes in zip(rows, units, strict=True))


@patterns
def test_datasets_reads_the_table_as_it_is(pattern, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    datasets = pytest.importorskip("datasets")
    codes = write_codes(tmp_path / "codes.safetensors", "layers")
    vocabulary = write_language_file(tmp_path / "codes.safetensors", tmp_path / "ids.jsonl", pattern=pattern).vocabulary
    table = datasets.load_dataset(
        "json", data_files=str(tmp_path / "ids.jsonl"), split="train", cache_dir=str(tmp_path / "cache")
    )
    assert len(table) == EXAMPLES
    assert table[0]["vocabulary_size"] == vocabulary.size == 4 * K + 1
    assert table[0]["pad_id"] == 4 * K
    for row, own in zip(table, codes, strict=True):
        assert torch.equal(vocabulary.codes(torch.tensor(row["ids"]), row["shape"]), own)


@pytest.fixture
def table(tmp_path) -> Path:
    write_codes(tmp_path / "codes.safetensors", "layers")
    write_language_file(tmp_path / "codes.safetensors", tmp_path / "ids.jsonl", pattern="delayed")
    return tmp_path / "ids.jsonl"


DAMAGE = [
    ({"format": "something"}, "object whose format is sqvae-language-1"),
    ({"ids": "1 2 3"}, "ids must be whole numbers in a list"),
    ({"ids": [[1, 2], [3]]}, "ids must be whole numbers in a list"),
    ({"ids": [[0.5] * 4] * 9}, "ids must be integers"),
    ({"ids": []}, "ids must be whole numbers in a list"),
    ({"ids": [[10**30]]}, "ids must be whole numbers in a list"),
    ({"shape": [2, 2, 4]}, r"must have the shape \(7, 4\)"),
    ({"shape": [10**9, 10**9, 4]}, "must have the shape"),
    ({"shape": "2x3"}, "shape must be a list of whole numbers"),
    ({"shape": [-2, 3, 4]}, "shape must be a list of whole numbers"),
    ({"pattern": "parallel"}, "pattern must be one of"),
    ({"pattern": "flat"}, r"must have the shape \(24,\)"),
    ({"layers": 3}, "vocabulary_size must be 16 for these codes, got 21"),
    ({"layers": "four"}, "layers a whole number or null"),
    ({"codebook_size": True}, "codebook_size must be a whole number"),
    ({"codebook_size": 0}, "codebook_size must be at least 1"),
    ({"pad_id": 3}, "pad_id must be 20 for these codes, got 3"),
    ({"name": None}, "name and fingerprint must be texts"),
    ({"fingerprint": 3}, "name and fingerprint must be texts"),
    ({"name": "other.png"}, "checksum does not match"),
    ({"fingerprint": "abd"}, "checksum does not match"),
    ({"checksum": "00000000"}, "checksum does not match"),
]


@pytest.mark.parametrize(("change", "message"), DAMAGE)
def test_damaged_rows_are_named_by_their_number(table, change, message):
    lines = table.read_text().splitlines(keepends=True)
    lines[3] = json.dumps({**json.loads(lines[3]), **change}) + "\n"
    table.write_text("".join(lines))
    with pytest.raises(CodeFileError, match=rf"ids\.jsonl, row 4, is damaged.*{message}"):
        list(LanguageFile.open(table).rows())


def test_rows_may_be_left_out_and_their_columns_put_in_another_order(table):
    rows = [json.loads(line) for line in table.read_text().splitlines()]
    expected = [codes for _, codes in LanguageFile.open(table).rows()]
    table.write_text("".join(json.dumps(dict(reversed(row.items()))) + "\n" for row in reversed(rows[2:5])))
    found = [codes for _, codes in LanguageFile.open(table).rows()]
    assert torch.equal(torch.stack(found), torch.stack(expected[2:5]).flip(0))


def test_other_files_are_no_tables(table, tmp_path):
    with pytest.raises(CodeFileError, match="there is no file"):
        LanguageFile.open(tmp_path / "nothing.jsonl")
    for content in (b"\x00\xff" * 50, b"[1, 2]\n", b'{"text": "a"}\n', b"[" * 100_000, table.read_bytes()[:50]):
        (tmp_path / "other.jsonl").write_bytes(content)
        with pytest.raises(CodeFileError, match=r"row 1, is damaged, or not of a file of token ids.*sqvae tokens"):
            LanguageFile.open(tmp_path / "other.jsonl")
    (tmp_path / "other.jsonl").write_bytes(b"")
    with pytest.raises(CodeFileError, match="is empty, and not a file of token ids"):
        LanguageFile.open(tmp_path / "other.jsonl")
    with pytest.raises(CodeFileError, match="can't be read"):
        LanguageFile.open(tmp_path)


def test_rows_of_several_vocabularies_are_told_apart(table, tmp_path):
    write_language_file(tmp_path / "codes.safetensors", tmp_path / "flat.jsonl")
    table.write_bytes(table.read_bytes() + (tmp_path / "flat.jsonl").read_bytes())
    with pytest.raises(CodeFileError, match="row 10, has another vocabulary or model than the first row"):
        list(LanguageFile.open(table).rows())


def test_what_is_no_file_of_codes_is_refused(table, tmp_path):
    with pytest.raises(CodeFileError, match="there is no file"):
        write_language_file(tmp_path / "nothing.safetensors", tmp_path / "out.jsonl")
    with pytest.raises(CodeFileError, match="is not a file of codes: encode it first"):
        write_language_file(table, tmp_path / "out.jsonl")
    with pytest.raises(CodeFileError, match=r"the name of a file of token ids must end in \.jsonl"):
        write_language_file(tmp_path / "codes.safetensors", tmp_path / "out.txt")
    with pytest.raises(ValueError, match="pattern must be one of"):
        write_language_file(tmp_path / "codes.safetensors", tmp_path / "out.jsonl", pattern="parallel")
    with CodeWriter(tmp_path / "none.safetensors", codebook_size=K, fingerprint="f", shape=(3, 8, 8)):
        pass
    with pytest.raises(CodeFileError, match="holds no codes"):
        write_language_file(tmp_path / "none.safetensors", tmp_path / "out.jsonl")
    content = (tmp_path / "codes.safetensors").read_bytes()
    (tmp_path / "codes.safetensors").write_bytes(content[:-20] + b"!" + content[-19:])
    with pytest.raises(CodeFileError, match="damaged"):
        write_language_file(tmp_path / "codes.safetensors", tmp_path / "out.jsonl")
    assert not (tmp_path / "out.jsonl").exists()


def test_names_that_are_not_text_are_replaced(tmp_path):
    name = os.fsdecode(b"caf\xe9.png")
    with CodeWriter(tmp_path / "codes.safetensors", codebook_size=K, fingerprint="f", shape=(1, 4, 4)) as writer:
        writer.write([name, "größe.png"], torch.zeros(2, 1, 1, dtype=torch.int64))
    write_language_file(tmp_path / "codes.safetensors", tmp_path / "ids.jsonl")
    names = [found for found, _ in LanguageFile.open(tmp_path / "ids.jsonl").rows()]
    assert names == ["caf\N{REPLACEMENT CHARACTER}.png", "größe.png"]


def test_the_command(tmp_path, capsys):
    codes = write_codes(tmp_path / "codes.safetensors", "layers")
    arguments = ["tokens", str(tmp_path / "codes.safetensors"), "-o", str(tmp_path / "ids.jsonl")]
    assert main([*arguments, "--pattern", "delayed"]) == 0
    assert "token ids below 21: 5 codes in each of 4 layers, and 20 for no code" in said(capsys)
    assert LanguageFile.open(tmp_path / "ids.jsonl").vocabulary.pattern == "delayed"
    assert main(arguments) == 1
    assert "is there already" in said(capsys)
    assert main([*arguments, "--overwrite"]) == 0
    file = LanguageFile.open(tmp_path / "ids.jsonl")
    assert file.vocabulary.pattern == "flat"
    assert torch.equal(torch.stack([row for _, row in file.rows()]), codes)
    assert main(["tokens", str(tmp_path / "codes.safetensors"), "-o", str(tmp_path / "ids.txt")]) == 1
    assert "must end in .jsonl" in said(capsys)
