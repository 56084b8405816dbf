"""How an image becomes an array: the settings, and decisions from the data where settings are missing."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

from sqvae.data.limits import PIXELS

MOST_CLASSES = 4096
"""Maximum number of classes. Each class has its own channel, and a direction orthogonal to all others."""

LARGEST_LABEL = 65_535
"""The largest label of 16 bits."""

DEFAULT_SIZE = 64
"""Height and width of the result if images have different sizes, or a size that is too large for a default."""

NOTHING_KNOWN = "every pixel of the label maps has the label {}, which is ignored: there is nothing to learn"

USUALLY_IGNORED = 255
"""The label of unknown pixels in most datasets of label maps."""

SPARSEST = 4
"""Labels are at most this many times their number; shades of grey are further apart."""

LARGEST_KEPT = 128
"""The longest side that images of the same size keep by default."""


@dataclass(frozen=True)
class Preprocessing:
    """How an image becomes an array.

    The image is turned upright, cropped around its centre, resized (bilinear, antialiased) and converted to the number
    of channels. A label map, whose pixels are the numbers of classes, is cropped and resized by nearest neighbour. What
    is None is decided from the data by :func:`sqvae.data.load`.
    """

    size: int | tuple[int, int] | None = None
    """The height and width of a square result, or (height, width)."""
    crop: int | None = None
    """The side of a square that is first cropped from the centre of the original; a smaller image is cropped to its
    shorter side. None: the largest centred part with the aspect ratio of the result."""
    channels: int | None = None
    """1 or 3; a label map has 1."""
    labels: bool = False
    """Whether pixels are the numbers of classes."""
    classes: int | None = None
    """The number of classes, 0 ... classes - 1. A map with any other label is rejected."""
    ignore: int | None = None
    """The label of unknown pixels, which are ignored."""

    def __post_init__(self) -> None:
        if self.size is not None:
            sides = tuple(self.size) if isinstance(self.size, list | tuple) else (self.size,)
            if len(sides) not in (1, 2) or not all(_is_side(side) for side in sides):
                raise ValueError(f"size must be an integer > 0, or (height, width), got {self.size!r}")
            # A canonical form: a square is an int, and lists, which JSON has, become tuples.
            square = len(set(sides)) == 1
            object.__setattr__(self, "size", int(sides[0]) if square else tuple(map(int, sides)))
            PIXELS.check(int(sides[0]) * int(sides[-1]), f"size is {int(sides[0]):,} x {int(sides[-1]):,} pixels")
        if self.crop is not None and not _is_side(self.crop):
            raise ValueError(f"crop must be an integer > 0, or None, got {self.crop!r}")
        if self.channels not in (None, 1, 3):
            raise ValueError(f"channels must be 1 or 3, or None to decide from the data, got {self.channels!r}")
        self._check_labels()

    def _check_labels(self) -> None:
        if not self.labels:
            if self.classes is not None or self.ignore is not None:
                raise ValueError(
                    f"classes and ignore are for label maps only; got classes={self.classes}, ignore={self.ignore}"
                )
            return
        if self.channels not in (None, 1):
            raise ValueError(f"a label map has 1 channel, got channels={self.channels}")
        object.__setattr__(self, "channels", 1)
        if self.classes is not None and not 2 <= self.classes <= MOST_CLASSES:
            raise ValueError(f"classes must be between 2 and {MOST_CLASSES:,}, or None, got {self.classes!r}")
        if self.ignore is not None and not -1 <= self.ignore <= LARGEST_LABEL:
            raise ValueError(f"ignore must be between -1 and {LARGEST_LABEL:,}, or None, got {self.ignore!r}")

    @property
    def resolved(self) -> bool:
        """Whether everything is decided."""
        return self.size is not None and self.channels is not None and (self.classes is not None or not self.labels)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The data type of the array: 16 bits only if a label needs them."""
        largest = max((self.classes or 1) - 1, self.ignore or 0)
        if self.ignore is not None and self.ignore < 0:
            return np.dtype(np.int16)
        return np.dtype(np.uint8) if largest < 256 else np.dtype(np.uint16)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(C, H, W) of the result."""
        if self.size is None or self.channels is None:
            raise ValueError(f"size and channels must be known, got {self}; sqvae.data.load decides them from the data")
        height, width = (self.size, self.size) if isinstance(self.size, int) else self.size
        return self.channels, height, width

    def over(self, defaults: "Preprocessing") -> "Preprocessing":
        """These settings, with defaults for those that are None."""
        return Preprocessing(
            defaults.size if self.size is None else self.size,
            defaults.crop if self.crop is None else self.crop,
            defaults.channels if self.channels is None and not self.labels else self.channels,
            self.labels,
            defaults.classes if self.classes is None and self.labels else self.classes,
            defaults.ignore if self.ignore is None and self.classes is None and self.labels else self.ignore,
        )

    def check_multiple(self, multiple: int) -> None:
        """Raise ValueError if height or width is not a multiple of the network's downsampling factor."""
        if self.size is None:
            return
        sides = (self.size,) if isinstance(self.size, int) else self.size
        if any(side % multiple for side in sides):
            up = " x ".join(str(-(-side // multiple) * multiple) for side in sides)
            raise ValueError(
                f"size is {' x '.join(map(str, sides))}, but the network downsamples images by {multiple}: "
                f"pass a multiple of {multiple}; the next one up is {up}"
            )


UNDECIDED = Preprocessing()
"""Everything is decided from the data."""


def _is_side(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) > 0


@dataclass(frozen=True)
class Header:
    """What can be known about an image without decoding it."""

    width: int
    height: int
    grey: bool


@dataclass(frozen=True)
class Survey:
    """What can be known about many images without decoding them."""

    sizes: int
    """The number of different sizes."""
    smallest: tuple[int, int]
    """(width, height) of the smallest area."""
    largest: tuple[int, int]
    """(width, height) of the largest area."""
    grey: bool
    """Whether every training image is grey."""
    labels: tuple[int, ...] | None = None
    """The labels that occur in label maps; None if they were not read."""

    @classmethod
    def of(cls, training: Iterable[Header], others: Iterable[Header]) -> "Survey | None":
        """The survey of the headers of training images and of other images; None if there is no header at all."""
        sizes: set[tuple[int, int]] = set()
        grey = True
        for header in training:
            sizes.add((header.width, header.height))
            grey = grey and header.grey
        sizes.update((header.width, header.height) for header in others)
        if not sizes:
            return None
        by_area = sorted(sizes, key=lambda size: (size[0] * size[1], size))
        return cls(len(sizes), by_area[0], by_area[-1], grey)


def resolve(
    wanted: Preprocessing, survey: Survey, multiple: int, class_names: Sequence[str] = ()
) -> tuple[Preprocessing, list[str]]:
    """The preprocessing with everything decided, and notes about what was decided."""
    notes: list[str] = []
    channels, size = wanted.channels, wanted.size
    if channels is None:
        channels = 1 if survey.grey else 3
    if size is None:
        size, notes = _decide_size(survey, wanted.crop, multiple, labels=wanted.labels)
    elif wanted.crop is None:
        notes = _say_size(survey, size, labels=wanted.labels)
    if channels == 1 and not survey.grey and not wanted.labels:
        notes.append("colour images are converted to grey")
    decided = replace(wanted, size=size, channels=channels)
    if wanted.labels and wanted.classes is None:
        decided, said = _decide_classes(decided, survey.labels or (), class_names)
        notes += said
    return decided, notes


def _decide_classes(
    wanted: Preprocessing, labels: Sequence[int], names: Sequence[str]
) -> tuple[Preprocessing, list[str]]:
    """Decide the number of classes, from their names or from the labels that occur, and the label to ignore."""
    ignore = wanted.ignore if wanted.ignore is not None else unknown_label(labels, names)
    known = [label for label in labels if label != ignore]
    if not known:
        raise ValueError(NOTHING_KNOWN.format(ignore))
    if known[0] < 0 or known[-1] >= MOST_CLASSES:
        worst = known[0] if known[0] < 0 else known[-1]
        raise ValueError(
            f"the label maps have the label {worst:,}, but classes go from 0 to at most {MOST_CLASSES - 1:,}: "
            f"renumber them, or ignore that label with `data.ignore={worst}`"
        )
    if names and known[-1] >= len(names):
        raise ValueError(
            f"{len(names)} classes have names ({names[0]}, ...), but the label maps have the label {known[-1]}: name "
            f"all {known[-1] + 1} classes, or ignore a label with `data.ignore={known[-1]}`"
        )
    classes = max(len(names) or known[-1] + 1, 2)
    missing = classes - len(known) - (ignore is not None and 0 <= ignore < classes)
    note = f"label maps of {classes:,} classes, 0 to {classes - 1}"
    if missing > 0:
        note += f", of which {missing:,} never occur"
        note += "" if missing < classes / 2 else ": number the classes from 0 without gaps to save work"
    notes = [note]
    if ignore is not None:
        freely = wanted.ignore is None and ignore >= 0
        how = f"; `data.classes={ignore + 1}` makes it a class" if freely else ""
        notes.append(f"pixels with the label {ignore} are ignored{how}")
    return replace(wanted, classes=classes, ignore=ignore), notes


def unknown_label(labels: Sequence[int], names: Sequence[str]) -> int | None:
    """The label of unknown pixels: -1, or 255 if it is far from the other labels, which are close together, or is the
    only label; otherwise None."""
    if labels and labels[0] == -1:
        return -1
    others = [label for label in labels if label != USUALLY_IGNORED]
    if labels and not others:
        return USUALLY_IGNORED
    if len(others) == len(labels) or len(others) < 2 or len(names) > USUALLY_IGNORED:
        return None
    dense = others[-1] < min(SPARSEST * len(others), USUALLY_IGNORED - 1)
    return USUALLY_IGNORED if dense or names else None


def _decide_size(
    survey: Survey, crop: int | None, multiple: int, *, labels: bool
) -> tuple[int | tuple[int, int], list[str]]:
    width, height = survey.largest
    if crop is not None:
        width = height = min(crop, *survey.smallest)
    several = survey.sizes > 1 and crop is None
    if several or max(width, height) > LARGEST_KEPT:
        side = _multiple_below(DEFAULT_SIZE, multiple)
        said = f"{_noun(labels)} are cropped to {width}x{height} and resized to {side}x{side}{_how(labels)}"
        if crop is None:
            (said,) = _say_size(survey, side, labels=labels)
        return side, [f"{said}; pass `data.size=128` for larger ones"]
    kept = _multiple_below(width, multiple), _multiple_below(height, multiple)
    notes = []
    if kept != (width, height):
        notes = [
            f"{_noun(labels)} are {width}x{height}, and sides must be multiples of {multiple}: resized to "
            f"{_times(kept)}{_how(labels)}"
        ]
    return (kept[1], kept[0]), notes


def _say_size(survey: Survey, size: int | tuple[int, int], *, labels: bool) -> list[str]:
    """A note about images whose size differs from that of the result; empty if there are none."""
    height, width = (size, size) if isinstance(size, int) else size
    if survey.sizes == 1 and survey.largest == (width, height):
        return []
    have = f"{_noun(labels)} are {_times(survey.largest)}"
    if survey.sizes > 1:
        have = f"{_noun(labels)} have {survey.sizes} sizes, from {_times(survey.smallest)} to {_times(survey.largest)}"
    resized = f"resized to {width}x{height}{_how(labels)}"
    if survey.sizes == 1 and centred_part(*survey.largest, width, height) == survey.largest:
        return [f"{have}: each is {resized}"]
    part = "its centre square" if height == width else "its largest centred part with that aspect ratio"
    return [f"{have}: each is cropped to {part} and {resized}"]


def _noun(labels: bool) -> str:
    return "label maps" if labels else "images"


def _how(labels: bool) -> str:
    return " by nearest neighbour" if labels else ""


def centred_part(width: int, height: int, to_width: int, to_height: int) -> tuple[int, int]:
    """(width, height) of the largest part of an image with the aspect ratio of the result, in whole pixels."""
    scale = min(width / to_width, height / to_height)
    return max(round(scale * to_width), 1), max(round(scale * to_height), 1)


def _multiple_below(side: int, multiple: int) -> int:
    return max(side // multiple, 1) * multiple


def _times(size: tuple[int, int]) -> str:
    return f"{size[0]}x{size[1]}"
