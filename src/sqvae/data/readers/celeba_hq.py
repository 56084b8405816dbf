"""CelebA-HQ as downloaded: faces, and the list of the CelebA images that they were made from."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from sqvae.data.collection import Collection, Found, Part, PictureFiles, Reader
from sqvae.data.preprocessing import Preprocessing
from sqvae.data.readers.folder import Listing, files_below
from sqvae.data.wording import counted, listed

_PICTURES = "CelebA-HQ-img"
_MAPPING = "CelebA-HQ-to-CelebA-mapping.txt"

_LAST_TO_TRAIN = 162_770
_LAST_TO_VALIDATE = 182_637
"""The boundaries of CelebA's own sets, by the numbers of its images."""


def find(path: Path, names: Sequence[str]) -> Path | None:
    """A folder with one of these names: the folder itself, one inside it, or one in CelebAMask-HQ inside it."""
    places = (folder / name for folder in (path, path / "CelebAMask-HQ") for name in names)
    return next((place for place in (path, *places) if place.name in names and place.is_dir()), None)


def divide(folder: Path, numbers: Iterable[str]) -> tuple[dict[Part, list[str]], list[str]]:
    """The faces with these numbers by set, and notes about those that are missing."""
    mapping = folder.parent / _MAPPING
    if not mapping.is_file():
        raise FileNotFoundError(
            f"{folder} needs {_MAPPING} beside it: it assigns images to the training, validation and test sets, and "
            "comes with CelebAMask-HQ"
        )
    intended = _read_mapping(mapping)
    parts: dict[Part, list[str]] = {}
    unlisted = []
    for number in numbers:
        if number in intended:
            parts.setdefault(intended[number], []).append(number)
        else:
            unlisted.append(number)
    if "train" not in parts:
        raise ValueError(f"{folder} holds no image that {_MAPPING} lists for training")
    notes = []
    there = sum(map(len, parts.values()))
    if there < len(intended):
        notes.append(f"{counted(len(intended) - there, 'image')} listed in {_MAPPING} missing")
    if unlisted:
        notes.append(f"{counted(len(unlisted), 'image')} not listed in {_MAPPING} skipped: {listed(unlisted, 3)}")
    return parts, notes


def numbered_pictures(folder: Path) -> Found:
    """Faces, or label maps of faces, whose file names are numbers."""
    names = {Path(name).stem: name for name in Listing.of(files_below(folder)[0]).pictures}
    parts, notes = divide(folder, names)
    collections: dict[Part, Collection] = {
        part: PictureFiles.in_folder(folder, [names[number] for number in numbers]) for part, numbers in parts.items()
    }
    return Found(collections, notes=tuple(notes))


def _recognises(path: Path) -> bool:
    return path.is_dir() and find(path, [_PICTURES]) is not None


def _open(path: Path) -> Found:
    folder = find(path, [_PICTURES])
    assert folder is not None  # it was recognised
    return replace(numbered_pictures(folder), preprocessing=Preprocessing(size=256, channels=3))


def _read_mapping(path: Path) -> dict[str, Part]:
    """The number of an image, which is its file name, -> set."""
    intended: dict[str, Part] = {}
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        fields = line.split()
        if not fields or fields[0] == "idx":
            continue
        if len(fields) != 3 or not Path(fields[2]).stem.isdigit():
            raise ValueError(f"line {number} of {path} is {line!r}; expected idx, orig_idx and orig_file (000001.jpg)")
        original = int(Path(fields[2]).stem)
        intended[fields[0]] = (
            "train" if original <= _LAST_TO_TRAIN else "validation" if original <= _LAST_TO_VALIDATE else "test"
        )
    return intended


CELEBA_HQ = Reader("celeba-hq", "CelebA-HQ as downloaded", _recognises, _open)
