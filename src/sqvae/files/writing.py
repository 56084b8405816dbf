"""Atomic writing: a file is written under a unique temporary name and renamed when it is complete.

After a kill, a full disk or two writers at once, the file's name holds the old file or one of the new files, never a
part of one.
"""

import contextlib
import hashlib
import os
import platform
import re
import shutil
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from uuid import uuid4

_PARTIAL = re.compile(r"\..*\.(?P<machine>[0-9a-f]{8})-(?P<process>[0-9]+)-[0-9a-f]{8}\.partial(\.[^.]*)?")
"""The temporary name of a file that is being written, or was when its process was killed."""

_PIECE = 1 << 22
"""Number of bytes to read at a time."""

_LONGEST = 40
"""Number of characters of the file's own name in its temporary name. Names are limited to 255 bytes."""


class UncheckedWarning(UserWarning):
    """A file without a checksum was read, so damage to it can't be detected."""


def beside(path: Path) -> Path:
    """A unique temporary name in the same folder, for a file that is being made.

    The name contains the machine and the process that writes it, and ends with the file's own suffix.
    """
    owner = f"{_machine()}-{os.getpid()}-{uuid4().hex[:8]}"
    return path.with_name(f".{path.name.strip('.')[:_LONGEST]}.{owner}.partial{path.suffix}")


@contextlib.contextmanager
def written(path: Path, *, lasting: bool = True) -> Iterator[Path]:
    """Yield a temporary path to write to; the file is renamed to its own path after the block, unless an error occurs.

    Arguments:
        path: where the file is to be. A symbolic link is followed and kept.
        lasting: wait until the file is on the disk, so that it survives a power cut.
    """
    target = Path(os.path.realpath(path))
    check_ordinary(target)
    partial = beside(target)
    try:
        yield partial
        if lasting:
            with partial.open("rb") as file:
                os.fsync(file.fileno())
        partial.replace(target)
        if lasting:
            sync(target.parent)
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)


def write_text(path: Path, text: str, *, lasting: bool = True) -> None:
    """Write text to a file atomically, in UTF-8."""
    with written(path, lasting=lasting) as temporary:
        temporary.write_text(text, encoding="utf-8")


def checksum_of(path: Path) -> int:
    """The CRC-32 of a file. It detects accidental damage and is fast to compute."""
    found = 0
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            found = zlib.crc32(piece, found)
    return found


def check_ordinary(path: Path) -> None:
    """Raise an error if a path is a folder, a device or a pipe, which a file must not replace."""
    if path.is_dir():
        raise IsADirectoryError(None, "it is a folder; name a file")
    if path.exists() and not path.is_file():
        raise OSError(None, "it is a device or a pipe; name a file")


@contextlib.contextmanager
def folder_within(folder: Path, purpose: str) -> Iterator[Path]:
    """Yield a temporary folder within a folder, for files that are moved up when all are complete. It is then removed.

    Arguments:
        folder: the folder that the files are for; it is created if necessary.
        purpose: a word for the temporary folder's name.
    """
    folder.mkdir(parents=True, exist_ok=True)
    remove_abandoned(folder)
    within = beside(folder / purpose)
    within.mkdir()
    try:
        yield within
    finally:
        shutil.rmtree(within, ignore_errors=True)


def remove_abandoned(folder: Path) -> None:
    """Remove the temporary files and folders of processes on this machine that were killed."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            named = _PARTIAL.fullmatch(entry.name)
            if named and named["machine"] == _machine() and not _is_alive(int(named["process"])):
                with contextlib.suppress(OSError):
                    remove = shutil.rmtree if entry.is_dir(follow_symlinks=False) else os.unlink
                    remove(entry.path)


def sync(folder: Path) -> None:
    """Flush a folder to the disk, so that renames in it survive a power cut, where the system supports it."""
    with contextlib.suppress(OSError, AttributeError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # for instance, the process belongs to another user
        return True
    return True


@cache
def _machine() -> str:
    return hashlib.sha256(platform.node().encode()).hexdigest()[:8]
