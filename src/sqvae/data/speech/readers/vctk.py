"""VCTK as downloaded, a folder for each speaker: version 0.80 (``wav48``), or 0.92 (``wav48_silence_trimmed``, with two
microphones)."""

import re

from sqvae.data.speech.places import Place
from sqvae.data.speech.recordings import FoundSpeech, Recording, SpeechReader, matching, mostly
from sqvae.data.wording import counted

_NAME = re.compile(r"(?P<above>(?:.*/)?)(?P<speaker>[ps]\d+)/(?P=speaker)_\d+(?:_(?P<microphone>mic\d))?\.\w+")
_VERSIONS = ("wav48/", "wav48_silence_trimmed/")
"""The folders of the two versions; the paper's comes first."""


def _read(place: Place) -> FoundSpeech:
    matches, others = matching(_NAME, place)
    # The same sentences may exist in both versions.
    version = min((match["above"] for match in matches), key=_preference)
    others += [match.string for match in matches if match["above"] != version]
    first = [match for match in matches if match["above"] == version and match["microphone"] in (None, "mic1")]
    second = len(place.names) - len(others) - len(first)
    notes = (f"the first of two microphones is used: {counted(second, 'recording')} of the other skipped",)
    return FoundSpeech(
        {
            "all": [Recording.at(place, match.string, match["speaker"]) for match in first],
            "rest": Recording.of_nobody(place, others),
        },
        "vctk",
        published=True,
        notes=notes if second else (),
    )


def _preference(above: str) -> tuple[int, str]:
    return next((order for order, folder in enumerate(_VERSIONS) if above.endswith(folder)), len(_VERSIONS)), above


VCTK = SpeechReader("vctk", "VCTK", mostly(_NAME), _read)
