"""Folders that results go to, each file under the name of its source."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from sqvae.codec import NameTaker
from sqvae.data.decoding import is_picture_name
from sqvae.data.speech import is_audio_name
from sqvae.files import check_all_free, claim, remove_abandoned, written


@dataclass(frozen=True)
class Saved:
    """What was written to a folder, or to a file of all results together."""

    path: Path
    number: int
    """How many results there are,"""
    noun: str
    """and what each is: a picture, a label map, a recording, a sample."""
    mels: int | None = None
    """The bands of log-mel frames, where the results are frames."""
    audio: bool = False
    """Whether sound was written beside them."""


def check_apart(inputs: Sequence[str], path: Path) -> None:
    """Raise if results would land among the pictures they come from."""
    for source in inputs:
        folder = Path(source).resolve()
        if folder.is_dir() and folder in (path.resolve(), *path.resolve().parents):
            raise ValueError(
                f"`path={path}` lies in {source}, among the originals; choose another folder, or pass `overwrite=True`"
            )


def check_names_folder(path: Path) -> None:
    """Raise if a folder for results would be called like a picture or a recording: one such file was meant."""
    if not path.is_dir() and (is_audio_name(path.name) or is_picture_name(path.name) or path.suffix.lower() == ".npy"):
        raise ValueError(
            f"`path={path}` ends in {path.suffix}, like a file, and here `path=` names the folder that results go to: "
            f"each becomes a file in it. Pass `path={path.with_suffix('')}`, for instance"
        )


class ResultFolder:
    """A folder that results go to, each under its source's name.

    Arguments:
        path: of the folder.
        endings: of the files that are made of each source.
        overwrite: whether a file may take the place of one that is there: it might be the original.
    """

    def __init__(self, path: Path, endings: Sequence[str], *, overwrite: bool = False) -> None:
        check_names_folder(path)
        claim(path)
        self.path = path
        self.endings = endings
        self.overwrite = overwrite
        self._names = NameTaker("")
        self._folders: set[Path] = set()

    def places(self, name: str) -> list[Path]:
        """Where the files of a source go, in a folder that exists."""
        stem = self._names.take(name)
        places = [self.path / f"{stem}{ending}" for ending in self.endings]
        check_all_free(places, self.overwrite)
        folder = places[0].parent
        if folder not in self._folders:
            folder.mkdir(parents=True, exist_ok=True)
            remove_abandoned(folder)
            self._folders.add(folder)
        return places


class PictureFolder:
    """A folder that pictures are saved to as .png, each under its source's name.

    Arguments:
        path: of the folder.
        overwrite: whether a picture may take the place of a file that is there: it might be the original.
    """

    def __init__(self, path: Path, *, overwrite: bool = False) -> None:
        self.saved = 0
        self._results = ResultFolder(path, [".png"], overwrite=overwrite)

    def save(self, names: Sequence[str], images: Iterable[Image.Image]) -> None:
        """Save a batch."""
        for name, image in zip(names, images, strict=True):
            (place,) = self._results.places(name)
            with written(place, lasting=False) as aside:
                image.save(aside)
        self.saved += len(names)
