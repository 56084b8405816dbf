"""Folders of images, at any depth, with or without subfolders for the sets."""

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
"""The set that a folder's name in lower case stands for."""

ADVICE = "Put the images into a folder for each class, such as train/cat/1.png and train/dog/2.png"
"""Advice if the classes of images are needed."""

CLASS_NAMES = "classes.txt"
"""The file with the names of the classes, in a folder of label maps."""

_DIGITS = re.compile("([0-9]+)")

_CLUTTER = frozenset(("__MACOSX", "@eaDir", "$RECYCLE.BIN", "Thumbs.db", "desktop.ini"))
"""Files and folders that operating systems create."""


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
        """Raise ValueError if there is no image."""
        if self.pictures:
            return
        kinds = Counter(PurePosixPath(name).suffix.lower() or "without an extension" for name in self.others)
        found = ", ".join(f"{number} {kind}" for kind, number in kinds.most_common(5))
        raise ValueError(
            f"no images in {where}: found {counted(len(self.others), 'file')}{f' ({found})' if found else ''}. "
            f"Names of images end in {', '.join(sorted(EXTENSIONS))}"
        )

    def notes(self) -> tuple[str, ...]:
        if not self.others:
            return ()
        number = len(self.others)
        return (f"{counted(number, 'file')} without an image's extension ignored: {listed(self.others, 3)}",)

    def parts(self) -> dict[Part, list[str]]:
        """The images by set, if the uppermost folders that differ are named after sets."""
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
        """The class of each image by name: the folder that directly contains it, below the folder of its set."""
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
                f"the classes of the images in {where} are not known: they are the names of the folders that contain "
                f"the images, and the folders here are {held}. {ADVICE}"
            )
        return classes

    def _depth(self) -> int:
        """Number of nested folders that contain everything, as in many archives."""
        folders = [name.split("/")[:-1] for name in self.pictures]
        ends = zip(min(folders), max(folders), strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], ends))


def natural(name: str) -> tuple[object, ...]:
    """A sort key for natural order, folder by folder: 2 before 10."""
    folders = []
    for folder in name.split("/"):
        # Text and numbers alternate, so only values of the same type are compared.
        pieces = _DIGITS.split(folder.lower())
        folders.append(tuple(_number(piece) if index % 2 else piece for index, piece in enumerate(pieces)))
    return (*folders, ()), name


def _number(digits: str) -> tuple[int, str]:
    """A sort key for a number of any number of digits."""
    significant = digits.lstrip("0")
    return len(significant), significant


def is_clutter(name: str) -> bool:
    """Whether a file, or a folder that contains it, is hidden or belongs to the operating system."""
    return any(part.startswith(".") or part in _CLUTTER for part in name.split("/"))


def files_below(folder: Path) -> tuple[list[str], list[str]]:
    """The names of all regular files below a folder, without clutter, and of the folders that can't be read."""
    closed: list[str] = []
    names = [f"{prefix}{name}" for prefix, files in walk(folder, closed.append) for name in files]
    return names, closed


def walk(path: Path, on_closed: Callable[[str], None]) -> Iterator[tuple[str, Iterator[str]]]:
    """Yield each folder, from the given one downward, with a lazy iterator over the names of its regular files.

    A folder's name ends in ``/``; that of the uppermost is empty. Hidden folders and those of operating systems are
    skipped, and so are links to a folder that contains the link.

    Arguments:
        path: a readable folder.
        on_closed: called with the name of each folder below it that can't be read.
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
                for _ in files:  # those that the caller did not read
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
        with suppress(OSError):  # raised for a link to itself
            if entry.is_dir():
                target = os.stat(entry.path)
                if (target.st_dev, target.st_ino) not in within:
                    folders.append(entry.name)
                continue
            if not entry.is_file() and not entry.is_symlink():
                continue  # reading a pipe would block forever
        # A broken link is listed among the skipped files.
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
    """The class names: one per line, in the order of their labels, from 0. Empty lines at the end are ignored."""
    try:
        lines = content.decode("utf-8-sig").strip().splitlines()
    except UnicodeDecodeError as wrong:
        raise ValueError(f"{where} must contain the class names in UTF-8, one per line ({wrong})") from wrong
    return tuple(line.strip() for line in lines)


FOLDER = Reader("folder", "a folder of images", Path.is_dir, _open, _open_labels)
