"""One writer at a time: of two processes that would write the same file or folder, the second is told so and ends.

Locks lie in the folder for temporary files, under a name that follows from what is written. So nothing is left beside a
person's own files, and a lock of a process that was killed holds nobody up: the system lets go of it.
"""

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path

_held: ContextVar[frozenset[Path]] = ContextVar("held", default=frozenset())
"""What this thread of work has claimed already: it may write to it in several steps."""


class BusyError(OSError):
    """Another process is writing there."""


@contextlib.contextmanager
def alone(path: Path) -> Iterator[None]:
    """Within the block, no other process of this user on this machine is in such a block for the same path.

    Arguments:
        path: of a file or a folder, which need not be there yet.
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
    from filelock import FileLock, Timeout  # which takes time, and most commands write nothing

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
        return  # without a place for locks there are none; what is written is whole all the same


def _folder() -> Path:
    """A folder that is this user's alone."""
    who = os.getuid() if hasattr(os, "getuid") else ""
    folder = Path(tempfile.gettempdir()) / f"sqvae-locks-{who}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or (hasattr(os, "getuid") and folder.stat().st_uid != who):
        raise PermissionError(f"{folder} is another user's")
    return folder
