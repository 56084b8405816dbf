"""Named speech datasets, with the origin of their files and the layout of their folders."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class SpeechSet:
    """A named dataset of recordings."""

    description: str
    """A description in one line."""
    features: str
    """The default features: a name in ``FEATURES``."""
    origin: str
    """Where to get its files."""
    layout: str
    """What its folder must contain."""
    reader: str
    """The name of the reader of its folder."""
    folders: tuple[str, ...]
    """Possible names of its folder."""


MADE_UP = "voices"
"""The synthetic dataset, which has no files of its own."""

SPEECH_SETS: Mapping[str, SpeechSet] = MappingProxyType(
    {
        MADE_UP: SpeechSet(
            "48 synthetic recordings of 4 voices, one second each, 16 kHz; to try things out, no download",
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
            "audio books in English, with different speakers in each subset, 16 kHz",
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
"""All speech datasets by name."""
