"""Recordings that have been found but not read: what every reader returns."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from sqvae.data.collection import PARTS, Part, Skipped
from sqvae.data.speech.places import Place
from sqvae.data.wording import printable

Opener: TypeAlias = Callable[[], Path | bytes]
"""Returns the path of a recording, or its bytes. May be called in any thread."""


@dataclass(frozen=True)
class Recording:
    """A recording of one speaker."""

    name: str
    """Its path below the source, with ``/`` between the parts. It is unique."""
    speaker: str | None
    """The speaker; None if the source does not say."""
    file_id: str
    """Its name in lists of ABX items."""
    open: Opener

    @classmethod
    def of_nobody(cls, place: Place, names: Sequence[str]) -> list["Recording"]:
        """Recordings whose speaker is unknown."""
        return [cls.at(place, name, None) for name in names]

    @classmethod
    def at(cls, place: Place, name: str, speaker: str | None, file_id: str | None = None) -> "Recording":
        """One of the recordings of a place. By default, its id is the file name without the extension."""
        who = None if speaker is None else legible(speaker)
        return cls(name, who, file_id or PurePosixPath(name).stem, lambda: place.open(name))


def item_names(file_id: str, speaker: str | None) -> tuple[str, ...]:
    """Possible names of a recording in lists of ABX items: NAME, SPEAKER/NAME or SPEAKER_NAME."""
    return (file_id,) if speaker is None else (file_id, f"{speaker}/{file_id}", f"{speaker}_{file_id}")


def legible(name: str) -> str:
    """A unique printable form of a name: bytes that are not valid text are escaped."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


class UnreadableRecordingError(ValueError):
    """A recording can't be read in strict mode."""

    def __init__(self, skipped: Skipped) -> None:
        super().__init__(f"{printable(skipped.name)} can't be read: {skipped.reason}")


@dataclass(frozen=True)
class FoundSpeech:
    """What a reader finds at a place."""

    parts: Mapping[Part, Sequence[Recording]]
    features: str = "zerospeech"
    """The default features of these recordings: a name in ``FEATURES``."""
    published: bool = False
    """Whether published results are compared on its test set; only few recordings are then held out from training."""
    notes: tuple[str, ...] = ()

    def in_order(self) -> list[tuple[Part, Sequence[Recording]]]:
        return [(part, self.parts[part]) for part in PARTS if self.parts.get(part)]


@dataclass(frozen=True)
class SpeechReader:
    """One storage format of recordings. To add one, add a file to ``readers`` and a line to ``SPEECH_READERS``."""

    name: str
    description: str
    recognises: Callable[[Sequence[str]], bool]
    """Whether recordings with these names (at least one) are stored in this format."""
    read: Callable[[Place], FoundSpeech]


def mostly(pattern: re.Pattern[str]) -> Callable[[Sequence[str]], bool]:
    """A function that recognises names if more than half of them match a pattern."""
    return lambda names: 2 * sum(pattern.fullmatch(name) is not None for name in names) > len(names)


def matching(pattern: re.Pattern[str], place: Place) -> tuple[list[re.Match[str]], list[str]]:
    """The names of recordings that match a pattern, and the others."""
    matches = {name: pattern.fullmatch(name) for name in place.names}
    return [match for match in matches.values() if match], [name for name, match in matches.items() if not match]
