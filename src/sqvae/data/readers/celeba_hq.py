"""CelebA-HQ as it is downloaded: faces, and the list that says which face of CelebA each was made from."""

from pathlib import Path

from sqvae.data.collection import Collection, Found, Part, PictureFiles, Reader
from sqvae.data.preprocessing import Preprocessing
from sqvae.data.readers.folder import Listing, files_below
from sqvae.data.wording import counted, listed

_PICTURES = "CelebA-HQ-img"
_MAPPING = "CelebA-HQ-to-CelebA-mapping.txt"

_LAST_TO_TRAIN = 162_770
_LAST_TO_VALIDATE = 182_637
"""CelebA's own sets, by the numbers of its pictures."""


def _find(path: Path) -> Path | None:
    """The folder that holds the pictures' folder."""
    candidates = (path, path / "CelebAMask-HQ", path.parent if path.name == _PICTURES else path)
    return next((folder for folder in candidates if (folder / _PICTURES).is_dir()), None)


def _recognises(path: Path) -> bool:
    return path.is_dir() and _find(path) is not None


def _open(path: Path) -> Found:
    root = _find(path)
    assert root is not None  # it was recognised
    folder, mapping = root / _PICTURES, root / _MAPPING
    if not mapping.is_file():
        raise FileNotFoundError(
            f"{folder} needs {_MAPPING} beside it: it says which pictures are for training, validation and test, and "
            "comes with CelebAMask-HQ"
        )
    intended = _read_mapping(mapping)
    parts: dict[Part, list[str]] = {}
    unlisted = []
    for name in Listing.of(files_below(folder)[0]).pictures:
        stem = Path(name).stem
        if stem in intended:
            parts.setdefault(intended[stem], []).append(name)
        else:
            unlisted.append(name)
    if "train" not in parts:
        raise ValueError(f"{folder} holds no picture that {_MAPPING} lists to train on")
    notes = []
    there = sum(map(len, parts.values()))
    if there < len(intended):
        notes.append(f"{counted(len(intended) - there, 'picture')} listed in {_MAPPING} not there")
    if unlisted:
        notes.append(f"{counted(len(unlisted), 'picture')} not listed in {_MAPPING} left out: {listed(unlisted, 3)}")
    collections: dict[Part, Collection] = {part: PictureFiles.in_folder(folder, names) for part, names in parts.items()}
    return Found(collections, Preprocessing(size=256, channels=3), notes=tuple(notes))


def _read_mapping(path: Path) -> dict[str, Part]:
    """The number of a picture, as its file is called, -> part."""
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


CELEBA_HQ = Reader("celeba-hq", "CelebA-HQ as it is downloaded", _recognises, _open)
