"""Pictures that have been found but not decoded: what every reader returns."""

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
"""Opens one picture, in whichever thread."""

Part: TypeAlias = Literal["train", "validation", "test", "all", "rest"]
"""What pictures are for: "all" where the source does not say, "rest" where it says for others but not for these."""

Categories: TypeAlias = Callable[[], Mapping[str, str]]
"""Gives the class of each picture, by the picture's name; a function, because to know them may mean to read files."""

PARTS: tuple[Part, ...] = ("train", "validation", "test", "all", "rest")


class File(NamedTuple):
    """A file that pictures are read from."""

    label: str
    """Its name in the collection, the same wherever the collection lies."""
    path: Path


@dataclass(frozen=True)
class Skipped:
    """A picture that could not be read."""

    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name} ({self.reason})"

    @property
    def fault(self) -> str:
        """The reason without what may differ from file to file: numbers, names in quotes, addresses."""
        return re.sub(r"'[^']*'|\"[^\"]*\"|<[^>]*>|\d+", "#", self.reason)

    def renamed(self, name: str) -> "Skipped":
        return replace(self, name=name)


def by_reason(skipped: Sequence[Skipped], most: int = 3, faults: int = 10) -> str:
    """What was left out and why: "a.png, b.png and 3 more (no picture); c.png (empty)".

    Arguments:
        most: how many with the same fault are named.
        faults: how many faults are told apart.
    """
    groups: dict[str, list[Skipped]] = {}
    for one in skipped:
        groups.setdefault(one.fault, []).append(one)
    told = list(groups.values())[:faults]
    parts = [f"{listed([one.name for one in group], most)} ({group[0].reason})" for group in told]
    others = len(skipped) - sum(map(len, told))
    return "; ".join([*parts, *([f"{others:,} more for other reasons"] if others else [])])


class UnreadablePictureError(ValueError):
    """A picture can't be read where every one must be."""

    def __init__(self, skipped: Skipped) -> None:
        super().__init__(f"{printable(skipped.name)} can't be read: {skipped.reason}")


@dataclass(frozen=True)
class Decoded:
    """A picture that could be read."""

    name: str
    pixels: Stored
    """(C, H, W)"""
    enlarged: bool
    """Whether it was smaller than the result."""

    def renamed(self, name: str) -> "Decoded":
        return replace(self, name=name)


class Collection(ABC):
    """Pictures in a fixed order."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def files(self) -> Sequence[File]:
        """Everything that decides the names and the pixels: same labels and same bytes, same pictures."""

    @abstractmethod
    def items(self) -> Iterator[tuple[str, Opener]]:
        """The name of each picture and what opens it, in order."""

    def headers(self) -> Iterator[Header]:
        """The headers of the pictures that have a readable one; of equal ones, one will do."""
        return (header for header in in_order(_header, self.items()) if header is not None)

    def labels(self) -> set[int]:
        """Every label of the label maps among them."""
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
        # As for headers.
        return set()


def _header(item: tuple[str, Opener]) -> Header | None:
    _, opener = item
    try:
        with opener() as image:
            return read_header(image)
    except Exception:
        # It will be skipped, with a reason, when it is decoded.
        return None


class PictureFiles(Collection):
    """Files in picture formats.

    Arguments:
        names: of the pictures, in order.
        source: from the name of a picture to its path, or to its bytes.
        files: what the names and the pictures are read from.
    """

    def __init__(self, names: Sequence[str], source: Callable[[str], Path | bytes], files: Sequence[File]) -> None:
        self._names = names
        self._source = source
        self._files = files

    @classmethod
    def in_folder(cls, folder: Path, names: Sequence[str]) -> "PictureFiles":
        """Each picture a file of its own."""
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
    """Pictures that are rows of one array."""

    name: str
    number: Callable[[], int]
    """How many they are; a function, because for some formats this means to read the file."""
    rows: Callable[[], Iterable[NDArray[np.uint8 | np.int32]]]
    """(H, W) or (H, W, 3) each, in order; a label map is (H, W)."""


class Rows(Collection):
    """Rows of arrays, all of one shape, named after the array and counted from 0.

    Arguments:
        blocks: gives the arrays; a function, because to know them may mean to unpack an archive.
        files: what they are read from.
        header: of every row.
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
    """Some of so many items, from the first one on, at even distances."""
    chosen = {index * number // at_most for index in range(at_most)} if number > at_most else set(range(number))
    return (item for index, item in enumerate(islice(items, max(chosen, default=-1) + 1)) if index in chosen)


def row_name(block: str, index: int) -> str:
    """What a row of an array is called."""
    return f"{block}/{index:05d}"


def classes_of_rows(numbers: Mapping[str, int], classes: Sequence[str], where: str) -> dict[str, str]:
    """The class of each row of arrays, by the row's name.

    Arguments:
        numbers: how many rows each array has, by its name.
        classes: of all rows, in order.
        where: what they were read from.
    """
    names = [row_name(block, index) for block, number in numbers.items() for index in range(number)]
    if len(classes) != len(names):
        raise ValueError(
            f"{where} holds {counted(len(classes), 'label')} for {counted(len(names), 'picture')} of "
            f"{', '.join(numbers)}: it must hold as many, in the same order"
        )
    return dict(zip(names, classes, strict=True))


def decode_all(collection: Collection, preprocessing: Preprocessing) -> Generator[Decoded | Skipped, None, None]:
    """Every picture of a collection, in order, with what is to be known of those that can't be read."""

    def attempt(item: tuple[str, Opener]) -> Decoded | Skipped:
        name, opener = item
        try:
            with opener() as image:
                return Decoded(name, *decode(image, preprocessing))
        except Exception as broken:
            # Damaged files make Pillow raise nearly anything.
            return Skipped(name, str(broken) or type(broken).__name__)

    return in_order(attempt, collection.items())


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class Found:
    """What a reader finds at a path."""

    parts: Mapping[Part, Collection]
    preprocessing: Preprocessing = UNDECIDED
    """What suits these pictures, where nobody says otherwise."""
    validation_is_last: bool = False
    """Pictures to validate on, where there are none, are the last ones to train on rather than drawn from them."""
    notes: tuple[str, ...] = ()
    close: Callable[[], None] = _nothing
    """Lets go of files."""
    class_names: tuple[str, ...] = ()
    """Of the numbers in label maps, or of numbers that are pictures' classes, where the source has them."""
    categories: Categories | None = None
    """The class of each picture as a whole, where the source may know it; raises if what should say so is missing.
    Pictures that are not in it have none."""

    def in_order(self) -> list[tuple[Part, Collection]]:
        return [(part, self.parts[part]) for part in PARTS if part in self.parts]


@dataclass(frozen=True)
class Reader:
    """One way in which pictures are stored. To add one: one file here, and one line in ``READERS``."""

    name: str
    description: str
    recognises: Callable[[Path], bool]
    """Whether the path, which exists, is stored in this way; looks at names only."""
    open: Callable[[Path], Found]
    open_labels: Callable[[Path], Found] | None = None
    """The label maps that are there, if they are not what `open` gives: numbers as they are, names of classes."""
    only_labels: bool = False
    """Whether it is asked only for label maps: others may find pictures at the same path."""
