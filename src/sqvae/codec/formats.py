"""The formats of files of codes: safetensors, NumPy's .npz, and others that are converted from the first.

Codes are written as safetensors, directly to the disk. A file in another format is converted from that when all codes
are written, piece by piece: memory use is constant, and the disk temporarily holds the codes twice.

In an .npz file the tensors have the same names as in safetensors; names are arrays of text; and each entry of the
metadata is an array of a number, several numbers or a text.
"""

import contextlib
import json
import math
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any, BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from torch import Tensor

from sqvae.codec.writing import CHECKSUM, CodeFileError, StreamedFile, checksum
from sqvae.files import alone, beside, check_ordinary

SAFETENSORS = ".safetensors"
NPZ = ".npz"

WORDS = ("names", "speakers")
"""Tensors that contain text: UTF-8, each word terminated by a zero byte."""
TEXTS = ("format", "fingerprint", CHECKSUM)
NUMBERS = ("codebook_size", "picture_shape", "layers", "codes_per_second", "rate")
"""Metadata: text, and JSON of one or several numbers."""

PIECE = 1 << 22
"""Number of bytes to copy at a time."""

WHOLE = ("U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64")
"""Integer types in safetensors."""

KINDS = {"U8": "<u1", "U16": "<u2", "I32": "<i4"}
"""Names of integer types in safetensors and in NumPy."""

VERSION = 2
"""The version of files of codes, with a checksum."""

LONGEST_HEADER = 1 << 20
"""Maximum number of bytes that are read as the header of a safetensors file."""

UNCHECKED = (
    "{} was written by an earlier version, without a checksum, so that it can't be told whether it is still as it was "
    "written; `sqvae encode` writes one now"
)
"""What is to be said of a file of codes whose content can't be checked."""

LONGEST_REASON = 200
"""Maximum number of characters of the reason in an error message."""

ZIPPED = b"PK\x03\x04"

FAILURES = (
    *(SafetensorError, zipfile.BadZipFile, zlib.error, OSError, EOFError, MemoryError),
    *(SyntaxError, TokenError),  # NumPy parses the header of an array as Python
    *(LookupError, ValueError, TypeError, OverflowError, RuntimeError),  # including NotImplementedError, RecursionError
)
"""Exceptions that reading a damaged file, or one of another kind, may raise."""

Conversion = Callable[[Path, Path], None]
"""Converts a safetensors file, the first path, to a file of another format, the second path."""


def check_ending(path: Path, endings: Iterable[str], what: str = "file of codes") -> None:
    """Raise CodeFileError if a file name does not have one of the given extensions."""
    known = list(endings)
    if path.suffix.lower() not in known and not path.is_dir():
        given = f"ends in {path.suffix}" if path.suffix else "has no extension"
        formats = " or ".join(filter(None, (", ".join(known[:-1]), known[-1])))
        raise CodeFileError(f"{path} {given}, but the name of a {what} must end in {formats}, which selects its format")


def unreadable(path: Path, what: str, failure: Exception) -> CodeFileError:
    """The error for a file that can't be read as a file of codes: it may be damaged, or something else."""
    if path.suffix.lower() in (SAFETENSORS, NPZ):
        return CodeFileError(f"{path} can't be read as a file of {what}: {brief(failure)}")
    return CodeFileError(
        f"{path} is not a file of {what}: encode it first (sqvae encode RUN {path} -o {what}{SAFETENSORS}), and decode "
        "the result"
    )


def brief(failure: Exception) -> str:
    """An error message in one line of limited length, because a malicious file may put anything into it."""
    text = " ".join(str(failure).split()) or type(failure).__name__
    return text if len(text) <= LONGEST_REASON else f"{text[:LONGEST_REASON]}..."


def sources(inputs: str | Path | Sequence[str | Path]) -> Sequence[str | Path]:
    """The sources to encode as a list; a single source may be passed by itself."""
    return [inputs] if isinstance(inputs, str | Path) else inputs


@contextlib.contextmanager
def written_as(path: Path, conversions: Mapping[str, Conversion]) -> Iterator[Path]:
    """Yield a path to write safetensors to; after the block, the file is converted to the format of its extension.

    Arguments:
        path: the file to write.
        conversions: the formats besides safetensors, by file extension.
    """
    check_ending(path, [SAFETENSORS, *conversions])
    conversion = conversions.get(path.suffix.lower())
    if conversion is None:
        yield path
        return
    with contextlib.ExitStack() as stack:
        try:
            check_ordinary(path)
            stack.enter_context(alone(path))
        except OSError as failure:
            raise CodeFileError(f"can't write {path}: {failure.strerror}") from failure
        first = beside(path)
        try:
            yield first
            conversion(first, path)
        finally:
            first.unlink(missing_ok=True)


class NpzFile(StreamedFile):
    """Writes an .npz file from a safetensors file.

    Arguments:
        path: the file to write.
        source: the safetensors file.
    """

    def __init__(self, path: Path, source: Path) -> None:
        super().__init__(path)
        self._source = source

    def complete(self, file: BinaryIO) -> None:
        with safe_open(self._source, framework="np") as source, zipfile.ZipFile(file, "w") as archive:
            for name in sorted(source.keys()):
                if name in WORDS:
                    _put_words(archive, name, _split(bytes(source.get_tensor(name))))
                else:
                    _put_rows(archive, name, source.get_slice(name))
            for name, value in sorted(source.metadata().items()):
                _put(archive, name, np.array(value if name in TEXTS else json.loads(value)))


def to_npz(source: Path, path: Path) -> None:
    """Convert a safetensors file to .npz."""
    with NpzFile(path, source):
        pass


def _put(archive: zipfile.ZipFile, name: str, value: NDArray[Any]) -> None:
    with _member(archive, name, value.dtype, value.shape) as member:
        member.write(value.tobytes())


def _put_rows(archive: zipfile.ZipFile, name: str, rows: Any) -> None:
    shape = tuple(rows.get_shape())
    kind = np.dtype(KINDS[rows.get_dtype()])
    step = max(1, PIECE // max(1, kind.itemsize * math.prod(shape[1:])))
    with _member(archive, name, kind, shape) as member:
        for start in range(0, shape[0], step):
            member.write(rows[start : min(start + step, shape[0])].tobytes())


def _put_words(archive: zipfile.ZipFile, name: str, words: list[str]) -> None:
    kind = np.dtype(f"<U{max(map(len, words), default=1) or 1}")
    step = max(1, PIECE // kind.itemsize)
    # Mostly padding, which compresses to almost nothing.
    with _member(archive, name, kind, (len(words),), zipfile.ZIP_DEFLATED) as member:
        for start in range(0, len(words), step):
            member.write(np.array(words[start : start + step], kind).tobytes())


@contextlib.contextmanager
def _member(
    archive: zipfile.ZipFile,
    name: str,
    kind: np.dtype[Any],
    shape: tuple[int, ...],
    compression: int = zipfile.ZIP_STORED,
) -> Iterator[IO[bytes]]:
    """Open an array of the archive for writing its bytes."""
    entry = zipfile.ZipInfo(f"{name}.npy")  # with a fixed date, so that equal codes give equal files
    entry.compress_type = compression
    header = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": shape}
    with archive.open(entry, "w", force_zip64=True) as member:
        np.lib.format.write_array_header_1_0(member, header)
        yield member


class StoredCodes(ABC):
    """A file of codes, opened for reading: tensors, words and metadata."""

    @property
    @abstractmethod
    def metadata(self) -> Mapping[str, str]:
        """The metadata of the file."""

    @abstractmethod
    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor."""

    @abstractmethod
    def type_of(self, name: str) -> np.dtype[Any] | str:
        """The data type of a tensor, as the format names it."""

    @abstractmethod
    def tensor(self, name: str) -> Tensor:
        """A whole tensor."""

    @abstractmethod
    def words(self, name: str) -> list[str]:
        """The words of a text tensor."""

    @abstractmethod
    def rows(self, name: str, counts: Iterable[int]) -> Iterator[Tensor]:
        """Yield the rows of a tensor from its beginning, in groups of the given sizes, as int64."""


class _Safetensors(StoredCodes):
    def __init__(self, file: Any) -> None:
        self._file = file

    @property
    def metadata(self) -> Mapping[str, str]:
        return self._file.metadata() or {}

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self._file.get_slice(name).get_shape())

    def type_of(self, name: str) -> np.dtype[Any] | str:
        return str(self._file.get_slice(name).get_dtype())

    def tensor(self, name: str) -> Tensor:
        tensor: Tensor = self._file.get_tensor(name)
        return tensor

    def words(self, name: str) -> list[str]:
        if self.type_of(name) != "U8" or len(self.shape(name)) != 1:
            raise ValueError(f"{name} must be bytes of text, got {self.type_of(name)} of the shape {self.shape(name)}")
        return _split(bytes(self.tensor(name).numpy()))

    def rows(self, name: str, counts: Iterable[int]) -> Iterator[Tensor]:
        tensor, start = self._file.get_slice(name), 0
        for count in counts:
            yield tensor[start : start + count].long()
            start += count


class _Npz(StoredCodes):
    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive

    @property
    def metadata(self) -> Mapping[str, str]:
        there = {name.removesuffix(".npy") for name in self._archive.namelist()}
        texts = {name: str(self._array(name)) for name in TEXTS if name in there}
        return texts | {name: json.dumps(self._array(name).tolist()) for name in NUMBERS if name in there}

    def shape(self, name: str) -> tuple[int, ...]:
        return self._header(name)[1]

    def type_of(self, name: str) -> np.dtype[Any] | str:
        return self._header(name)[0]

    def tensor(self, name: str) -> Tensor:
        return torch.from_numpy(self._array(name))

    def words(self, name: str) -> list[str]:
        kind, shape = self._header(name)
        if kind.kind != "U" or len(shape) != 1:
            raise ValueError(f"{name} must be text with one axis; got {kind} of the shape {shape}")
        return [word for some in self._pieces(name, self._steps(name)) for word in some.tolist()]

    def rows(self, name: str, counts: Iterable[int]) -> Iterator[Tensor]:
        for some in self._pieces(name, counts):
            yield torch.from_numpy(some.astype(np.int64))

    def _array(self, name: str) -> NDArray[Any]:
        with self._member(name) as member:
            kind, shape = _read_header(member)
            content = member.read(kind.itemsize * math.prod(shape))  # reads no more than the file contains
            return np.frombuffer(content, kind).reshape(shape).copy()

    def _header(self, name: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
        with self._member(name) as member:
            return _read_header(member)

    @contextlib.contextmanager
    def _member(self, name: str) -> Iterator[IO[bytes]]:
        """Open an array of the archive for reading its bytes; errors are reported as damage to the file."""
        try:
            with self._archive.open(f"{name}.npy") as member:
                yield member
        except FAILURES as failure:
            raise CodeFileError(f"{self._archive.filename} is damaged: {brief(failure)}. Encode again") from failure

    def _steps(self, name: str) -> Iterator[int]:
        kind, shape = self._header(name)
        step = max(1, PIECE // max(1, kind.itemsize))
        return (min(step, shape[0] - start) for start in range(0, shape[0], step))

    def _pieces(self, name: str, counts: Iterable[int]) -> Iterator[NDArray[Any]]:
        with self._member(name) as member:
            kind, (_, *inner) = _read_header(member)
            row = kind.itemsize * math.prod(inner)
            for count in counts:
                yield np.frombuffer(member.read(count * row), kind).reshape(count, *inner)


def _read_header(member: IO[bytes]) -> tuple[np.dtype[Any], tuple[int, ...]]:
    version = np.lib.format.read_magic(member)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, kind = read(member)
    if any(side < 0 for side in shape):
        raise ValueError(f"an array has the invalid shape {shape}")
    if fortran and len(shape) > 1:
        raise ValueError("an array is stored in Fortran order: save np.ascontiguousarray of it")
    return kind, shape


@contextlib.contextmanager
def opened(path: Path) -> Iterator[StoredCodes]:
    """Open a file of codes. The format is recognised from the first bytes."""
    with path.open("rb") as file:
        zipped = file.read(len(ZIPPED)) == ZIPPED
    if zipped:
        with zipfile.ZipFile(path) as archive:
            yield _Npz(archive)
    else:
        with safe_open(path, framework="pt") as file:
            yield _Safetensors(file)


def check_whole_numbers(file: StoredCodes, name: str) -> None:
    """Raise ValueError if a tensor does not contain integers."""
    kind = file.type_of(name)
    whole = kind.kind in "iu" if isinstance(kind, np.dtype) else kind in WHOLE
    if not whole:
        raise ValueError(f"{name} must be integers, got {kind}")


def check_range(codes: Tensor, codebook_size: int, path: Path) -> None:
    """Raise CodeFileError if codes of a file are not within its codebook."""
    if codes.numel() and not (int(codes.min()) >= 0 and int(codes.max()) < codebook_size):
        raise CodeFileError(
            f"{path} is damaged: codes must lie between 0 and {codebook_size - 1}, but it has codes from "
            f"{int(codes.min())} to {int(codes.max())}. Encode again"
        )


def is_checked(path: Path, metadata: Mapping[str, str], kind: str) -> bool:
    """Whether a file was verified by its checksum; raises CodeFileError if it is damaged. Version 1 has no checksum.

    The parts of an .npz file have their own checksums, which are verified when they are read.

    Arguments:
        path: the file.
        metadata: its metadata.
        kind: the kind of file, the first part of the format's name.
    """
    if metadata["format"] == f"{kind}-1":
        return False
    with path.open("rb") as file:
        start = file.read(8)
        if start.startswith(ZIPPED):
            return True
        header = json.loads(file.read(min(int.from_bytes(start, "little"), LONGEST_HEADER)))
        found = 0
        while piece := file.read(PIECE):
            found = zlib.crc32(piece, found)
    if metadata.get(CHECKSUM) != checksum(header, found):
        raise CodeFileError(f"{path} is damaged: its checksum does not match. Restore it from a copy, or encode again")
    return True


def versions_of(kind: str) -> tuple[str, str]:
    """The formats of a kind of file that can be read: the current one, and the one without a checksum."""
    return f"{kind}-{VERSION}", f"{kind}-1"


def _split(joined: bytes) -> list[str]:
    return [word.decode("utf-8", "surrogateescape") for word in joined.split(b"\0")[:-1]]
