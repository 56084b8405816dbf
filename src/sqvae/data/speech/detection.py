"""Detection of whether a path contains recordings or images, from the names of a few files."""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from sqvae.data.catalogue import DATASETS
from sqvae.data.decoding import is_picture_name
from sqvae.data.readers.folder import is_clutter, walk
from sqvae.data.readers.zip_file import open_zip
from sqvae.data.sources import HUB
from sqvae.data.speech.audio import is_audio_name
from sqvae.data.speech.places import is_zip
from sqvae.data.speech.sources import is_speech_name

_LOOKED_AT = 64
"""Number of recordings and images to look at."""
_OF_A_FOLDER = 8
"""Maximum number of them from one folder."""


def holds_speech(source: str | Path) -> bool:
    """Whether a source contains mostly recordings, and not images.

    It looks at file names only, and at no more of them than necessary. It returns False for a path that does not exist;
    the error is reported when it is loaded.
    """
    if is_speech_name(source):
        return True
    if str(source).startswith(HUB) or (isinstance(source, str) and source in DATASETS):
        return False
    path = Path(source).expanduser()
    if not path.exists():
        return False
    try:
        seen = [is_audio_name(name) for name in islice(_media(path), _LOOKED_AT)]
    except (OSError, ValueError):
        return False
    return 2 * sum(seen) > len(seen)


def _media(path: Path) -> Iterator[str]:
    """The names of recordings and images, some from each folder; those in zip files if there are no others."""
    if not path.is_dir():
        yield from _only_media(_in_zip(path) if is_zip(path) else [path.name])
        return
    archives: list[str] = []
    found = False
    for folder, files in walk(path, lambda closed: None):
        for name in islice(_only_media(_noting_zips(files, folder, archives)), _OF_A_FOLDER):
            found = True
            yield name
    if not found:
        for name in sorted(archives):
            yield from _only_media(_in_zip(path / name))


def _only_media(names: Iterable[str]) -> Iterator[str]:
    return (name for name in names if (is_audio_name(name) or is_picture_name(name)) and not is_clutter(name))


def _noting_zips(names: Iterable[str], folder: str, archives: list[str]) -> Iterator[str]:
    for name in names:
        if name.lower().endswith(".zip"):
            archives.append(folder + name)
        yield name


def _in_zip(path: Path) -> list[str]:
    with open_zip(path) as archive:
        return archive.namelist()
