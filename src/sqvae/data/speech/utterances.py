"""Utterances as log-mel frames in a memory-mapped file."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sqvae.data.collection import Skipped
from sqvae.data.speech.audio import audio_blocks
from sqvae.data.speech.log_mel import LogMel
from sqvae.data.speech.sources import opened_speech

_AT_ONCE = 16_384
"""Number of frames to process at a time."""

_LEAST_VARIED = 1e-6
"""The smallest standard deviation, relative to the mean, that is more than rounding error."""


class Utterance(NamedTuple):
    """One utterance of a set, and its position in the file."""

    name: str
    file_id: str
    speaker: str
    start: int
    """The index of its first frame in the file."""
    frames: int
    samples: int


class Utterances:
    """Utterances of any lengths in a memory-mapped file, so that they may be larger than memory.

    Arguments:
        file: an .npy file of float32 (frames of all utterances, mels), in dB.
        rows: the utterances, and their positions in the file.
        skipped: recordings that are missing because they could not be read.
        source: the source of the recordings, needed to play them.
    """

    def __init__(
        self,
        file: Path,
        rows: Sequence[Utterance],
        skipped: tuple[Skipped, ...] = (),
        *,
        source: str | Path | None = None,
    ) -> None:
        self.skipped = skipped
        self.source = source
        self.names = tuple(row.name for row in rows)
        """The name of each utterance: its path in the source."""
        self.file_ids = tuple(row.file_id for row in rows)
        """The names of the utterances in lists of ABX items."""
        self.speakers = tuple(row.speaker for row in rows)
        """The speaker of each utterance."""
        self.lengths = torch.tensor([row.frames for row in rows], dtype=torch.int64)
        """(N,): the number of frames of each utterance."""
        self.samples = torch.tensor([row.samples for row in rows], dtype=torch.int64)
        """(N,): the number of samples of each utterance, at the sample rate of the features."""
        self._starts = torch.tensor([row.start for row in rows], dtype=torch.int64)
        self._file = file
        self._frames = _map(file)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def mels(self) -> int:
        """The number of bands."""
        return int(self._frames.shape[1])

    def frames(self, index: int) -> Tensor:  # -> (T, mels)
        """All frames of an utterance, in dB, in a new tensor."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} is out of range: there are {len(self)} utterances")
        start, length = int(self._starts[index]), int(self.lengths[index])
        return torch.from_numpy(np.array(self._frames[start : start + length]))

    def sound(self, index: int, rate: int, samples: int) -> NDArray[np.float32]:  # -> (up to so many samples,)
        """The beginning of the original recording of an utterance, read from its source."""
        if self.source is None:
            raise FileNotFoundError(f"the source of the recording {self.names[index]} is not known")
        with opened_speech(self.source) as found:
            parts, number = [], 0
            for block in audio_blocks(found.place.open(self.names[index]), rate):
                parts.append(block)
                number += len(block)
                if number >= samples:
                    break
            return np.concatenate(parts)[:samples]

    def at(self, indices: Tensor, places: Tensor) -> Tensor:  # (B,), (B, L) -> (B, L, mels)
        """Some frames of some utterances, in dB.

        Arguments:
            indices: the indices of the utterances.
            places: the indices of the frames of each utterance, from 0.
        """
        if ((indices < 0) | (indices >= len(self))).any():
            raise IndexError(f"indices must be 0 ... {len(self) - 1}, got {indices.tolist()}")
        if ((places < 0) | (places >= self.lengths[indices].unsqueeze(1))).any():
            raise IndexError("places must be frames of their utterances, from 0 to one less than their length")
        rows = self._starts[indices].unsqueeze(1) + places
        return torch.from_numpy(np.array(self._frames[rows.numpy()]))

    def statistics(self) -> tuple[Tensor, Tensor]:  # (mels,), (mels,)
        """The mean and the standard deviation of each dimension over all frames, in dB.

        The deviation of a constant dimension is returned as 1, so that one can divide by it.
        """
        number = 0
        mean = squares = np.zeros(self.mels)
        for block in self._blocks():
            # Combine the means and sums of squares of two groups: accurate for any number of frames, unlike plain sums.
            share = len(block) / (number + len(block))
            away = block.mean(0) - mean
            squares = squares + np.square(block - block.mean(0)).sum(0) + np.square(away) * number * share
            mean = mean + away * share
            number += len(block)
        deviation = np.sqrt(squares / max(number, 1))
        deviation[deviation <= _LEAST_VARIED * np.maximum(1, np.abs(mean))] = 1
        return torch.from_numpy(mean).float(), torch.from_numpy(deviation).float()

    def _blocks(self) -> Iterator[NDArray[np.float64]]:
        """Yield all frames in float64, (up to a fixed number, mels); adjacent utterances are read together."""
        begin = end = 0
        for start, length in sorted(zip(self._starts.tolist(), self.lengths.tolist(), strict=True)):
            if start != end:
                yield from self._cut(begin, end)
                begin = start
            end = start + length
        yield from self._cut(begin, end)

    def _cut(self, begin: int, end: int) -> Iterator[NDArray[np.float64]]:
        for start in range(begin, end, _AT_ONCE):
            yield self._frames[start : min(start + _AT_ONCE, end)].astype(np.float64)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} with {int(self.lengths.sum()):,} frames of {self.mels})"

    def __getstate__(self) -> dict[str, Any]:
        # A memory mapping would be pickled with all of its bytes.
        return {name: value for name, value in self.__dict__.items() if name != "_frames"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._frames = _map(self._file)


@dataclass(frozen=True)
class SpeechSets:
    """The training, validation and test sets of utterances."""

    train: Utterances
    validation: Utterances
    test: Utterances
    features: LogMel
    """How recordings became frames."""
    speakers: tuple[str, ...]
    """The speakers of the training set, sorted."""
    key: str
    """A hash of the recordings and the features, equal only for equal frames."""
    notes: tuple[str, ...]
    """Sentences about what was decided and what was skipped."""


def _map(file: Path) -> NDArray[np.float32]:
    frames: NDArray[np.float32] = np.load(file, mmap_mode="r", allow_pickle=False)
    return frames
