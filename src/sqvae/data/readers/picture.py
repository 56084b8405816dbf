"""Single image files."""

from pathlib import Path

from sqvae.data.collection import Found, PictureFiles, Reader
from sqvae.data.decoding import is_picture_name


def _recognises(path: Path) -> bool:
    return path.is_file() and is_picture_name(path.name)


def _open(path: Path) -> Found:
    return Found({"all": PictureFiles.in_folder(path.parent, [path.name])})


PICTURE = Reader("picture", "an image file", _recognises, _open)
