"""Locks: only one process at a time writes to a file or folder; a second one gets an error.

Lock files are kept in the system's temporary folder, under a name derived from the path that is written. So nothing is
left beside the user's own files, and the operating system releases the lock of a process that was killed.
"""

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path

_held: ContextVar[frozenset[Path]] = ContextVar("held", default=frozenset())
"""The paths that this context has already locked; it may lock them again."""


class BusyError(OSError):
    """Another process is writing to the same path."""


@contextlib.contextmanager
def alone(path: Path) -> Iterator[None]:
    """Hold a lock on a path during the block. It excludes other processes of this user on this machine.

    Arguments:
        path: a file or folder, which need not exist yet.
    """
    target = Path(os.path.realpath(path))
    if target in _held.get():
        yield
        return
    with contextlib.ExitStack() as stack:
        _acquire(target, stack)
        token = _held.set(_held.get() | {target})
        try:
            yield
        finally:
            _held.reset(token)


def _acquire(target: Path, stack: contextlib.ExitStack) -> None:
    from filelock import FileLock, Timeout  # imported here because it is slow and most commands write nothing

    try:
        place = _folder() / hashlib.sha256(os.fsencode(target)).hexdigest()[:32]
        owner = place.with_suffix(".owner")
        stack.enter_context(FileLock(place.with_suffix(".lock")).acquire(timeout=0))
        owner.write_text(str(os.getpid()))
    except Timeout:
        who = ""
        with contextlib.suppress(OSError):
            who = f" {owner.read_text()}"
        raise BusyError(
            None, f"another process{who} is writing it. Wait for it, stop it, or choose another name"
        ) from None
    except OSError:
        return  # without a folder for lock files there is no lock; files are still written atomically


def _folder() -> Path:
    """The folder for lock files, which belongs to this user only."""
    who = os.getuid() if hasattr(os, "getuid") else ""
    folder = Path(tempfile.gettempdir()) / f"sqvae-locks-{who}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or (hasattr(os, "getuid") and folder.stat().st_uid != who):
        raise PermissionError(f"{folder} belongs to another user")
    return folder
