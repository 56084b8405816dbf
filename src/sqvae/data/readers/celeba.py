"""CelebA as downloaded: aligned faces and the list that assigns each to a set."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from sqvae.data.collection import Collection, File, Found, Part, PictureFiles, Reader
from sqvae.data.limits import read_member
from sqvae.data.preprocessing import Preprocessing
from sqvae.data.readers.folder import Listing, files_below
from sqvae.data.readers.zip_file import open_zip
from sqvae.data.wording import counted, listed

_PICTURES = "img_align_celeba"
_PARTITION = "list_eval_partition"
_PARTS: dict[str, Part] = {"0": "train", "1": "validation", "2": "test"}


class _Faces(NamedTuple):
    """The images, by the name that each has in the list."""

    names: dict[str, str]
    collection: Callable[[Sequence[str]], PictureFiles]
    close: Callable[[], None]


def _find_pictures(path: Path) -> Path | None:
    if path.stem == _PICTURES and (path.is_dir() or path.suffix == ".zip"):
        return path
    places = [path / folder / _PICTURES for folder in (".", "Img")]
    for place in [*places, *(place.with_suffix(".zip") for place in places)]:
        if place.exists():
            return place
    return None


def _recognises(path: Path) -> bool:
    return _find_pictures(path) is not None


def _open(path: Path) -> Found:
    pictures = _find_pictures(path)
    assert pictures is not None  # it was recognised
    partition = _find_partition(pictures)
    intended = _read_partition(partition)
    faces = _faces_in_zip(pictures, partition) if pictures.suffix == ".zip" else _faces_in_folder(pictures)
    parts: dict[Part, list[str]] = {}
    for face, part in intended.items():
        if face in faces.names:
            parts.setdefault(part, []).append(faces.names[face])
    if "train" not in parts:
        faces.close()
        raise ValueError(
            f"{pictures} holds {counted(len(faces.names), 'image')}, but none that {_PARTITION} lists for training"
        )
    notes = []
    if missing := [face for face in intended if face not in faces.names]:
        notes.append(f"{counted(len(missing), 'image')} listed in {_PARTITION} missing: {listed(missing, 3)}")
    if unlisted := [face for face in faces.names if face not in intended]:
        notes.append(f"{counted(len(unlisted), 'image')} not listed in {_PARTITION} skipped: {listed(unlisted, 3)}")
    collections: dict[Part, Collection] = {part: faces.collection(names) for part, names in parts.items()}
    return Found(collections, Preprocessing(size=64, crop=140, channels=3), notes=tuple(notes), close=faces.close)


def _faces_in_folder(folder: Path) -> _Faces:
    names = Listing.of(files_below(folder)[0]).pictures
    return _Faces(
        {PurePosixPath(name).name: name for name in names},
        lambda chosen: PictureFiles.in_folder(folder, chosen),
        lambda: None,
    )


def _faces_in_zip(path: Path, partition: Path) -> _Faces:
    archive = open_zip(path)
    names = Listing.of(archive.namelist()).pictures
    return _Faces(
        {PurePosixPath(name).name: name for name in names},
        lambda chosen: PictureFiles(
            chosen, partial(read_member, archive), [File(path.name, path), File(partition.name, partition)]
        ),
        archive.close,
    )


def _find_partition(pictures: Path) -> Path:
    """The list, in the folder of the images, up to two folders above, or in a folder beside them."""
    above = [pictures, pictures.parent, pictures.parent.parent]
    for folder in above:
        for place in (folder, folder / "Eval", folder / "Anno"):
            for extension in (".txt", ".csv"):
                if (place / f"{_PARTITION}{extension}").is_file():
                    return place / f"{_PARTITION}{extension}"
    raise FileNotFoundError(
        f"{pictures} needs {_PARTITION}.txt (or .csv) in {pictures.parent} or in its folder Eval or Anno: "
        "it assigns images to the training, validation and test sets, and comes with CelebA"
    )


def _read_partition(path: Path) -> dict[str, Part]:
    """Image name -> set, in the order of the list."""
    intended = {}
    for number, line in enumerate(path.read_text("utf-8-sig").splitlines(), 1):
        fields = line.replace(",", " ").split()
        if not fields or fields == ["image_id", "partition"]:
            continue
        if len(fields) != 2 or fields[1] not in _PARTS:
            raise ValueError(
                f"line {number} of {path} is {line!r}; expected a name and 0, 1 or 2, such as 000001.jpg 0"
            )
        intended[fields[0]] = _PARTS[fields[1]]
    return intended


CELEBA = Reader("celeba", "CelebA as downloaded", _recognises, _open)
