"""Phrases that notes and errors share."""

from collections.abc import Sequence


def counted(number: int, noun: str) -> str:
    """ "1 picture", "2,000 pictures"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def unreadable(number: int, noun: str) -> str:
    """ "1 picture could not be read and is left out"."""
    return f"{counted(number, noun)} could not be read and {'is' if number == 1 else 'are'} left out"


def listed(names: Sequence[object], most: int) -> str:
    """ "a, b and 3 more"."""
    shown = ", ".join(printable(str(name)) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"


def printable(name: str) -> str:
    """A file's name with a mark where its bytes are not text, which a terminal would refuse to print."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
