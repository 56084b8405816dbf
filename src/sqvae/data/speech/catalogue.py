"""Sets of recordings that go by a name, where their files come from and how their folders look."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class SpeechSet:
    """A set of recordings that goes by a name."""

    description: str
    """In one line."""
    features: str
    """What suits it: a name in ``FEATURES``."""
    origin: str
    """Where its files come from."""
    layout: str
    """How its folder must look."""
    reader: str
    """The name of the reader that its folder must suit."""
    folders: tuple[str, ...]
    """What its folder may be called."""


MADE_UP = "voices"
"""The set that has no files of its own."""

SPEECH_SETS: Mapping[str, SpeechSet] = MappingProxyType(
    {
        MADE_UP: SpeechSet(
            "48 made-up recordings of 4 voices, a second each, 16 kHz; to try things out, no download",
            "zerospeech",
            "this package",
            "no folder",
            "folder",
            (),
        ),
        "vctk": SpeechSet(
            "44 hours of 109 speakers of English, each reading about 400 sentences, 48 kHz",
            "vctk",
            "datashare.ed.ac.uk/handle/10283/2651 (version 0.80) or 10283/3443 (version 0.92)",
            "wav48/SPEAKER/*.wav, or wav48_silence_trimmed/SPEAKER/*.flac, packed in a zip file or unpacked",
            "vctk",
            ("vctk", "VCTK", "VCTK-Corpus", "VCTK-Corpus-0.80", "VCTK-Corpus-0.92"),
        ),
        "zerospeech2019": SpeechSet(
            "20 hours of 102 speakers of English, made for finding units of speech, 16 kHz",
            "zerospeech",
            "download.zerospeech.com (2019, english)",
            "english/train/voice, english/train/unit and english/train/parallel/voice",
            "zerospeech",
            ("zerospeech2019", "zerospeech-2019", "zerospeech_2019", "ZeroSpeech2019"),
        ),
        "librispeech": SpeechSet(
            "audio books in English, each subset by other speakers, 16 kHz",
            "zerospeech",
            "www.openslr.org/12",
            "LibriSpeech/SUBSET/SPEAKER/CHAPTER/*.flac, one subset or several",
            "librispeech",
            ("librispeech", "LibriSpeech", "librispeech_dev_clean_subset"),
        ),
        "timit": SpeechSet(
            "160 sentences by 16 speakers of American English, with phones marked by hand, 16 kHz",
            "zerospeech",
            "www.nltk.org/nltk_data (TIMIT corpus sample)",
            "dr1-fvmh0/sa1.wav and so on, packed in a zip file or unpacked",
            "timit",
            ("timit", "TIMIT", "timit_nltk_sample"),
        ),
    }
)
"""Every set by name."""
