"""Images that have been found but not decoded: what every reader returns."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sqvae.data.decoding import Stored, decode, open_picture, read_header, read_labels
from sqvae.data.preprocessing import UNDECIDED, Header, Preprocessing
from sqvae.data.threads import in_order
from sqvae.data.wording import counted, listed, printable

Opener: TypeAlias = Callable[[], Image.Image]
"""Opens one image. May be called in any thread."""

Part: TypeAlias = Literal["train", "validation", "test", "all", "rest"]
"""The split that images belong to: "all" if the source does not define splits, "rest" if it does but not for these."""

Categories: TypeAlias = Callable[[], Mapping[str, str]]
"""Returns the class of each image by the image's name. A function, because this may require reading files."""

PARTS: tuple[Part, ...] = ("train", "validation", "test", "all", "rest")


class File(NamedTuple):
    """A file that images are read from."""

    label: str
    """Its name in the collection, which does not depend on the location of the collection."""
    path: Path


@dataclass(frozen=True)
class Skipped:
    """An image or a recording that could not be read."""

    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name} ({self.reason})"

    @property
    def fault(self) -> str:
        """The reason without what may differ between files: numbers, quoted names, addresses."""
        return re.sub(r"'[^']*'|\"[^\"]*\"|<[^>]*>|\d+", "#", self.reason)

    def renamed(self, name: str) -> "Skipped":
        return replace(self, name=name)


def by_reason(skipped: Sequence[Skipped], most: int = 3, faults: int = 10) -> str:
    """A list of what was left out and why: "a.png, b.png and 3 more (not an image); c.png (empty)".

    Arguments:
        skipped: what was left out.
        most: number of names to list for each fault.
        faults: number of different faults to list.
    """
    groups: dict[str, list[Skipped]] = {}
    for one in skipped:
        groups.setdefault(one.fault, []).append(one)
    told = list(groups.values())[:faults]
    parts = [f"{listed([one.name for one in group], most)} ({group[0].reason})" for group in told]
    others = len(skipped) - sum(map(len, told))
    return "; ".join([*parts, *([f"{others:,} more for other reasons"] if others else [])])


class UnreadablePictureError(ValueError):
    """An image can't be read in strict mode."""

    def __init__(self, skipped: Skipped) -> None:
        super().__init__(f"{printable(skipped.name)} can't be read: {skipped.reason}")


@dataclass(frozen=True)
class Decoded:
    """An image that was decoded."""

    name: str
    pixels: Stored
    """(C, H, W)"""
    enlarged: bool
    """Whether it was smaller than the result."""

    def renamed(self, name: str) -> "Decoded":
        return replace(self, name=name)


class Collection(ABC):
    """Images in a fixed order."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def files(self) -> Sequence[File]:
        """All files that determine the names and the pixels: equal labels and equal bytes mean equal images."""

    @abstractmethod
    def items(self) -> Iterator[tuple[str, Opener]]:
        """The name of each image and a function that opens it, in order."""

    def headers(self) -> Iterator[Header]:
        """The headers of the images, without those that can't be read. Equal headers may be given only once."""
        return (header for header in in_order(_header, self.items()) if header is not None)

    def labels(self) -> set[int]:
        """All labels that occur in the label maps."""
        found: set[int] = set()
        for labels in in_order(_labels, self.items()):
            found |= labels
        return found


def _labels(item: tuple[str, Opener]) -> set[int]:
    _, opener = item
    try:
        with opener() as image:
            return set(np.unique(read_labels(image)).tolist())
    except Exception:
        # Unreadable: skipped, as for headers.
        return set()


def _header(item: tuple[str, Opener]) -> Header | None:
    _, opener = item
    try:
        with opener() as image:
            return read_header(image)
    except Exception:
        # It will be skipped with a reason when it is decoded.
        return None


class PictureFiles(Collection):
    """Image files.

    Arguments:
        names: the names of the images, in order.
        source: takes the name of an image and returns its path or its bytes.
        files: the files that the names and the images are read from.
    """

    def __init__(self, names: Sequence[str], source: Callable[[str], Path | bytes], files: Sequence[File]) -> None:
        self._names = names
        self._source = source
        self._files = files

    @classmethod
    def in_folder(cls, folder: Path, names: Sequence[str]) -> "PictureFiles":
        """A collection of images that are files in a folder."""
        return cls(names, folder.joinpath, [File(name, folder / name) for name in names])

    def __len__(self) -> int:
        return len(self._names)

    def files(self) -> Sequence[File]:
        return self._files

    def items(self) -> Iterator[tuple[str, Opener]]:
        return ((name, partial(self._open, name)) for name in self._names)

    def _open(self, name: str) -> Image.Image:
        return open_picture(self._source(name))


@dataclass(frozen=True)
class Block:
    """Images that are the rows of one array."""

    name: str
    number: Callable[[], int]
    """Returns the number of images. A function, because some formats require reading the file for it."""
    rows: Callable[[], Iterable[NDArray[np.uint8 | np.int32]]]
    """The images, (H, W) or (H, W, 3) each, in order. A label map is (H, W)."""


class Rows(Collection):
    """Rows of arrays of the same shape, named after the array and numbered from 0.

    Arguments:
        blocks: returns the arrays. A function, because this may require unpacking an archive.
        files: the files that they are read from.
        header: the header of every row.
    """

    def __init__(self, blocks: Callable[[], Sequence[Block]], files: Sequence[File], header: Header) -> None:
        self._blocks = blocks
        self._files = files
        self._header = header

    def __len__(self) -> int:
        return sum(block.number() for block in self._blocks())

    def files(self) -> Sequence[File]:
        return self._files

    def items(self) -> Iterator[tuple[str, Opener]]:
        for block in self._blocks():
            for index, row in enumerate(block.rows()):
                yield row_name(block.name, index), partial(Image.fromarray, row)

    def headers(self) -> Iterator[Header]:
        yield self._header


def evenly_chosen(items: Iterator[tuple[str, Opener]], number: int, at_most: int) -> Iterator[tuple[str, Opener]]:
    """At most `at_most` of the `number` items, evenly spaced, starting with the first."""
    chosen = {index * number // at_most for index in range(at_most)} if number > at_most else set(range(number))
    return (item for index, item in enumerate(islice(items, max(chosen, default=-1) + 1)) if index in chosen)


def row_name(block: str, index: int) -> str:
    """The name of a row of an array."""
    return f"{block}/{index:05d}"


def classes_of_rows(numbers: Mapping[str, int], classes: Sequence[str], where: str) -> dict[str, str]:
    """The class of each row of arrays, by the row's name.

    Arguments:
        numbers: the number of rows of each array, by its name.
        classes: the classes of all rows, in order.
        where: what the classes were read from, for an error message.
    """
    names = [row_name(block, index) for block, number in numbers.items() for index in range(number)]
    if len(classes) != len(names):
        raise ValueError(
            f"{where} holds {counted(len(classes), 'label')} for {counted(len(names), 'image')} of "
            f"{', '.join(numbers)}: it must hold one label per image, in the same order"
        )
    return dict(zip(names, classes, strict=True))


def decode_all(collection: Collection, preprocessing: Preprocessing) -> Generator[Decoded | Skipped, None, None]:
    """Decode every image of a collection, in order; images that can't be read are given as :class:`Skipped`."""

    def attempt(item: tuple[str, Opener]) -> Decoded | Skipped:
        name, opener = item
        try:
            with opener() as image:
                return Decoded(name, *decode(image, preprocessing))
        except Exception as broken:
            # Damaged files can make Pillow raise almost any exception.
            return Skipped(name, str(broken) or type(broken).__name__)

    return in_order(attempt, collection.items())


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class Found:
    """What a reader finds at a path."""

    parts: Mapping[Part, Collection]
    preprocessing: Preprocessing = UNDECIDED
    """The default preprocessing of these images."""
    validation_is_last: bool = False
    """If there is no validation set, use the last training images instead of drawing images at random."""
    notes: tuple[str, ...] = ()
    close: Callable[[], None] = _nothing
    """Closes files."""
    class_names: tuple[str, ...] = ()
    """Names of the classes, if the source has them: of the labels of label maps, or of the classes of images."""
    categories: Categories | None = None
    """Returns the class of each image as a whole, if the source may know it; raises an error if the labels are missing.
    Images that are not in the result have no class."""

    def in_order(self) -> list[tuple[Part, Collection]]:
        return [(part, self.parts[part]) for part in PARTS if part in self.parts]


@dataclass(frozen=True)
class Reader:
    """One storage format of images. To add one, add a file to ``readers`` and a line to ``READERS``."""

    name: str
    description: str
    recognises: Callable[[Path], bool]
    """Whether an existing path has this format. Looks at names only."""
    open: Callable[[Path], Found]
    open_labels: Callable[[Path], Found] | None = None
    """Opens label maps, if they are not what `open` returns: unchanged numbers, names of classes."""
    only_labels: bool = False
    """Whether it is used for label maps only, because other readers may find images at the same path."""
