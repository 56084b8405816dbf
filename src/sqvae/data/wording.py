"""Phrases that notes and error messages share."""

from collections.abc import Sequence


def counted(number: int, noun: str) -> str:
    """A number with a noun: "1 image", "2,000 images"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def unreadable(number: int, noun: str) -> str:
    """A note: "1 image could not be read and was skipped"."""
    return f"{counted(number, noun)} could not be read and {'was' if number == 1 else 'were'} skipped"


def listed(names: Sequence[object], most: int) -> str:
    """Names, at most a given number of them: "a, b and 3 more"."""
    shown = ", ".join(printable(str(name)) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"


def printable(name: str) -> str:
    """A file name in which bytes that are not valid text are replaced, so that a terminal can print it."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
