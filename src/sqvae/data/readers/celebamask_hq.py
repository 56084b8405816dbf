"""CelebAMask-HQ: label maps of faces as downloaded, with one image for each part of a face, or merged."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from sqvae.data.catalogue import DATASETS
from sqvae.data.collection import Collection, File, Found, Opener, Part, PictureFiles, Reader
from sqvae.data.decoding import open_picture
from sqvae.data.preprocessing import Header
from sqvae.data.readers.celeba_hq import divide, find, numbered_pictures
from sqvae.data.readers.folder import Listing, files_below
from sqvae.data.wording import counted, listed

_PIECES = ("CelebAMask-HQ-mask-anno",)
_MERGED = ("CelebAMask-HQ-mask", "CelebAMaskHQ-mask")

_ORDER = (
    *("skin", "nose", "eye_g", "l_eye", "r_eye", "l_brow", "r_brow", "l_ear", "r_ear"),
    *("mouth", "u_lip", "l_lip", "hair", "hat", "ear_r", "neck_l", "neck", "cloth"),
)
"""The classes from 1 on, as in the file names. If two overlap, the later one is visible."""


class _Pieces(Collection):
    """Label maps that are stored as one file for each part of a face.

    Arguments:
        folder: the folder of all files.
        pieces: the class and the file of each part, in the order of the classes, by the number of the face.
    """

    def __init__(self, folder: Path, pieces: Mapping[str, Sequence[tuple[int, str]]]) -> None:
        self._folder = folder
        self._pieces = pieces

    def __len__(self) -> int:
        return len(self._pieces)

    def files(self) -> Sequence[File]:
        return [File(name, self._folder / name) for pieces in self._pieces.values() for _, name in pieces]

    def items(self) -> Iterator[tuple[str, Opener]]:
        return ((f"{number}.png", partial(self._merge, number)) for number in self._pieces)

    def headers(self) -> Iterator[Header]:
        """The headers of one part of each face, because all parts have the same size."""
        firsts = [pieces[0][1] for pieces in self._pieces.values()]
        return PictureFiles.in_folder(self._folder, firsts).headers()

    def labels(self) -> set[int]:
        """The labels according to the file names, whether or not a part is hidden by others."""
        return {0} | {label for pieces in self._pieces.values() for label, _ in pieces}

    def _merge(self, number: str) -> Image.Image:
        merged = None
        for label, name in self._pieces[number]:
            with open_picture(self._folder / name) as image:
                covered = np.asarray(image.convert("L")) != 0
            if merged is None:
                merged = np.zeros(covered.shape, np.uint8)
            if covered.shape != merged.shape:
                raise ValueError(f"its part {name} is {covered.shape[1]}x{covered.shape[0]}, unlike those before it")
            merged[covered] = label
        assert merged is not None  # every face here has at least one part
        return Image.fromarray(merged)


def _recognises(path: Path) -> bool:
    return path.is_dir() and find(path, (*_MERGED, *_PIECES)) is not None


def _open(path: Path) -> Found:
    faces = DATASETS["celebamask-hq"]
    known: dict[str, Any] = {"preprocessing": faces.preprocessing, "class_names": faces.class_names}
    merged = find(path, _MERGED)
    if merged is not None:
        return replace(numbered_pictures(merged), **known)
    folder = find(path, _PIECES)
    assert folder is not None  # it was recognised
    pieces: dict[str, list[tuple[int, str]]] = {}
    strange = []
    for name in Listing.of(files_below(folder)[0]).pictures:
        number, _, what = Path(name).stem.partition("_")
        if number.isdigit() and what in _ORDER:
            pieces.setdefault(str(int(number)), []).append((1 + _ORDER.index(what), name))
        else:
            strange.append(name)
    parts, notes = divide(folder, sorted(pieces, key=int))
    if strange:
        example = f"{'0'.zfill(5)}_{_ORDER[0]}.png"
        notes.append(f"{counted(len(strange), 'file')} not named like {example} skipped: {listed(strange, 3)}")
    collections: dict[Part, Collection] = {
        part: _Pieces(folder, {number: sorted(pieces[number]) for number in numbers}) for part, numbers in parts.items()
    }
    return Found(collections, notes=tuple(notes), **known)


CELEBAMASK_HQ = Reader("celebamask-hq", "CelebAMask-HQ as downloaded, or merged", _recognises, _open, only_labels=True)
