"""Containers of recordings: a folder, a zip file, or a single file. They list the recordings and open each of them."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from zipfile import is_zipfile

from sqvae.data.collection import File
from sqvae.data.limits import read_member
from sqvae.data.readers.folder import files_below, is_clutter, natural
from sqvae.data.readers.zip_file import members, open_zip
from sqvae.data.speech.audio import EXTENSIONS, is_audio_name
from sqvae.data.wording import counted, listed, unreadable


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class Place:
    """A folder, a zip file or a single file, and the recordings in it."""

    path: Path
    label: str
    """Its name: that of a folder, or of a file without its extension."""
    names: Sequence[str]
    """The names of the recordings: their paths below it, with ``/`` between the parts, in natural order."""
    others: Sequence[str]
    """The names of other files."""
    open: Callable[[str], Path | bytes]
    """Takes the name of a recording and returns its path or its bytes."""
    archive: File | None = None
    """The archive that contains all recordings, if there is one."""
    notes: tuple[str, ...] = ()
    close: Callable[[], None] = _nothing

    def files(self, names: Iterable[str]) -> list[File]:
        """All files that determine the content of some recordings."""
        return [self.archive] if self.archive else [File(name, self.path / name) for name in names]


def find_place(path: Path) -> Place:
    """Find the recordings at an existing path. The result must be closed."""
    if path.is_dir():
        return _folder(path)
    if is_zip(path):
        return _zip(path)
    if is_audio_name(path.name):
        return Place(path.parent, path.stem, [path.name], [], path.parent.joinpath)
    packed = "; unpack it, and pass the folder" if ".tar" in path.suffixes or path.suffix == ".tgz" else ""
    raise ValueError(
        f"{path} is neither a folder, nor a zip file, nor a recording, whose name ends in "
        f"{', '.join(sorted(EXTENSIONS))}{packed}"
    )


def is_zip(path: Path) -> bool:
    """Whether a path is a zip file."""
    return path.is_file() and (path.suffix.lower() == ".zip" or (not path.suffix and is_zipfile(path)))


def _folder(path: Path) -> Place:
    names, closed = files_below(path)
    recordings, others = _sorted(names)
    if not recordings:
        archives = [name for name in others if name.lower().endswith(".zip")]
        if len(archives) == 1:
            return _zip(path / archives[0])
        raise ValueError(_none(path, others))
    notes = (f"{unreadable(len(closed), 'folder')}: {listed(closed, 3)}",) if closed else ()
    return Place(path, path.resolve().name, recordings, others, path.joinpath, notes=notes)


def _zip(path: Path) -> Place:
    archive = open_zip(path)
    try:
        names, notes = members(archive)
        recordings, others = _sorted(names)
        if not recordings:
            raise ValueError(_none(path, others))
    except BaseException:
        archive.close()
        raise
    return Place(
        path,
        path.stem,
        recordings,
        others,
        partial(read_member, archive),
        File(path.name, path),
        notes=notes,
        close=archive.close,
    )


def _sorted(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """Recordings and other files, in natural order."""
    kinds: tuple[list[str], list[str]] = ([], [])
    for name in names:
        if not is_clutter(name):
            kinds[is_audio_name(name)].append(name)
    return sorted(kinds[True], key=natural), sorted(kinds[False], key=natural)


def _none(path: Path, others: Sequence[str]) -> str:
    kinds = Counter(PurePosixPath(name).suffix.lower() or "without an extension" for name in others)
    found = ", ".join(f"{number} {kind}" for kind, number in kinds.most_common(5))
    return (
        f"no recordings in {path}: found {counted(len(others), 'file')}{f' ({found})' if found else ''}. "
        f"Names of recordings end in {', '.join(sorted(EXTENSIONS))}"
    )
