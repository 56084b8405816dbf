"""Tokens of phones in context, as listed by the ZeroSpeech challenges, and the frames that belong to them."""

import gzip
import math
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

COLUMNS = ("#file", "onset", "offset", "#phone", "prev-phone", "next-phone", "speaker")

_SLACK = 1e-6  # relative to the shift: decimal times equal to a frame's centre are equal in binary, too


class Item(NamedTuple):
    """One token of a phone."""

    file: str
    onset: float
    """The onset in seconds, like the offset."""
    offset: float
    phone: str
    previous: str
    next: str
    speaker: str

    @property
    def context(self) -> tuple[str, str]:
        """The phones before and after it."""
        return self.previous, self.next


def read_items(path: str | Path) -> list[Item]:
    """The items of a file in the format of the ZeroSpeech challenges, in order.

    The first line is ``#file onset offset #phone prev-phone next-phone speaker``. Each other line contains these seven
    fields of an item, separated by white space, with times in seconds. Blank lines are ignored. The file may be
    compressed by gzip, whatever its name.
    """
    lines = _text(Path(path)).splitlines()
    if not lines or tuple(lines[0].split()) != COLUMNS:
        given = f"is {lines[0][:80]!r}" if lines else "is missing, the file is empty"
        raise ValueError(f"{path}, line 1 {given}, expected the header {' '.join(COLUMNS)!r}")
    items = [_item(line, f"{path}, line {number}") for number, line in enumerate(lines[1:], 2) if line.strip()]
    if not items:
        raise ValueError(f"{path} has a header but no item; expected lines of {' '.join(COLUMNS)!r} below it")
    return items


def _text(path: Path) -> str:
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    content = path.read_bytes()
    try:
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
        return content.decode("utf-8-sig")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise ValueError(f"{path} can't be read as text in UTF-8, plain or gzipped: {error}") from error


def _item(line: str, place: str) -> Item:
    fields = line.split()
    if len(fields) != len(COLUMNS):
        raise ValueError(f"{place} has {len(fields)} fields, expected {len(COLUMNS)}: {' '.join(COLUMNS)}")
    file, onset, offset, *labels = fields
    item = Item(file, _seconds(onset, "onset", place), _seconds(offset, "offset", place), *labels)
    if item.offset <= item.onset:
        raise ValueError(f"{place} ends at {offset} s, not after its onset, {onset} s; expected offset > onset")
    return item


def _seconds(text: str, name: str, place: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds):
        raise ValueError(f"{place} has the {name} {text!r}, expected a number of seconds")
    return seconds


@dataclass(frozen=True)
class Tokens:
    """Items with frames, and the number of other items."""

    items: list[Item]
    frames: NDArray[Any]
    """The frames of all files, one file after the other: (N, d), or (N,) for units."""
    starts: NDArray[np.int64]
    """The index of the first frame of each item, (items,)"""
    lengths: NDArray[np.int64]
    """The number of frames of each item, (items,)"""
    shortened: int
    """Number of these items that extend beyond the frames of their file."""
    without_frames: int
    without_features: int


def cut_tokens(
    items: Iterable[Item],
    features: Mapping[str, ArrayLike],  # (T, d) each, or (T,) for units
    *,
    shift: float,
    start: float | None = None,
    units: bool = False,
    allow_missing: bool = False,
) -> Tokens:
    r"""The frames of each item: those whose centre lies within it, both ends included.

    .. math:: \{\, i : \text{onset} \le \text{start} + i \cdot \text{shift} \le \text{offset} \,\}

    A tolerance of a millionth of the shift is added at both ends, so that times that are equal as decimals are equal.
    An item that extends beyond the frames of its file is shortened and counted; one without any frame is skipped and
    counted. Items are sorted, so that nothing depends on their order.

    Arguments:
        items: the items, each of a file that `features` contains.
        features: the frames of each file by its name: arrays, or tensors that NumPy can read.
        shift: the time between the centres of adjacent frames in seconds.
        start: the time of the first frame's centre; half the shift by default.
        units: whether a frame is one integer instead of a vector.
        allow_missing: skip and count items of files without features, instead of raising an error.
    """
    if not (math.isfinite(shift) and shift > 0):
        raise ValueError(f"shift is {shift}, expected the seconds between frames, > 0")
    start = shift / 2 if start is None else start
    if not math.isfinite(start):
        raise ValueError(f"start is {start}, expected the time of the first frame's centre in seconds")
    wanted = sorted(items)
    names = sorted({item.file for item in wanted})
    missing = {name for name in names if name not in features}
    if missing and not allow_missing:
        raise ValueError(
            f"{len(missing)} of the {len(names)} files of the items have no features: {', '.join(sorted(missing)[:3])}"
            f"{', ...' if len(missing) > 3 else ''}. Pass these too, or allow_missing=True to skip their items"
        )
    files = {name: _checked(name, features[name], units) for name in names if name not in missing}
    first_frames = dict(zip(files, np.cumsum([0, *map(len, files.values())]).tolist(), strict=False))
    kept, starts, lengths, shortened, empty = [], [], [], 0, 0
    for item in wanted:
        if item.file in missing:
            continue
        first, last = _span(item, start, shift)
        low, high = max(first, 0), min(last, len(files[item.file]) - 1)
        if high < low:
            empty += 1
            continue
        shortened += (low, high) != (first, last)
        kept.append(item)
        starts.append(first_frames[item.file] + low)
        lengths.append(high - low + 1)
    left_out = sum(item.file in missing for item in wanted)
    if not kept:
        raise ValueError(
            f"none of the {len(wanted)} items has a frame ({empty} lie between or beyond the frames of their file, "
            f"{left_out} have no features); are shift = {shift} s and start = {start} s those of the features?"
        )
    return Tokens(kept, _joined(files), np.array(starts), np.array(lengths), shortened, empty, left_out)


def _span(item: Item, start: float, shift: float) -> tuple[int, int]:
    """The first and the last frame whose centre lies within an item, regardless of the length of the file."""
    return math.ceil((item.onset - start) / shift - _SLACK), math.floor((item.offset - start) / shift + _SLACK)


def _checked(name: str, value: ArrayLike, units: bool) -> NDArray[Any]:
    frames = np.asarray(value)
    kinds, expected = ("iu", "integers of shape (T,)") if units else ("iufb", "numbers of shape (T, d), d > 0")
    if frames.ndim != 2 - units or frames.dtype.kind not in kinds or 0 in frames.shape[1:]:
        raise ValueError(f"the features of {name} are {frames.dtype} of shape {frames.shape}, expected {expected}")
    if not np.isfinite(frames).all():
        raise ValueError(f"the features of {name} contain values that are not finite")
    return frames


def _joined(files: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    (first, example), *others = files.items()
    for name, frames in others:
        if frames.shape[1:] != example.shape[1:]:
            raise ValueError(
                f"the frames of {name} have {frames.shape[1]} dimensions, those of {first} {example.shape[1]}; "
                f"expected the same for all"
            )
    return np.concatenate(list(files.values()))
