r"""Codes as token ids for language models, in a table of one row for each image, vector or recording.

The file has the format JSON lines, which ``datasets.load_dataset("json", data_files=...)`` reads as it is. Each row
describes itself, so that it can be shuffled, filtered or joined with others:

- ``name``: the name of the source;
- ``ids``: the token ids, in one of the patterns of :data:`PATTERNS`;
- ``shape``: the shape of the codes that the ids stand for: (h, w) or (n,); with layers one axis more;
- ``pattern``, ``layers``, ``codebook_size``: see :class:`Vocabulary`; ``layers`` is null for codes without layers;
- ``vocabulary_size``, ``pad_id``: the number of ids, and the one that stands for no code;
- ``format`` and ``fingerprint``: of the file, and of the model that the codes belong to;
- ``checksum``: of all of these, so that a row that was altered is noticed.
"""

import json
import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from sqvae.codec.formats import FAILURES, brief, check_ending, opened, versions_of
from sqvae.codec.metadata import LARGEST
from sqvae.codec.tokens import CodeFile
from sqvae.codec.units import KIND as UNITS
from sqvae.codec.units import UnitFile
from sqvae.codec.writing import CHECKSUM, CodeFileError, PlainFile
from sqvae.data import Progress
from sqvae.distributions.checks import check_choice, check_indices, check_size

FORMAT = "sqvae-language-1"
"""The value of ``format`` in every row."""

JSON_LINES = ".jsonl"
"""How the names of files of token ids end."""

_AT_ONCE = 1024
"""The number of images whose codes are read at a time."""


@dataclass(frozen=True)
class Pattern:
    """An order of the ids of a row."""

    arranged: Callable[[Tensor, int], Tensor]
    """Takes (positions, L) and the id that stands for no code; gives the ids in their order."""
    restored: Callable[[Tensor, int], Tensor]
    """Takes ids in their order and the number of layers L; gives (positions, L)."""
    shape: Callable[[int, int], tuple[int, ...]]
    """Takes the numbers of positions and of layers; gives the shape of the ids in their order."""


def _flat(ids: Tensor, pad: int) -> Tensor:  # (positions, L) -> (positions * L,)
    return ids.flatten()


def _from_flat(ids: Tensor, layers: int) -> Tensor:  # (positions * L,) -> (positions, L)
    return ids.view(-1, layers)


def _delayed(ids: Tensor, pad: int) -> Tensor:  # (positions, L) -> (positions + L - 1, L)
    positions, layers = ids.shape
    steps = ids.new_full((positions + layers - 1, layers), pad)
    for layer in range(layers):
        steps[layer : layer + positions, layer] = ids[:, layer]
    return steps


def _from_delayed(steps: Tensor, layers: int) -> Tensor:  # (positions + L - 1, L) -> (positions, L)
    positions = len(steps) - layers + 1
    return torch.stack([steps[layer : layer + positions, layer] for layer in range(layers)], -1)


PATTERNS: Mapping[str, Pattern] = {
    "flat": Pattern(_flat, _from_flat, lambda positions, layers: (positions * layers,)),
    "delayed": Pattern(_delayed, _from_delayed, lambda positions, layers: (positions + layers - 1, layers)),
}
"""The orders of ids by name.

- ``flat``: (positions * L,), position after position in raster order, and layer after layer at each;
- ``delayed``: (positions + L - 1, L), a row for each step, in which layer l has the code of the position l steps
  before, as in MusicGen (Copet et al., 2023). A model predicts the ids of a step at once, and each still depends on the
  earlier layers of its position. Where a layer has no code the id is the one that stands for none.
"""


@dataclass(frozen=True)
class Vocabulary:
    r"""The token ids of codes, and their order.

    .. math:: \mathrm{id}(l, k) = l K + k, \qquad \mathrm{pad} = L K, \qquad V = L K + 1

    for the code k of layer l, from 0. The last id stands for no code: the delayed pattern has it at its ends, and it is
    free to begin sequences or to fill them up.
    """

    codebook_size: int
    """The number of codes of each layer, K."""
    layers: int | None = None
    """The number of layers, L; None for codes without an axis of layers, which have one code at each position."""
    pattern: str = "flat"
    """The order of the ids: see :data:`PATTERNS`."""

    def __post_init__(self) -> None:
        check_size(self.codebook_size, "codebook_size")
        if self.layers is not None:
            check_size(self.layers, "layers")
        check_choice(self.pattern, tuple(PATTERNS), "pattern")

    @property
    def pad(self) -> int:
        """The id that stands for no code."""
        return self.codebook_size * (self.layers or 1)

    @property
    def size(self) -> int:
        """The number of ids, V."""
        return self.pad + 1

    def ids(self, codes: Tensor) -> Tensor:  # (*shape) -> (positions * L,) or (positions + L - 1, L)
        """The ids of one example's codes: (h, w) or (n,), or with layers (h, w, layers) or (n, layers)."""
        check_indices(codes, self.codebook_size, "codes")
        self.shape_of_ids(codes.shape)  # which says whether the layers are there
        by_position = codes.long().reshape(-1, self.layers or 1)
        return PATTERNS[self.pattern].arranged(by_position + self._offsets(codes), self.pad)

    def codes(self, ids: Tensor, shape: Sequence[int]) -> Tensor:  # (positions * L,) or (positions + L - 1, L) -> shape
        """The codes that ids stand for, of the shape that they had; the inverse of :meth:`ids`."""
        check_indices(ids, self.size, "ids", "; are they of another vocabulary?")
        expected = self.shape_of_ids(shape)
        if tuple(ids.shape) != expected:
            raise ValueError(
                f"the ids of codes of the shape {tuple(shape)} must have the shape {expected} in the pattern "
                f"{self.pattern}, got {tuple(ids.shape)}"
            )
        if not ids.numel():
            return ids.long().reshape(tuple(shape))
        ids, pattern = ids.long(), PATTERNS[self.pattern]
        by_position = pattern.restored(ids, self.layers or 1)
        codes = by_position - self._offsets(ids)
        wrong = (codes < 0) | (codes >= self.codebook_size)
        if bool(wrong.any()):
            position, layer = wrong.nonzero()[0].tolist()
            first = layer * self.codebook_size
            raise ValueError(
                f"the id of layer {layer} at position {position} must lie between {first} and "
                f"{first + self.codebook_size - 1}, got {int(by_position[position, layer])}"
            )
        if not torch.equal(pattern.arranged(by_position, self.pad), ids):
            raise ValueError(f"ids must be {self.pad} where the pattern {self.pattern} has no code, and are others")
        return codes.reshape(tuple(shape))

    def shape_of_ids(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of the ids of codes of a shape: (positions * L,), or (positions + L - 1, L)."""
        if self.layers is not None and (len(shape) < 2 or shape[-1] != self.layers):
            raise ValueError(f"the shape of codes must end with {self.layers} layers, got {tuple(shape)}")
        layers = self.layers or 1
        return PATTERNS[self.pattern].shape(math.prod(shape) // layers, layers)

    def _offsets(self, like: Tensor) -> Tensor:  # -> (L,)
        return self.codebook_size * torch.arange(self.layers or 1, device=like.device)


@dataclass(frozen=True)
class LanguageFile:
    """A file of token ids, opened for reading. Rows are read from the disk when they are needed."""

    path: Path
    vocabulary: Vocabulary
    fingerprint: str
    """The fingerprint of the model that the codes belong to."""

    @classmethod
    def open(cls, path: str | Path) -> "LanguageFile":
        """Open a file and read its first row."""
        path = Path(path).expanduser()
        for row in _rows(path):
            return cls(path, row.vocabulary, row.fingerprint)
        raise CodeFileError(f"{path} is empty, and not a file of token ids: `sqvae tokens` writes them")

    def rows(self) -> Iterator[tuple[str, Tensor]]:  # -> name, (h, w) or (n,), with layers one axis more
        """Yield the name and the codes of each row, in order."""
        for number, row in enumerate(_rows(self.path), 1):
            if (row.vocabulary, row.fingerprint) != (self.vocabulary, self.fingerprint):
                raise CodeFileError(
                    f"{self.path}, row {number}, has another vocabulary or model than the first row: keep such rows in "
                    "a file of their own"
                )
            yield row.name, row.codes


def write_language_file(
    source: str | Path, path: str | Path, *, pattern: str = "flat", progress: Progress | None = None
) -> LanguageFile:
    """Write the codes of a file of codes or units as token ids.

    Arguments:
        source: a file of codes or units, from `sqvae encode`.
        path: the file to write, which is replaced if it exists. It ends in .jsonl.
        pattern: the order of the ids: a name of :data:`PATTERNS`.
        progress: called with the activity, the number of rows done and the total number.
    """
    check_choice(pattern, tuple(PATTERNS), "pattern")
    path = Path(path).expanduser()
    check_ending(path, [JSON_LINES], "file of token ids")
    stored = _stored(Path(source).expanduser())
    if not stored.number:
        raise CodeFileError(f"{source} holds no codes, so that there are no rows to write")
    vocabulary = Vocabulary(stored.codebook_size, stored.layers, pattern)
    about = {**_described(vocabulary), "format": FORMAT, "fingerprint": stored.fingerprint}
    with PlainFile(path) as out:
        for done, (name, codes) in enumerate(stored.examples(), 1):
            # A name whose bytes are not text can't be in a table.
            text = name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
            row = {"name": text, "ids": vocabulary.ids(codes).tolist(), "shape": list(codes.shape), **about}
            out.put(json.dumps({**row, CHECKSUM: _checksum(row)}).encode() + b"\n")
            if progress is not None:
                progress("writing token ids", done, stored.number)
    return LanguageFile(path, vocabulary, stored.fingerprint)


def _checksum(row: Mapping[str, Any]) -> str:
    """The CRC-32 of a row's columns, in whatever order they are."""
    columns = {name: value for name, value in row.items() if name != CHECKSUM}
    return f"{zlib.crc32(json.dumps(columns, sort_keys=True).encode()):08x}"


def _described(vocabulary: Vocabulary) -> dict[str, Any]:
    """The columns of a row that say what its ids are."""
    return {
        "pattern": vocabulary.pattern,
        "layers": vocabulary.layers,
        "codebook_size": vocabulary.codebook_size,
        "vocabulary_size": vocabulary.size,
        "pad_id": vocabulary.pad,
    }


class _Stored(NamedTuple):
    """The codes of a file, whatever its kind."""

    fingerprint: str
    codebook_size: int
    layers: int | None
    number: int
    examples: Callable[[], Iterator[tuple[str, Tensor]]]


def _stored(path: Path) -> _Stored:
    """A file of codes or of units. The metadata says which of them it is."""
    kind = None
    with suppress(*FAILURES), opened(path) as file:  # a file that can't be read is named by what opens it below
        kind = file.metadata.get("format")
    return _of_units(UnitFile.open(path)) if kind in versions_of(UNITS) else _of_codes(CodeFile.open(path))


def _of_codes(file: CodeFile) -> _Stored:
    def examples() -> Iterator[tuple[str, Tensor]]:
        for names, codes in file.batches(_AT_ONCE):
            yield from zip(names, codes, strict=True)

    return _Stored(file.fingerprint, file.codebook_size, file.layers, len(file), examples)


def _of_units(file: UnitFile) -> _Stored:
    def examples() -> Iterator[tuple[str, Tensor]]:
        return ((unit.name, unit.codes) for unit in file.units())

    return _Stored(file.fingerprint, file.codebook_size, file.layers, len(file), examples)


class _Row(NamedTuple):
    """A row of a file of token ids."""

    name: str
    codes: Tensor
    vocabulary: Vocabulary
    fingerprint: str


def _rows(path: Path) -> Iterator[_Row]:
    """The rows of a file of token ids. Whatever is wrong with one is said with its number."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    yield _row(json.loads(line))
                except FAILURES as failure:
                    raise CodeFileError(
                        f"{path}, row {number}, is damaged, or not of a file of token ids: {brief(failure)}. Write the "
                        "file again (sqvae tokens CODES -o FILE.jsonl)"
                    ) from failure
    except FileNotFoundError:
        raise CodeFileError(f"there is no file {path}") from None
    except OSError as failure:
        raise CodeFileError(f"{path} can't be read: {failure.strerror or failure}") from failure


def _row(said: Any) -> _Row:
    if not isinstance(said, dict) or said.get("format") != FORMAT:
        raise ValueError(f"each row must be an object whose format is {FORMAT}")
    name, fingerprint, shape, layers = (said.get(column) for column in ("name", "fingerprint", "shape", "layers"))
    if not (isinstance(name, str) and isinstance(fingerprint, str)):
        raise ValueError("name and fingerprint must be texts")
    if not isinstance(shape, list) or not all(_is_number(size) for size in shape):
        raise ValueError(f"shape must be a list of whole numbers, got {shape}")
    if not _is_number(said.get("codebook_size")) or not (layers is None or _is_number(layers)):
        raise ValueError("codebook_size must be a whole number, and layers a whole number or null")
    vocabulary = Vocabulary(said["codebook_size"], layers, said.get("pattern", ""))
    for column, expected in _described(vocabulary).items():
        if said.get(column) != expected:
            raise ValueError(f"{column} must be {expected} for these codes, got {said.get(column)}")
    try:
        ids = torch.tensor(said.get("ids"))
        if not ids.numel():  # an empty list has neither a type nor all of its axes
            ids = torch.zeros(0, dtype=torch.int64).reshape(vocabulary.shape_of_ids(shape))
    except FAILURES as failure:
        raise ValueError(f"ids must be whole numbers in a list, or a list for each step: {failure}") from failure
    codes = vocabulary.codes(ids, shape)
    if said.get(CHECKSUM) != _checksum(said):
        raise ValueError("its checksum does not match")
    return _Row(name, codes, vocabulary, fingerprint)


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST
