"""What is said of pictures and recordings that a command leaves out."""

from types import TracebackType

from sqvae.cli import console
from sqvae.data import Skipped
from sqvae.data.wording import counted, printable

SHOWN = 3
"""How many with the same fault get a line of their own."""


class LeftOut:
    """Takes what is left out, one by one. The first few of each fault are named at once, the others counted at the end
    of the block.

    Arguments:
        noun: what one of them is.
    """

    def __init__(self, noun: str) -> None:
        self.noun = noun
        self._first: dict[str, Skipped] = {}
        self._counts: dict[str, int] = {}

    def __call__(self, skipped: Skipped) -> None:
        """One more is left out."""
        count = self._counts[skipped.fault] = self._counts.get(skipped.fault, 0) + 1
        self._first.setdefault(skipped.fault, skipped)
        if count <= SHOWN:
            console.warning(f"left out: {printable(str(skipped))}")

    def note(self, sentence: str) -> None:
        """Files are passed over that are none of what is wanted."""
        console.note(printable(sentence))

    def __enter__(self) -> "LeftOut":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for fault, count in self._counts.items():
            if count > SHOWN:
                more = counted(count - SHOWN, f"more {self.noun}")
                console.warning(f"left out: {more} for the same reason as {printable(str(self._first[fault]))}")
