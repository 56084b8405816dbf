"""CamVid's label maps: three folders, possibly beside folders of photographs, or a zip file of them."""

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from sqvae.data.catalogue import DATASETS
from sqvae.data.collection import Collection, File, Found, Part, PictureFiles, Reader
from sqvae.data.limits import read_member
from sqvae.data.readers.folder import Listing, files_below
from sqvae.data.readers.zip_file import open_zip

_FOLDERS: dict[str, Part] = {"trainannot": "train", "valannot": "validation", "testannot": "test"}
_ARCHIVE = re.compile(r"camvid.*\.zip", re.IGNORECASE)


def _archive(path: Path) -> Path | None:
    files = [path] if path.is_file() else sorted(path.iterdir())
    return next((file for file in files if _ARCHIVE.fullmatch(file.name)), None)


def _recognises(path: Path) -> bool:
    unpacked = path.is_dir() and all((path / name).is_dir() for name in _FOLDERS)
    return unpacked or _archive(path) is not None


def _open(path: Path) -> Found:
    streets = DATASETS["camvid"]
    archive = _archive(path)
    if archive is None:
        parts = _parts(files_below(path)[0], path)
        collections: dict[Part, Collection] = {
            part: PictureFiles.in_folder(path, names) for part, names in parts.items()
        }
        return Found(collections, streets.preprocessing, class_names=streets.class_names)
    file = open_zip(archive)
    try:
        parts = _parts(file.namelist(), archive)
    except BaseException:
        file.close()
        raise
    read = partial(read_member, file)
    collections = {part: PictureFiles(names, read, [File(archive.name, archive)]) for part, names in parts.items()}
    return Found(collections, streets.preprocessing, close=file.close, class_names=streets.class_names)


def _parts(names: Sequence[str], where: Path) -> dict[Part, list[str]]:
    parts: dict[Part, list[str]] = {}
    for name in Listing.of([name for name in names if not name.endswith("/")]).pictures:
        for folder in name.split("/")[:-1]:
            if folder in _FOLDERS:
                parts.setdefault(_FOLDERS[folder], []).append(name)
    if "train" not in parts:
        raise ValueError(f"{where} holds no label map in a folder called trainannot")
    return parts


CAMVID = Reader("camvid", "CamVid's label maps", _recognises, _open, only_labels=True)
