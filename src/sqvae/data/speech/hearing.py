"""One recording as log-mel frames: at once if it is short, piece by piece if it is long."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from sqvae.data.collection import Skipped
from sqvae.data.speech.audio import audio_blocks, duration, read_audio
from sqvae.data.speech.log_mel import LogMel
from sqvae.data.speech.recordings import Opener, Recording
from sqvae.data.wording import counted

LEAST_FRAMES = 4
"""A recording with fewer is too short for any use."""

_LONG = 30.0
"""Seconds: frames of a recording that lasts longer are not held in memory."""


@dataclass(frozen=True, eq=False)
class Heard:
    """A recording that could be read to its end."""

    name: str
    file_id: str
    """What lists of ABX items call it."""
    speaker: str | None
    """None where the source does not say."""
    samples: int
    """How many there are at the rate of the features."""
    features: LogMel
    _open: Opener = field(repr=False)
    _frames: Tensor | None = field(repr=False)
    """None if it is long."""

    def __len__(self) -> int:
        """The number of frames."""
        return self.features.frames_of(self.samples)

    def frames(self) -> Tensor:  # -> (T, mels)
        """All frames at once, in dB."""
        return torch.cat(list(self.pieces()))

    def pieces(self) -> Iterator[Tensor]:  # -> (t, mels) each
        """The frames in order, in dB; those of a long recording a bounded number at a time.

        A long one is read again for this, which must be done before the next is asked for: its archive may be closed
        then.
        """
        if self._frames is not None:
            return iter([self._frames])
        return self.features.stream(lambda: audio_blocks(self._open(), self.features.rate))

    def renamed(self, name: str) -> "Heard":
        return replace(self, name=name)


def check_long_enough(samples: int, features: LogMel) -> None:
    """Raise if a recording of so many samples, at the rate of the features, is too short for any use."""
    number = features.frames_of(samples) if samples else 0
    if number < LEAST_FRAMES:
        raise ValueError(
            f"it is too short: {counted(samples, 'sample')} at {features.rate:,} Hz, which make "
            f"{counted(number, 'frame')}; {LEAST_FRAMES} are needed"
        )


def hear(recording: Recording, features: LogMel) -> Heard | Skipped:
    """A recording, read to its end; or what keeps it from being used."""
    try:
        source = recording.open()
        if duration(source) > _LONG:
            frames, samples = None, sum(len(block) for block in audio_blocks(source, features.rate))
        else:
            wave = read_audio(source, features.rate)
            frames, samples = features(wave), len(wave)
        check_long_enough(samples, features)
        return Heard(recording.name, recording.file_id, recording.speaker, samples, features, recording.open, frames)
    except Exception as broken:
        # Damaged files and archives make their libraries raise nearly anything.
        return Skipped(recording.name, str(broken) or type(broken).__name__)
