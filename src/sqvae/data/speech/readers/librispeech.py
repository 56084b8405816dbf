"""LibriSpeech as downloaded: ``SUBSET/SPEAKER/CHAPTER/SPEAKER-CHAPTER-NUMBER.flac``, one subset or several."""

import re
from pathlib import PurePosixPath

from sqvae.data.speech.places import Place
from sqvae.data.speech.recordings import FoundSpeech, Recording, SpeechReader, matching, mostly

_NAME = re.compile(r"(?P<subset>(?:.*/)?)(?P<speaker>\d+)/(?P<chapter>\d+)/(?P=speaker)-(?P=chapter)-\d+\.\w+")


def _read(place: Place) -> FoundSpeech:
    matches, others = matching(_NAME, place)
    recordings = [Recording.at(place, match.string, match["speaker"]) for match in matches]
    subsets = [PurePosixPath(subset).name for subset in sorted({match["subset"] for match in matches})]
    note = (
        f"{', '.join(subsets)} have different speakers, and a model knows only its training speakers: they are "
        "combined, and recordings of every speaker are held out"
    )
    return FoundSpeech(
        {"all": recordings, "rest": Recording.of_nobody(place, others)}, notes=(note,) if len(subsets) > 1 else ()
    )


LIBRISPEECH = SpeechReader("librispeech", "LibriSpeech", mostly(_NAME), _read)
