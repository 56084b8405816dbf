"""ZeroSpeech 2019 as downloaded: ``train/voice`` and ``train/unit`` for training, ``train/parallel/voice`` for testing.
File names begin with the speaker. ``test``, on which ABX is measured, has other speakers and belongs to no set."""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from sqvae.data.collection import Part
from sqvae.data.speech.places import Place
from sqvae.data.speech.recordings import FoundSpeech, Recording, SpeechReader, matching

_NAME = re.compile(r"(?P<above>(?:.*/)?)train/(?P<folder>voice|unit|parallel/voice)/(?P<speaker>[A-Z]\d+)_[^/]+")
_PARTS: dict[str, Part] = {"voice": "train", "unit": "train", "parallel/voice": "test"}
_LANGUAGE = "english/"


def _recognises(names: Sequence[str]) -> bool:
    folders = {match["folder"] for match in map(_NAME.fullmatch, names) if match is not None}
    return {"voice", "unit"} <= folders


def _read(place: Place) -> FoundSpeech:
    matches, others = matching(_NAME, place)
    above = {match["above"] for match in matches}
    language = min(above, key=lambda folder: (not folder.endswith(_LANGUAGE), folder))
    others += [match.string for match in matches if match["above"] != language]
    parts: dict[Part, list[Recording]] = {"rest": Recording.of_nobody(place, others)}
    for match in matches:
        if match["above"] == language:
            parts.setdefault(_PARTS[match["folder"]], []).append(Recording.at(place, match.string, match["speaker"]))
    notes = [] if len(above) == 1 else [f"of {len(above)} languages, {PurePosixPath(language).name} is used"]
    return FoundSpeech(parts, "zerospeech", published=True, notes=tuple(notes))


ZEROSPEECH = SpeechReader("zerospeech", "ZeroSpeech 2019", _recognises, _read)
