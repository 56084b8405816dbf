"""What is written to: nothing that is there is replaced unless somebody says so, and one process writes at a time."""

import contextlib
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from pathlib import Path

from sqvae.files.locking import BusyError, alone

BEGINNING = 20_000
"""Bytes in which a page says what it is."""

NAMED = 3
"""Files that are named in an error; others are counted."""

_ADVICE = "Choose another name with `path=`, or pass `overwrite=True` to replace {}"

_claims: ContextVar[contextlib.ExitStack] = ContextVar("claims")


@contextlib.contextmanager
def claims_end_here() -> Iterator[None]:
    """What is claimed within the block (:func:`claim`) is free after it."""
    with contextlib.ExitStack() as stack:
        token = _claims.set(stack)
        try:
            yield
        finally:
            _claims.reset(token)


def claim(target: Path) -> None:
    """Keep other processes from writing to a file or folder, until the block of :func:`claims_end_here` ends.

    Outside of such a block nothing is claimed. It raises a :class:`BusyError` if another process writes there.
    """
    stack = _claims.get(None)
    if stack is None:
        return
    try:
        stack.enter_context(alone(target))
    except BusyError as busy:
        raise BusyError(f"can't write {target}: {busy.strerror} with `path=`") from None


def check_free(target: Path, overwrite: bool) -> None:
    """Raise if a file would take the place of another, is just being written, or has the name of a folder."""
    if target.is_dir():
        raise IsADirectoryError(f"can't write {target}: it is a folder; name a file with `path=`")
    claim(target)
    check_all_free([target], overwrite)


def check_all_free(targets: Iterable[Path], overwrite: bool) -> None:
    """Raise if any of some files would take the place of another."""
    there = [] if overwrite else [target for target in targets if target.exists()]
    if len(there) == 1:
        raise FileExistsError(f"{there[0]} is there already, and is left as it is. {_ADVICE.format('it')}")
    if there:
        # A name whose bytes are not text can't be printed.
        names = [str(one).encode("utf-8", "surrogateescape").decode("utf-8", "replace") for one in there[:NAMED]]
        more = f" and {len(there) - NAMED:,} more" if len(there) > NAMED else ""
        raise FileExistsError(
            f"{', '.join(names)}{more} are there already, and are left as they are. {_ADVICE.format('them')}"
        )


def check_ours(target: Path, words: str, overwrite: bool) -> None:
    """Raise if a page that is renewed again and again would take the place of something else.

    Arguments:
        words: with which our own pages begin.
    """
    if target.is_file() and words not in target.read_bytes()[:BEGINNING].decode("utf-8", "replace"):
        check_free(target, overwrite)
