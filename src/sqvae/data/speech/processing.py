"""Conversion of recordings in Python (paths, arrays, tensors) to the frames that a model takes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sqvae.data.collection import Skipped
from sqvae.data.speech.audio import resampled
from sqvae.data.speech.log_mel import LogMel
from sqvae.data.speech.reading import check_long_enough, hear
from sqvae.data.speech.recordings import Recording, UnreadableRecordingError

Samples: TypeAlias = NDArray[Any] | Tensor
"""(samples,), or (samples, channels) as soundfile reads them, whose mean is used: floats with full scale at 1, or
integers with the full scale of their type."""

RecordingLike: TypeAlias = str | Path | Samples | tuple[Samples, int]
"""A path, samples, or samples with their sample rate."""

Recordings: TypeAlias = RecordingLike | Sequence[RecordingLike]
"""One recording, or several of any lengths."""

MOST_CHANNELS = 8
"""Maximum number of channels: an array with more columns, or with fewer rows, is not a recording."""


@dataclass(frozen=True)
class SpeechProcessor:
    """Converts recordings to log-mel frames, exactly as the command line does.

    ``speech.preprocess`` is one. It contains no model, so it can be sent to the workers of a data loader.

    Arguments:
        features: how sound becomes frames; ``sqvae.data.speech.FEATURES`` contains the paper's.
    """

    features: LogMel

    def __call__(self, recordings: Recordings, rate: int | None = None) -> list[Tensor]:  # -> (T, mels), each
        """The frames of recordings, in dB. One recording gives a list of 1.

        Arguments:
            recordings: paths, arrays or tensors of samples, or pairs of samples and their rate; one, or a list of any.
            rate: the sample rate of samples that come without one. None means ``features.rate``, so samples of another
                rate need it. Files contain their own.
        """
        apart = _apart(recordings)
        if not apart:
            raise ValueError("there are no recordings: pass at least one")
        return [self._frames(one, rate, index) for index, one in enumerate(apart)]

    def _frames(self, given: Any, rate: int | None, index: int) -> Tensor:
        if isinstance(given, str | Path):
            return self._of_file(Path(given).expanduser())
        samples, own = given if _is_pair(given) else (given, rate)
        if not isinstance(samples, np.ndarray | Tensor):
            raise TypeError(
                f"recording {index} must be a path, samples, or a pair of samples and their rate; got "
                f"{type(samples).__name__}"
            )
        wave = self._one_channel(samples, index)
        if own is not None and own != self.features.rate:
            wave = resampled(np.asarray(wave, np.float32), own, self.features.rate)
        try:
            check_long_enough(len(wave), self.features)
        except ValueError as short:
            raise ValueError(f"recording {index} can't be used: {short}") from None
        return self.features(wave)

    def _one_channel(self, samples: Samples, index: int) -> Samples:  # (samples,) or (samples, channels) -> (samples,)
        """Samples with full scale at 1, averaged over channels, as for files."""
        if samples.ndim == 1:
            return _real(samples)
        if samples.ndim == 2 and 1 <= samples.shape[1] <= MOST_CHANNELS < samples.shape[0]:
            wave = _real(samples)
            if isinstance(wave, Tensor):
                return wave.double().mean(1).float()
            mixed: NDArray[np.float32] = wave.astype(np.float32).mean(1, dtype=np.float64).astype(np.float32)
            return mixed
        hint = ""
        if samples.ndim == 2 and samples.shape[1] == self.features.mels:
            hint = ". If they are log-mel frames, pass a list of them to encode_frames"
        raise ValueError(
            f"recording {index} has the shape {tuple(samples.shape)}; expected one of (samples,), or of (samples, "
            f"channels) with at most {MOST_CHANNELS} channels, and several recordings as a list{hint}"
        )

    def _of_file(self, path: Path) -> Tensor:
        if not path.exists():
            raise FileNotFoundError(f"there is no file {path}")
        if path.is_dir():
            raise ValueError(f"{path} is a folder; pass its files, or encode all of it with `sqvae encode`")
        heard = hear(Recording(str(path), None, path.stem, lambda: path), self.features)
        if isinstance(heard, Skipped):
            raise UnreadableRecordingError(heard)
        return heard.frames()


def _apart(recordings: Any) -> list[Any]:
    """A list of the single recordings."""
    if isinstance(recordings, str | Path) or _is_pair(recordings):
        return [recordings]
    if isinstance(recordings, np.ndarray | Tensor):
        return [recordings]
    if isinstance(recordings, Iterable):
        return list(recordings)
    raise TypeError(
        f"expected paths, samples, or pairs of samples and their rate, or a list of them; got "
        f"{type(recordings).__name__}"
    )


def _is_pair(given: Any) -> bool:
    return isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], int | np.integer)


def _real(samples: Samples) -> Samples:
    """Samples with full scale at 1."""
    if isinstance(samples, Tensor):
        whole = samples.dtype in (torch.int16, torch.int32)
        return samples.double() / -float(torch.iinfo(samples.dtype).min) if whole else samples
    whole = samples.dtype in (np.int16, np.int32)
    return (samples / -float(np.iinfo(samples.dtype).min)).astype(np.float32) if whole else samples
