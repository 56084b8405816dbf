"""Reading of one recording as a log-mel spectrogram: at once if it is short, in pieces if it is long."""

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
"""Minimum number of frames; a shorter recording can't be used."""

_LONG = 30.0
"""Frames of recordings longer than this, in seconds, are not kept in memory."""


@dataclass(frozen=True, eq=False)
class Heard:
    """A recording that was read successfully to its end."""

    name: str
    file_id: str
    """Its name in lists of ABX items."""
    speaker: str | None
    """The speaker; None if the source does not say."""
    samples: int
    """The number of samples at the sample rate of the features."""
    features: LogMel
    _open: Opener = field(repr=False)
    _frames: Tensor | None = field(repr=False)
    """The frames; None if the recording is long."""

    def __len__(self) -> int:
        """The number of frames."""
        return self.features.frames_of(self.samples)

    def frames(self) -> Tensor:  # -> (T, mels)
        """All frames at once, in dB."""
        return torch.cat(list(self.pieces()))

    def pieces(self) -> Iterator[Tensor]:  # -> (t, mels) each
        """The frames in order, in dB; those of a long recording a limited number at a time.

        A long recording is read again for this. Do this before the next recording is requested, because its archive may
        be closed then.
        """
        if self._frames is not None:
            return iter([self._frames])
        return self.features.stream(lambda: audio_blocks(self._open(), self.features.rate))

    def renamed(self, name: str) -> "Heard":
        return replace(self, name=name)


def check_long_enough(samples: int, features: LogMel) -> None:
    """Raise ValueError if a recording with this number of samples, at the features' rate, is too short."""
    number = features.frames_of(samples) if samples else 0
    if number < LEAST_FRAMES:
        raise ValueError(
            f"it is too short: {counted(samples, 'sample')} at {features.rate:,} Hz, which give "
            f"{counted(number, 'frame')}; at least {LEAST_FRAMES} are needed"
        )


def hear(recording: Recording, features: LogMel) -> Heard | Skipped:
    """Read a recording to its end; returns :class:`Skipped` with the reason if it can't be used."""
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
        # Damaged files and archives can make their libraries raise almost any exception.
        return Skipped(recording.name, str(broken) or type(broken).__name__)
