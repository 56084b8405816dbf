"""The sample of TIMIT that comes with NLTK: a folder for each dialect and speaker, ``dr1-fvmh0/sa1.wav``.

Sentences have the same file names for all speakers, so they are called dr1-fvmh0_sa1 in lists of ABX items.
"""

import re

from sqvae.data.speech.places import Place
from sqvae.data.speech.recordings import FoundSpeech, Recording, SpeechReader, matching, mostly

_NAME = re.compile(r"(?:.*/)?(?P<speaker>dr\d-[a-z0-9]+)/(?P<sentence>s[aix]\d+)\.\w+")


def _read(place: Place) -> FoundSpeech:
    matches, others = matching(_NAME, place)
    recordings = [
        Recording.at(place, match.string, match["speaker"], f"{match['speaker']}_{match['sentence']}")
        for match in matches
    ]
    return FoundSpeech({"all": recordings, "rest": Recording.of_nobody(place, others)})


TIMIT = SpeechReader("timit", "the sample of TIMIT that comes with NLTK", mostly(_NAME), _read)
