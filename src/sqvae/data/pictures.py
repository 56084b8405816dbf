"""Decoded images in a memory-mapped file."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sqvae.data.collection import Skipped
from sqvae.data.decoding import Stored
from sqvae.data.preprocessing import Preprocessing
from sqvae.distributions.processes import own_rows


class Pictures:
    """Images of the same shape in a memory-mapped file, so that they may be larger than memory.

    Arguments:
        file: an .npy file of uint8 or uint16 (M, C, H, W).
        rows: (N,), the rows of the file that belong to this set.
        names: (M), the names of all images of the file.
        skipped: images that are missing because they could not be read.
    """

    def __init__(
        self, file: Path, rows: NDArray[np.int64], names: Sequence[str], skipped: tuple[Skipped, ...] = ()
    ) -> None:
        self.skipped = skipped
        self._file = file
        self._rows = rows
        self._all_names = names
        self._pictures = _map(file)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(C, H, W)"""
        channels, height, width = self._pictures.shape[1:]
        return channels, height, width

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def names(self) -> Sequence[str]:
        """The name of each image: its path in the folder, or its index in the array."""
        return _Names(self._all_names, self._rows)

    def take(self, indices: Tensor | Sequence[int] | slice) -> Tensor:  # (B,) -> (B, C, H, W)
        """The images at some indices, as they are stored, in a new tensor."""
        if isinstance(indices, slice):
            chosen = self._rows[indices]
        else:
            asked = np.asarray(indices)
            if asked.ndim != 1 or (asked.size and asked.dtype.kind not in "iu"):
                raise TypeError(f"indices must be integers, (B,), or a slice; got {asked.dtype} of shape {asked.shape}")
            outside = (asked < -len(self)) | (asked >= len(self))
            if outside.any():
                raise IndexError(f"index {asked[outside][0]} is out of range: there are {len(self)} images")
            chosen = self._rows[asked.astype(np.int64)]
        return torch.from_numpy(np.array(self._pictures[chosen]))

    def spread(self, number: int) -> "Pictures":
        """A subset of `number` images, evenly spaced, because images of the same class may be next to each other."""
        number = min(number, len(self))
        chosen = self._rows[np.arange(number) * len(self) // max(number, 1)]
        return Pictures(self._file, chosen, self._all_names, self.skipped)

    def differs_from(self, value: int, batch: int = 256) -> bool:
        """Whether any pixel differs from a value."""
        starts = range(0, len(self), batch)
        return any(bool((self._pictures[self._rows[start : start + batch]] != value).any()) for start in starts)

    def variance(self, batch: int = 4096) -> float:
        """The variance of all pixels of all images, with pixels in [0, 1]."""
        total = squares = 0  # integers, so the sums are exact
        for start in range(0, len(self), batch):
            values = self.take(slice(start, start + batch)).flatten().long()
            total += int(values.sum())
            squares += int(values.square().sum())
        number = len(self) * math.prod(self.shape)
        return (squares / number - (total / number) ** 2) / 255**2

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} of {'x'.join(map(str, self.shape))})"

    def __getstate__(self) -> dict[str, Any]:
        # A memory mapping would be pickled with all of its bytes.
        return {name: value for name, value in self.__dict__.items() if name != "_pictures"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._pictures = _map(self._file)


class Varied:
    """Images with random augmentation, which is drawn anew each time that they are taken.

    Arguments:
        pictures: the images.
        flip: mirror images left to right at random, half of them on average.
        shift: maximum number of pixels by which an image is moved vertically and horizontally; edges are repeated.
    """

    def __init__(self, pictures: Pictures, *, flip: bool = False, shift: int = 0) -> None:
        if shift < 0:
            raise ValueError(f"shift must be a number of pixels, 0 or more, got {shift}")
        self.pictures, self.flip, self.shift = pictures, flip, shift

    def __len__(self) -> int:
        return len(self.pictures)

    def take(self, indices: Tensor) -> Tensor:  # (B,) -> (B, C, H, W)
        """The images at some indices, augmented with random numbers from torch's global generator."""
        stored = self.pictures.take(indices)
        if self.flip:
            mirrored = own_rows(lambda rows: torch.rand(rows), len(stored)) < 0.5
            stored[mirrored] = stored[mirrored].flip(-1)
        if self.shift:
            by = own_rows(lambda rows: torch.randint(-self.shift, self.shift + 1, (rows, 2)), len(stored))
            stored = _moved(stored, by)
        return stored


def _moved(pictures: Tensor, by: Tensor) -> Tensor:  # (B, C, H, W), (B, 2) -> (B, C, H, W)
    """Images moved down and to the right; edges are repeated."""
    rows, columns = (
        (torch.arange(size) - offset[:, None]).clamp(0, size - 1)  # (B, size): the source of each line
        for size, offset in zip(pictures.shape[-2:], by.T, strict=True)
    )
    batch = torch.arange(len(pictures))
    return pictures.movedim(1, -1)[batch[:, None, None], rows[:, :, None], columns[:, None, :]].movedim(-1, 1)


@dataclass(frozen=True)
class PictureSets:
    """The training, validation and test sets of images."""

    train: Pictures
    validation: Pictures
    test: Pictures
    preprocessing: Preprocessing
    """The preprocessing with everything decided."""
    key: str
    """A hash of the images and their preprocessing, equal only for equal images."""
    notes: tuple[str, ...]
    """Sentences about what was decided and what was skipped."""
    class_names: tuple[str, ...] = ()
    """The names of the classes of label maps, if the source has them."""
    class_colours: tuple[str, ...] = ()
    """The colours of the classes, #rrggbb, if the source has a palette."""


class _Names(Sequence[str]):
    """The names of some rows, without a copy of the list for each set."""

    def __init__(self, names: Sequence[str], rows: NDArray[np.int64]) -> None:
        self._names = names
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self._names[row] for row in self._rows[index]]
        return self._names[int(self._rows[index])]

    def __iter__(self) -> Iterator[str]:
        return (self._names[row] for row in self._rows)

    def __repr__(self) -> str:
        return repr(list(self))


def _map(file: Path) -> Stored:
    pictures: Stored = np.load(file, mmap_mode="r", allow_pickle=False)
    return pictures
