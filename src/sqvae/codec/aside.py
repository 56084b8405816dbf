"""Files that are written as their content comes, to the side, and renamed when whole."""

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

from sqvae.files import BusyError, alone, beside, check_ordinary, remove_abandoned, sync

HEADER = 4096
"""Bytes set aside for the header, its length included."""

CHECKSUM = "checksum"
"""The entry of the metadata that the rest is compared with when it is read."""

BYTES = {"U8": 1, "U16": 2, "I32": 4}


class CodeFileError(Exception):
    """A file of codes can't be written, read or decoded; the message says why, and what to do."""


class DamageError(Exception):
    """Bytes that can't have been written as they are. Says what is wrong; whoever knows the file says which it is."""


Writer = TypeVar("Writer", bound="Aside")


class Aside(ABC):
    """Writes one file. Within its block the file does not exist under its name; after it, it is whole.

    If the block ends by an error, Ctrl-C or whatever else raises, nothing is left.

    Arguments:
        path: of the file.
    """

    opening = b""
    """What comes first."""

    def __init__(self, path: Path) -> None:
        self.path = Path(os.path.realpath(path))  # a link is followed, and stays
        self._partial = beside(self.path)
        self._file: BinaryIO | None = None
        self._alone = contextlib.ExitStack()

    @abstractmethod
    def complete(self, file: BinaryIO) -> None:
        """Put what is left."""

    def put(self, content: bytes) -> None:
        """Add to the file."""
        assert self._file is not None
        try:
            self._file.write(content)
        except OSError as failure:
            raise self._failed(failure) from failure

    def __enter__(self: Writer) -> Writer:
        try:
            check_ordinary(self.path)
            self._alone.enter_context(alone(self.path))
            self.path.parent.mkdir(parents=True, exist_ok=True)
            remove_abandoned(self.path.parent)
            self._file = self._partial.open("xb")
            self._file.write(self.opening)
        except OSError as failure:
            raise self._failed(failure) from failure
        except BaseException:
            self._partial.unlink(missing_ok=True)
            self._alone.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._file is not None
        try:
            with self._file:
                if kind is None:
                    self.complete(self._file)
                    self._file.flush()
                    os.fsync(self._file.fileno())
            if kind is None:
                self._partial.replace(self.path)
                sync(self.path.parent)
        except OSError as failure:
            raise self._failed(failure) from failure
        finally:
            self._partial.unlink(missing_ok=True)
            self._alone.close()

    def _failed(self, failure: OSError) -> CodeFileError:
        self._alone.close()
        if isinstance(failure, BusyError):
            return CodeFileError(f"can't write {self.path}: {failure.strerror}")
        with contextlib.suppress(OSError):
            self._partial.unlink(missing_ok=True)
        return CodeFileError(f"can't write {self.path}: {failure.strerror or failure}; nothing is left of it")


def checksum(header: Mapping[str, Any], content: int) -> str:
    """Of a file in the safetensors format: what its header says, but for the checksum itself, and its content.

    Arguments:
        content: the CRC-32 of all that follows the header.
    """
    said = {name: value for name, value in header.get("__metadata__", {}).items() if name != CHECKSUM}
    text = json.dumps({**header, "__metadata__": said}, sort_keys=True).encode()
    return f"{zlib.crc32(text, content):08x}"


class PlainFile(Aside):
    """A file of nothing but what is put."""

    def complete(self, file: BinaryIO) -> None:
        """Nothing is left to be put."""


class AsideWriter(Aside):
    """Writes one file in the safetensors format.

    The header is as long at the start as it will be at the end, so that content goes straight to the disk.

    Arguments:
        path: of the file.
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
        """Put what is left; and say, for the header, the metadata, and type and shape of each tensor as they follow."""

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
