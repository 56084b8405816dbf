"""Recordings that are made up: enough to see that everything works, with nothing to download."""

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile
from numpy.typing import NDArray

from sqvae.data.collection import File
from sqvae.data.speech.catalogue import MADE_UP
from sqvae.data.speech.places import Place

_RATE = 16_000
_PITCHES = {"alto": 220.0, "bass": 90.0, "soprano": 260.0, "tenor": 130.0}
"""Voices, by how often a second their cords meet."""
_RESONANCES = ((730, 1090), (270, 2290), (300, 870), (530, 1840), (570, 840), (440, 1020))
"""The two lowest resonances of vowels, in Hz."""
_BREADTH = 120.0
"""Of a resonance, in Hz."""
_EACH = 12
"""Recordings of each voice."""


@dataclass(frozen=True)
class _Vowel:
    """One of the sounds of a recording."""

    kind: int
    samples: NDArray[np.float64]


def made_up_voices() -> Place:
    """Four voices, a dozen recordings of each, a few vowels in a row in each of those."""
    source = Path(__file__)  # what it says decides what is heard
    return Place(source, MADE_UP, _names(), [], _recording, File(MADE_UP, source))


def made_up_items() -> list[tuple[str, float, float, str, str, str, str]]:
    """Where each vowel is, as lists of ABX items have it: file, onset, offset, phone, those around it, speaker.

    All are listed as between the same two, so that there are enough to compare.
    """
    items = []
    for name in _names():
        voice, _, file = name.removesuffix(".wav").partition("/")
        end = 0.0
        for vowel in _spoken(name):
            start, end = end, end + len(vowel.samples) / _RATE
            items.append((file, start, end, str(vowel.kind), "#", "#", voice))
    return items


def _names() -> list[str]:
    return [f"{voice}/{voice}-{number:02d}.wav" for voice in _PITCHES for number in range(_EACH)]


def _recording(name: str) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, np.concatenate([vowel.samples for vowel in _spoken(name)]), _RATE, format="WAV")
    return file.getvalue()


def _spoken(name: str) -> list[_Vowel]:
    random = np.random.default_rng(list(name.encode()))
    voice = name.partition("/")[0]
    return [_vowel(_PITCHES[voice], random) for _ in range(random.integers(4, 8))]


def _vowel(pitch: float, random: np.random.Generator) -> _Vowel:
    """Harmonics of a pitch, the stronger the nearer they are to a resonance, rising and falling in loudness."""
    seconds = np.arange(int(random.uniform(0.1, 0.25) * _RATE)) / _RATE
    own = pitch * random.uniform(0.9, 1.1)
    harmonics = own * np.arange(1, int(4000 / own) + 1)
    kind = int(random.integers(len(_RESONANCES)))
    strength = (1 / (1 + ((harmonics[:, None] - np.array(_RESONANCES[kind])) / _BREADTH) ** 2)).sum(1)
    phases = random.uniform(0, 2 * np.pi, len(harmonics))
    tone = strength @ np.sin(2 * np.pi * harmonics[:, None] * seconds + phases[:, None])
    tone *= np.hanning(len(seconds)) * 0.5 / np.abs(tone).max()
    return _Vowel(kind, np.asarray(tone + random.normal(0, 1e-3, len(tone)), np.float64))
