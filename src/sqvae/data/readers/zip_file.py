"""Zip files of images, which are read without extracting them to disk."""

import zlib
from collections import Counter
from functools import partial
from pathlib import Path
from zipfile import BadZipFile, ZipFile, is_zipfile

from sqvae.data.collection import File, Found, PictureFiles, Reader
from sqvae.data.limits import read_member
from sqvae.data.readers.folder import CLASS_NAMES, Listing, read_class_names
from sqvae.data.wording import counted, listed

NOT_AN_ARCHIVE = (BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
"""Exceptions for an archive that is damaged, encrypted, or compressed in a way that Python does not support."""

_END = b"PK\5\6"
_COUNT = slice(10, 12)
"""The position of the number of files at the end of an archive, in 16 bits."""


def open_zip(path: Path, what: str = "zip file") -> ZipFile:
    """The archive; raises an error with its path if it is not valid."""
    try:
        archive = ZipFile(path)
    except NOT_AN_ARCHIVE as broken:
        raise ValueError(f"{path} is not a complete {what} ({broken}): download or make it again") from broken
    said, found = _number_said(path), len(archive.infolist())
    if said != found % 2**16:  # the list of files has no checksum
        archive.close()
        raise ValueError(
            f"{path} is not a complete {what}: it lists {found:,} files, but another number is stored at its end: "
            f"download or make it again"
        )
    return archive


def _number_said(path: Path) -> int:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 2**16 - 22))
        tail = file.read()
    end = tail.rfind(_END)
    return int.from_bytes(tail[end:][_COUNT], "little")


def members(archive: ZipFile) -> tuple[list[str], tuple[str, ...]]:
    """The names of an archive's files, without duplicates, and notes about duplicate and ignored names."""
    counts = Counter(entry.filename for entry in archive.infolist() if not entry.filename.endswith("/"))
    outside = [name for name in counts if not name or name.startswith("/") or ".." in name.split("/")]
    folders = [entry.filename for entry in archive.infolist() if entry.filename.endswith("/") and entry.file_size]
    twice = [name for name, number in counts.items() if number > 1]
    notes = []
    if twice:
        notes.append(
            f"{counted(len(twice), 'name')} more than once in the archive, of which the last file is used: "
            f"{listed(twice, 3)}"
        )
    if folders:
        notes.append(
            f"{counted(len(folders), 'file')} with a folder's name ignored, because the name may be damaged: "
            f"{listed(folders, 3)}"
        )
    if outside:
        notes.append(
            f"{counted(len(outside), 'file')} with a path that leads out of the archive ignored: {listed(outside, 3)}"
        )
    return [name for name in counts if name not in set(outside)], tuple(notes)


def _recognises(path: Path) -> bool:
    return path.is_file() and (path.suffix.lower() == ".zip" or (not path.suffix and is_zipfile(path)))


def _open(path: Path, labels: bool = False) -> Found:
    archive = open_zip(path)
    class_names: tuple[str, ...] = ()
    try:
        names, notes = members(archive)
        if labels and CLASS_NAMES in names:
            class_names = read_class_names(read_member(archive, CLASS_NAMES), path / CLASS_NAMES)
            names.remove(CLASS_NAMES)
        listing = Listing.of(names)
        listing.check(path)
    except BaseException:
        archive.close()
        raise
    collections = {
        part: PictureFiles(pictures, partial(read_member, archive), [File(path.name, path)])
        for part, pictures in listing.parts().items()
    }
    return Found(
        collections,
        notes=(*notes, *listing.notes()),
        close=archive.close,
        class_names=class_names,
        categories=partial(listing.classes, path),
    )


ZIP = Reader("zip", "a zip file of images", _recognises, _open, partial(_open, labels=True))
