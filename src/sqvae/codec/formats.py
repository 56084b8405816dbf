"""The formats of files of codes: safetensors, numpy's .npz, and whatever else can be made of the first.

Codes are written as safetensors, straight to the disk. A file in another format is made of that when all codes are
there, piece by piece: memory stays flat, and the disk holds the codes twice meanwhile.

In an .npz file the tensors have the names that they have in safetensors; names are arrays of text; and what is metadata
there is an array here, of a number, some numbers or a text.
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

from sqvae.codec.aside import CHECKSUM, Aside, CodeFileError, checksum
from sqvae.files import alone, beside, check_ordinary

SAFETENSORS = ".safetensors"
NPZ = ".npz"

WORDS = ("names", "speakers")
"""Tensors that hold text: UTF-8, each word ended by a zero byte."""
TEXTS = ("format", "fingerprint", CHECKSUM)
NUMBERS = ("codebook_size", "picture_shape", "codes_per_second", "rate")
"""Metadata: text, and JSON of a number or of some."""

PIECE = 1 << 22
"""Bytes that are copied at a time."""

WHOLE = ("U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64")
"""Types of whole numbers in safetensors."""

KINDS = {"U8": "<u1", "U16": "<u2", "I32": "<i4"}
"""Of numbers, as the one format calls them and the other."""

VERSION = 2
"""Of files of codes, with a checksum."""

LONGEST_HEADER = 1 << 20
"""Bytes of a safetensors file that are read as its header, whatever it says of itself."""

UNCHECKED = (
    "{} was written by an earlier version, without a checksum, so that it can't be told whether it is still as it was "
    "written; `sqvae encode` writes one now"
)
"""What is to be said of a file of codes whose content can't be checked."""

LONGEST_REASON = 200
"""Characters of what is said to be wrong with a file."""

ZIPPED = b"PK\x03\x04"

FAILURES = (
    *(SafetensorError, zipfile.BadZipFile, zlib.error, OSError, EOFError, MemoryError),
    *(SyntaxError, TokenError),  # the header of an array is read as a piece of Python
    *(LookupError, ValueError, TypeError, OverflowError, RuntimeError),  # and so NotImplementedError, RecursionError
)
"""What reading a damaged file, or one of another kind, may raise."""

Conversion = Callable[[Path, Path], None]
"""Makes a file of another format, the second path, of one in safetensors, the first."""


def check_ending(path: Path, endings: Iterable[str], what: str = "file of codes") -> None:
    """Raise if a name does not end as those of a file of codes do, or of something else."""
    known = list(endings)
    if path.suffix.lower() not in known and not path.is_dir():
        given = f"ends in {path.suffix}" if path.suffix else "has no ending"
        formats = " or ".join(filter(None, (", ".join(known[:-1]), known[-1])))
        raise CodeFileError(f"{path} {given}, and the name of a {what} must end in {formats}: that is its format")


def unreadable(path: Path, what: str, failure: Exception) -> CodeFileError:
    """What to raise for a file that can't be read as one of codes: it may be damaged, or something else altogether."""
    if path.suffix.lower() in (SAFETENSORS, NPZ):
        return CodeFileError(f"{path} can't be read as a file of {what}: {brief(failure)}")
    return CodeFileError(
        f"{path} is no file of {what}: encode it first (sqvae encode RUN {path} -o {what}{SAFETENSORS}), and decode "
        "what that has written"
    )


def brief(failure: Exception) -> str:
    """What has failed, in a line: a hostile file may put anything into it."""
    text = " ".join(str(failure).split()) or type(failure).__name__
    return text if len(text) <= LONGEST_REASON else f"{text[:LONGEST_REASON]}..."


def sources(inputs: str | Path | Sequence[str | Path]) -> Sequence[str | Path]:
    """What is to be encoded, where a single source may be given by itself."""
    return [inputs] if isinstance(inputs, str | Path) else inputs


@contextlib.contextmanager
def written_as(path: Path, conversions: Mapping[str, Conversion]) -> Iterator[Path]:
    """Within the block, where to write safetensors; after it, the file has the format that its ending names.

    Arguments:
        path: of the file that is wanted.
        conversions: the formats that there are beside safetensors, by their endings.
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


class NpzFile(Aside):
    """An .npz file, made of a file in safetensors.

    Arguments:
        path: of the file.
        source: the file that it is made of.
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
    """Make an .npz file of one in safetensors."""
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
    # Mostly padding, which takes no room once deflated.
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
    """An array of the archive, whose bytes are to be written."""
    entry = zipfile.ZipInfo(f"{name}.npy")  # with the date of all such: the same codes make the same file
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
        """What the file says of itself."""

    @abstractmethod
    def shape(self, name: str) -> tuple[int, ...]:
        """Of a tensor."""

    @abstractmethod
    def type_of(self, name: str) -> np.dtype[Any] | str:
        """Of a tensor's numbers, as the format calls it."""

    @abstractmethod
    def tensor(self, name: str) -> Tensor:
        """All of a tensor."""

    @abstractmethod
    def words(self, name: str) -> list[str]:
        """Text."""

    @abstractmethod
    def rows(self, name: str, counts: Iterable[int]) -> Iterator[Tensor]:
        """A tensor from its beginning, so many rows at a time, as int64."""


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
            raise ValueError(f"{name} must be text, one row of it; got {kind} of the shape {shape}")
        return [word for some in self._pieces(name, self._steps(name)) for word in some.tolist()]

    def rows(self, name: str, counts: Iterable[int]) -> Iterator[Tensor]:
        for some in self._pieces(name, counts):
            yield torch.from_numpy(some.astype(np.int64))

    def _array(self, name: str) -> NDArray[Any]:
        with self._member(name) as member:
            kind, shape = _read_header(member)
            content = member.read(kind.itemsize * math.prod(shape))  # no more than there is, whatever it claims
            return np.frombuffer(content, kind).reshape(shape).copy()

    def _header(self, name: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
        with self._member(name) as member:
            return _read_header(member)

    @contextlib.contextmanager
    def _member(self, name: str) -> Iterator[IO[bytes]]:
        """An array of the archive, whose bytes are to be read; what goes wrong with that is the file's fault."""
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
        raise ValueError(f"an array is said to have the shape {shape}")
    if fortran and len(shape) > 1:
        raise ValueError("an array is stored column by column: save np.ascontiguousarray of it")
    return kind, shape


@contextlib.contextmanager
def opened(path: Path) -> Iterator[StoredCodes]:
    """A file of codes in whichever format, by how it begins."""
    with path.open("rb") as file:
        zipped = file.read(len(ZIPPED)) == ZIPPED
    if zipped:
        with zipfile.ZipFile(path) as archive:
            yield _Npz(archive)
    else:
        with safe_open(path, framework="pt") as file:
            yield _Safetensors(file)


def check_whole_numbers(file: StoredCodes, name: str) -> None:
    """Raise if a tensor's numbers are not whole ones, as codes are."""
    kind = file.type_of(name)
    whole = kind.kind in "iu" if isinstance(kind, np.dtype) else kind in WHOLE
    if not whole:
        raise ValueError(f"{name} must be whole numbers, got {kind}")


def check_range(codes: Tensor, codebook_size: int, path: Path) -> None:
    """Raise if codes of a file are none of its codebook's."""
    if codes.numel() and not (int(codes.min()) >= 0 and int(codes.max()) < codebook_size):
        raise CodeFileError(
            f"{path} is damaged: codes must lie between 0 and {codebook_size - 1}, and it has some from "
            f"{int(codes.min())} to {int(codes.max())}. Encode again"
        )


def is_checked(path: Path, metadata: Mapping[str, str], kind: str) -> bool:
    """Whether a file is as it was written, by its checksum; it raises if it is not. Files of version 1 have none.

    The parts of an .npz file are compared with theirs as they are read.

    Arguments:
        metadata: what the file says of itself.
        kind: of the file, the first part of its format's name.
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
        raise CodeFileError(
            f"{path} is damaged: it is not as it was written, by its checksum. Restore it from a copy, or encode again"
        )
    return True


def versions_of(kind: str) -> tuple[str, str]:
    """The formats of a kind of file that can be read: the present one, and the one without a checksum."""
    return f"{kind}-{VERSION}", f"{kind}-1"


def _split(joined: bytes) -> list[str]:
    return [word.decode("utf-8", "surrogateescape") for word in joined.split(b"\0")[:-1]]
