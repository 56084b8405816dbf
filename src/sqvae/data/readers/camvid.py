"""CamVid's label maps: three folders, or a zip file of them."""

from pathlib import Path

from sqvae.data.collection import Found, Reader
from sqvae.data.readers.folder import FOLDER
from sqvae.data.readers.zip_file import ZIP

_FOLDERS = ("trainannot", "valannot", "testannot")


def _archive(path: Path) -> Path | None:
    return next(iter(sorted(path.glob("[Cc]am[Vv]id*.zip"))), None)


def _recognises(path: Path) -> bool:
    return path.is_dir() and (all((path / name).is_dir() for name in _FOLDERS) or _archive(path) is not None)


def _open(path: Path) -> Found:
    archive = _archive(path)
    return FOLDER.open(path) if archive is None else ZIP.open(archive)


CAMVID = Reader("camvid", "CamVid's label maps", _recognises, _open)
