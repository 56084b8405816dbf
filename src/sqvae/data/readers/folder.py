"""Folders of pictures, at any depth, with or without subfolders that say what they are for."""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from pathlib import Path, PurePosixPath

from sqvae.data.collection import Found, Part, PictureFiles, Reader
from sqvae.data.decoding import EXTENSIONS, is_picture_name
from sqvae.data.wording import counted, listed, printable, unreadable

SPLIT_NAMES: dict[str, Part] = {
    "train": "train",
    "training": "train",
    "val": "validation",
    "valid": "validation",
    "validation": "validation",
    "dev": "validation",
    "test": "test",
    "testing": "test",
}
"""What a folder's name, in small letters, says that its pictures are for."""

ADVICE = "Put the pictures into a folder for each class, such as train/cat/1.png and train/dog/2.png"
"""To those who need to know the classes of pictures."""

CLASS_NAMES = "classes.txt"
"""The file in a folder of label maps that names their classes."""

_DIGITS = re.compile("([0-9]+)")

_CLUTTER = frozenset(("__MACOSX", "@eaDir", "$RECYCLE.BIN", "Thumbs.db", "desktop.ini"))
"""What operating systems leave in folders."""


@dataclass(frozen=True)
class Listing:
    """The names of the files in a folder or an archive, with ``/`` between their parts, in natural order."""

    pictures: Sequence[str]
    others: Sequence[str]

    @classmethod
    def of(cls, names: Sequence[str]) -> "Listing":
        visible = sorted((name for name in names if not is_clutter(name)), key=natural)
        kinds: tuple[list[str], list[str]] = ([], [])
        for name in visible:
            kinds[is_picture_name(name)].append(name)
        return cls(pictures=kinds[True], others=kinds[False])

    def check(self, where: Path) -> None:
        """Raise if there is no picture."""
        if self.pictures:
            return
        kinds = Counter(PurePosixPath(name).suffix.lower() or "without an extension" for name in self.others)
        found = ", ".join(f"{number} {kind}" for kind, number in kinds.most_common(5))
        raise ValueError(
            f"no pictures in {where}: found {counted(len(self.others), 'file')}{f' ({found})' if found else ''}. "
            f"The names of pictures end in {', '.join(sorted(EXTENSIONS))}"
        )

    def notes(self) -> tuple[str, ...]:
        if not self.others:
            return ()
        number = len(self.others)
        return (f"{counted(number, 'file')} without a picture's extension left alone: {listed(self.others, 3)}",)

    def parts(self) -> dict[Part, list[str]]:
        """The pictures by what they are for, if the uppermost folders that differ have such names."""
        depth = self._depth()
        parts: dict[Part, list[str]] = {}
        for name in self.pictures:
            folders = name.split("/")[depth:-1]
            heading = folders[0].lower() if folders else ""
            parts.setdefault(SPLIT_NAMES.get(heading, "rest"), []).append(name)
        if "train" not in parts or len(parts) == 1:
            return {"all": list(self.pictures)}
        return parts

    def classes(self, where: Path) -> dict[str, str]:
        """The folder that directly holds a picture, below that which says what it is for, by the picture's name."""
        depth = self._depth()
        classes: dict[str, str] = {}
        for name in (name for part, names in self.parts().items() if part != "rest" for name in names):
            folders = name.split("/")[depth:-1]
            if folders[1:] or (folders and folders[0].lower() not in SPLIT_NAMES):
                classes[name] = folders[-1]
        different = sorted(set(classes.values()), key=natural)
        if len(different) < 2:
            held = f"one only, {printable(different[0])}" if different else "none that could be a class"
            raise ValueError(
                f"the classes of the pictures in {where} are not known: they are the names of the folders that "
                f"pictures lie in, and these lie in {held}. {ADVICE}"
            )
        return classes

    def _depth(self) -> int:
        """How many folders hold everything, one in the other, as they often do in archives."""
        folders = [name.split("/")[:-1] for name in self.pictures]
        ends = zip(min(folders), max(folders), strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], ends))


def natural(name: str) -> tuple[object, ...]:
    """A key that sorts names as people do, 2 before 10, folder by folder."""
    folders = []
    for folder in name.split("/"):
        # Text and numbers alternate, so that like is compared with like.
        pieces = _DIGITS.split(folder.lower())
        folders.append(tuple(_number(piece) if index % 2 else piece for index, piece in enumerate(pieces)))
    return (*folders, ()), name


def _number(digits: str) -> tuple[int, str]:
    """What sorts like the number, though it may have as many digits as a name has room for."""
    significant = digits.lstrip("0")
    return len(significant), significant


def is_clutter(name: str) -> bool:
    """Whether a file, or a folder that it is in, is hidden or an operating system's own."""
    return any(part.startswith(".") or part in _CLUTTER for part in name.split("/"))


def files_below(folder: Path) -> tuple[list[str], list[str]]:
    """The names of all ordinary files below a folder that aren't clutter, and of the folders that can't be read."""
    closed: list[str] = []
    names = [f"{prefix}{name}" for prefix, files in walk(folder, closed.append) for name in files]
    return names, closed


def walk(path: Path, on_closed: Callable[[str], None]) -> Iterator[tuple[str, Iterator[str]]]:
    """Each folder, itself and below, with the names of its ordinary files, which are looked up as they are asked for.

    A folder's name ends in ``/``, that of the uppermost is empty. Hidden ones, and those of operating systems, are left
    out, and so is what a link leads to that holds the link itself.

    Arguments:
        path: of a folder that can be read.
        on_closed: called with each folder further down that can't.
    """
    above: frozenset[tuple[int, int]] = frozenset()
    pending = [("", above)]
    while pending:
        prefix, above = pending.pop()
        try:
            here = os.stat(path / prefix)
            within = above | {(here.st_dev, here.st_ino)}
            with os.scandir(path / prefix) as reading:
                folders: list[str] = []
                files = _files(reading, within, folders)
                yield prefix, files
                for _ in files:  # those that weren't asked for
                    pass
        except OSError:
            if not prefix:
                raise
            on_closed(prefix)
            continue
        pending += [(f"{prefix}{name}/", within) for name in sorted(folders, key=natural, reverse=True)]


def _files(
    entries: Iterable[os.DirEntry[str]], within: frozenset[tuple[int, int]], folders: list[str]
) -> Iterator[str]:
    for entry in entries:
        if is_clutter(entry.name):
            continue
        with suppress(OSError):  # of a link that leads to itself
            if entry.is_dir():
                target = os.stat(entry.path)
                if (target.st_dev, target.st_ino) not in within:
                    folders.append(entry.name)
                continue
            if not entry.is_file() and not entry.is_symlink():
                continue  # a pipe would be waited on for ever
        # A link that leads nowhere is named among the skipped.
        yield entry.name


def _open(folder: Path, labels: bool = False) -> Found:
    names, closed = files_below(folder)
    listing = Listing.of([name for name in names if not labels or name != CLASS_NAMES])
    listing.check(folder)
    notes = list(listing.notes())
    if closed:
        notes.append(f"{unreadable(len(closed), 'folder')}: {listed(closed, 3)}")
    collections = {part: PictureFiles.in_folder(folder, pictures) for part, pictures in listing.parts().items()}
    return Found(collections, notes=tuple(notes), categories=partial(listing.classes, folder))


def _open_labels(folder: Path) -> Found:
    found, names = _open(folder, labels=True), folder / CLASS_NAMES
    return replace(found, class_names=read_class_names(names.read_bytes(), names)) if names.is_file() else found


def read_class_names(content: bytes, where: Path) -> tuple[str, ...]:
    """One on a line, in the order of their labels, from 0; empty lines at the end don't count."""
    try:
        lines = content.decode("utf-8-sig").strip().splitlines()
    except UnicodeDecodeError as wrong:
        raise ValueError(f"{where} must name the classes in UTF-8, one on a line ({wrong})") from wrong
    return tuple(line.strip() for line in lines)


FOLDER = Reader("folder", "a folder of pictures", Path.is_dir, _open, _open_labels)
