"""Files that are written as a stream, atomically: under a temporary name, and renamed when complete."""

import contextlib
import json
import math
import os
import zlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, TypeVar

from sqvae.files import BusyError, alone, check_ordinary, remove_abandoned, written

HEADER = 4096
"""Number of bytes reserved for the header, including its length."""

CHECKSUM = "checksum"
"""The entry of the metadata with the checksum of the rest."""

BYTES = {"U8": 1, "U16": 2, "I32": 4}


class CodeFileError(Exception):
    """A file of codes can't be written, read or decoded; the message says why, and what to do."""


class DamageError(Exception):
    """Bytes are damaged. The message says what is wrong; the caller adds the path of the file."""


Writer = TypeVar("Writer", bound="StreamedFile")


class StreamedFile(ABC):
    """Writes one file as a stream. The file appears under its name, complete, after the block.

    If the block ends with an error or Ctrl-C, nothing is left of it.

    Arguments:
        path: the file to write.
    """

    opening = b""
    """The bytes at the beginning of the file."""

    def __init__(self, path: Path) -> None:
        self.path = Path(os.path.realpath(path))  # a symbolic link is followed and kept
        self._file: BinaryIO | None = None
        self._open = contextlib.ExitStack()

    @abstractmethod
    def complete(self, file: BinaryIO) -> None:
        """Write the rest of the file."""

    def put(self, content: bytes) -> None:
        """Append to the file."""
        assert self._file is not None
        try:
            self._file.write(content)
        except OSError as failure:
            raise self._failed(failure) from failure

    def __enter__(self: Writer) -> Writer:
        try:
            with contextlib.ExitStack() as stack:
                check_ordinary(self.path)
                stack.enter_context(alone(self.path))
                self.path.parent.mkdir(parents=True, exist_ok=True)
                remove_abandoned(self.path.parent)
                temporary = stack.enter_context(written(self.path))
                self._file = stack.enter_context(temporary.open("xb"))
                self._file.write(self.opening)
                self._open = stack.pop_all()
        except OSError as failure:
            raise self._failed(failure) from failure
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._file is not None
        try:
            if error is not None:
                self._open.__exit__(kind, error, at)
                return
            with self._open:
                self.complete(self._file)
        except OSError as failure:
            raise self._failed(failure) from failure

    def _failed(self, failure: OSError) -> CodeFileError:
        if isinstance(failure, BusyError):
            return CodeFileError(f"can't write {self.path}: {failure.strerror}")
        return CodeFileError(f"can't write {self.path}: {failure.strerror or failure}; nothing is left of it")


def checksum(header: Mapping[str, Any], content: int) -> str:
    """The checksum of a safetensors file: of its header, except for the checksum itself, and of its content.

    Arguments:
        header: the header.
        content: the CRC-32 of everything after the header.
    """
    said = {name: value for name, value in header.get("__metadata__", {}).items() if name != CHECKSUM}
    text = json.dumps({**header, "__metadata__": said}, sort_keys=True).encode()
    return f"{zlib.crc32(text, content):08x}"


class PlainFile(StreamedFile):
    """A file of raw bytes."""

    def complete(self, file: BinaryIO) -> None:
        """Nothing to add."""


class SafetensorsWriter(StreamedFile):
    """Writes one file in the safetensors format as a stream.

    The length of the header is fixed from the start, so that content goes directly to the disk.

    Arguments:
        path: the file to write.
    """

    opening = bytes(HEADER)

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._sum = 0

    def put(self, content: bytes) -> None:
        super().put(content)
        self._sum = zlib.crc32(content, self._sum)

    @abstractmethod
    def finish(self) -> tuple[Mapping[str, str], Mapping[str, tuple[str, list[int]]]]:
        """Write the rest; returns the metadata, and the type and shape of each tensor in order, for the header."""

    def complete(self, file: BinaryIO) -> None:
        metadata, tensors = self.finish()
        header: dict[str, object] = {"__metadata__": dict(metadata)}
        start = 0
        for name, (kind, shape) in tensors.items():
            end = start + math.prod(shape) * BYTES[kind]
            header[name] = {"dtype": kind, "shape": shape, "data_offsets": [start, end]}
            start = end
        header["__metadata__"] = {**metadata, CHECKSUM: checksum(header, self._sum)}
        text = json.dumps(header).encode().ljust(HEADER - 8)
        file.seek(0)
        file.write(len(text).to_bytes(8, "little") + text)
