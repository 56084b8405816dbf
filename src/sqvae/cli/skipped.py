"""Warnings about files that a command leaves out."""

from types import TracebackType

from sqvae.cli import console
from sqvae.data import Skipped
from sqvae.data.wording import counted, printable

MAX_NAMED = 3
"""The largest number of files with the same fault that are named one by one."""


class SkippedFiles:
    """Prints warnings about files that are left out. The first few files with each fault are named immediately, and the
    others are counted at the end of the `with` block.

    Arguments:
        noun: the word for one file.
    """

    def __init__(self, noun: str) -> None:
        self.noun = noun
        self._first: dict[str, Skipped] = {}
        self._counts: dict[str, int] = {}

    def __call__(self, skipped: Skipped) -> None:
        """Report one more file that is left out."""
        count = self._counts[skipped.fault] = self._counts.get(skipped.fault, 0) + 1
        self._first.setdefault(skipped.fault, skipped)
        if count <= MAX_NAMED:
            console.warning(f"left out: {printable(str(skipped))}")

    def note(self, sentence: str) -> None:
        """Print a note about files of other types, which are ignored."""
        console.note(printable(sentence))

    def __enter__(self) -> "SkippedFiles":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for fault, count in self._counts.items():
            if count > MAX_NAMED:
                more = counted(count - MAX_NAMED, f"more {self.noun}")
                console.warning(f"left out: {more} for the same reason as {printable(str(self._first[fault]))}")
