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
"""Gives the file of a recording, or its bytes, in whichever thread."""


@dataclass(frozen=True)
class Recording:
    """A recording of one speaker."""

    name: str
    """Its path below the source, with ``/`` between the parts; no two have the same."""
    speaker: str | None
    """None where the source does not say."""
    file_id: str
    """What lists of ABX items call it."""
    open: Opener

    @classmethod
    def of_nobody(cls, place: Place, names: Sequence[str]) -> list["Recording"]:
        """Recordings of which the source does not say who speaks."""
        return [cls.at(place, name, None) for name in names]

    @classmethod
    def at(cls, place: Place, name: str, speaker: str | None, file_id: str | None = None) -> "Recording":
        """One of the recordings of a place, by default with its file's name without the ending as its id."""
        who = None if speaker is None else legible(speaker)
        return cls(name, who, file_id or PurePosixPath(name).stem, lambda: place.open(name))


def item_names(file_id: str, speaker: str | None) -> tuple[str, ...]:
    """What lists of ABX items may call a recording: NAME, SPEAKER/NAME or SPEAKER_NAME."""
    return (file_id,) if speaker is None else (file_id, f"{speaker}/{file_id}", f"{speaker}_{file_id}")


def legible(name: str) -> str:
    """A name that can be printed and is like no other: bytes that are not text are written as numbers."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


class UnreadableRecordingError(ValueError):
    """A recording can't be read where every one must be."""

    def __init__(self, skipped: Skipped) -> None:
        super().__init__(f"{printable(skipped.name)} can't be read: {skipped.reason}")


@dataclass(frozen=True)
class FoundSpeech:
    """What a reader finds at a place."""

    parts: Mapping[Part, Sequence[Recording]]
    features: str = "zerospeech"
    """What suits these recordings, where nobody says otherwise: a name in ``FEATURES``."""
    published: bool = False
    """Whether results on its test set are compared: of the others, few are then kept from training."""
    notes: tuple[str, ...] = ()

    def in_order(self) -> list[tuple[Part, Sequence[Recording]]]:
        return [(part, self.parts[part]) for part in PARTS if self.parts.get(part)]


@dataclass(frozen=True)
class SpeechReader:
    """One way in which recordings are stored. To add one: one file here, and one line in ``SPEECH_READERS``."""

    name: str
    description: str
    recognises: Callable[[Sequence[str]], bool]
    """Whether recordings with these names, of which there is at least one, are stored in this way."""
    read: Callable[[Place], FoundSpeech]


def mostly(pattern: re.Pattern[str]) -> Callable[[Sequence[str]], bool]:
    """Recognises names of which more than half have a pattern."""
    return lambda names: 2 * sum(pattern.fullmatch(name) is not None for name in names) > len(names)


def matching(pattern: re.Pattern[str], place: Place) -> tuple[list[re.Match[str]], list[str]]:
    """The names of recordings that have a pattern, and the others."""
    matches = {name: pattern.fullmatch(name) for name in place.names}
    return [match for match in matches.values() if match], [name for name, match in matches.items() if not match]
