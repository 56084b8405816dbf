"""Files are written to the side, under a name that is nobody else's, and renamed when they are whole.

So a kill, a full disk or two writers at once leave under a file's name what was there before, or one of the new files,
and never a part of one.
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
"""The name of what is being written, or was by a process that was killed."""

_PIECE = 1 << 22
"""Bytes that are read at a time."""

_LONGEST = 40
"""So many characters of a file's own name stand in that: names may not be longer than 255 bytes."""


class UncheckedWarning(UserWarning):
    """A file is read of which it can't be told whether it is as it was written."""


def beside(path: Path) -> Path:
    """A name in the same folder that is nobody else's, for what is to become the file or helps to make it.

    It says which process writes it, on which machine, and ends as the file does.
    """
    owner = f"{_machine()}-{os.getpid()}-{uuid4().hex[:8]}"
    return path.with_name(f".{path.name.strip('.')[:_LONGEST]}.{owner}.partial{path.suffix}")


@contextlib.contextmanager
def written(path: Path, *, lasting: bool = True) -> Iterator[Path]:
    """Where to write a file, beside its place. After the block it is in its place, and whole; after an error it is not.

    Arguments:
        path: of the file. A link is followed, and stays.
        lasting: wait until the file is on the disk, so that a power cut can't take it back either.
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
    """Write a text in UTF-8."""
    with written(path, lasting=lasting) as aside:
        aside.write_text(text, encoding="utf-8")


def checksum_of(path: Path) -> int:
    """The CRC-32 of a file: against accidents, and quick to compute."""
    found = 0
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            found = zlib.crc32(piece, found)
    return found


def check_ordinary(path: Path) -> None:
    """Raise if a file is to have the name of a folder, or of a device, whose place it would take."""
    if path.is_dir():
        raise IsADirectoryError(None, "it is a folder; name a file")
    if path.exists() and not path.is_file():
        raise OSError(None, "it is a device or a pipe; name a file")


@contextlib.contextmanager
def folder_within(folder: Path, purpose: str) -> Iterator[Path]:
    """A folder in a folder, for files that are to be moved up once all of them are there. It is removed in the end.

    Arguments:
        purpose: a word for its name.
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
    """Remove what processes of this machine were writing in a folder when they were killed."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            named = _PARTIAL.fullmatch(entry.name)
            if named and named["machine"] == _machine() and not _is_alive(int(named["process"])):
                with contextlib.suppress(OSError):
                    remove = shutil.rmtree if entry.is_dir(follow_symlinks=False) else os.unlink
                    remove(entry.path)


def sync(folder: Path) -> None:
    """Make renames in a folder last, where the system has a way to."""
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
    except OSError:  # of another user, for instance
        return True
    return True


@cache
def _machine() -> str:
    return hashlib.sha256(platform.node().encode()).hexdigest()[:8]
