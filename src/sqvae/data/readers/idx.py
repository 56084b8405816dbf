"""IDX files, compressed or not, with the file names of MNIST and its successors."""

import gzip
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from functools import partial
from math import prod
from pathlib import Path
from typing import IO, cast

import numpy as np
from numpy.typing import NDArray

from sqvae.data.collection import Block, File, Found, Part, Reader, Rows, classes_of_rows
from sqvae.data.limits import check_pixels
from sqvae.data.preprocessing import Header

_NAME = re.compile(r"(?P<stem>.*)[-.]idx3-ubyte(\.gz)?")
_PARTS: dict[str, Part] = {"train-images": "train", "t10k-images": "test"}
_SUBFOLDERS = (".", "raw", "MNIST/raw", "FashionMNIST/raw")
"""Subfolders in which common packages put the files."""

_PICTURES_OF_BYTES = bytes((0, 0, 8, 3))
_LABELS_OF_BYTES = bytes((0, 0, 8, 1))


def _stem(name: str) -> str | None:
    named = _NAME.fullmatch(name)
    return named["stem"] if named else None


def _find(path: Path) -> dict[Part, Path]:
    if path.is_file():
        return {"all": path} if _stem(path.name) is not None else {}
    for subfolder in _SUBFOLDERS:
        # Sorted, so that an uncompressed file is preferred to its compressed copy.
        found: dict[Part, Path] = {}
        folder = path / subfolder
        # Names instead of paths, because this is called for every folder, and some contain a million images.
        for name in sorted(filter(_NAME.fullmatch, os.listdir(folder) if folder.is_dir() else [])):
            part = _PARTS.get(_stem(name) or "")
            if part is not None:
                found.setdefault(part, folder / name)
        if found:
            return found
    return {}


def _recognises(path: Path) -> bool:
    return bool(_find(path))


def _open(path: Path) -> Found:
    found = _find(path)
    if "test" in found and "train" not in found:
        found = {"all": found["test"]}
    return Found(
        {part: _collection(file) for part, file in found.items()},
        validation_is_last="train" in found,
        categories=partial(_classes, found.values()),
    )


def _collection(path: Path) -> Rows:
    number, height, width = _shape(path)
    block = Block(_block(path), lambda: number, partial(_rows, path))
    return Rows(lambda: [block], [File(path.name, path)], Header(width, height, grey=True))


def _block(path: Path) -> str:
    return _stem(path.name) or path.name


def _classes(pictures: Iterable[Path]) -> dict[str, str]:
    """The classes, which are numbers, by the names of the images."""
    classes: dict[str, str] = {}
    for path in pictures:
        number, _, _ = _shape(path)
        labels = _find_labels(path)
        classes |= classes_of_rows({_block(path): number}, [str(label) for label in _labels(labels)], str(labels))
    return classes


def _find_labels(pictures: Path) -> Path:
    """The label file of an image file, in the same folder, with "labels" instead of "images" in its name."""
    stem = re.sub("images$", "labels", _block(pictures))
    names = [f"{stem}{ending}" for ending in ("-idx1-ubyte", "-idx1-ubyte.gz", ".idx1-ubyte", ".idx1-ubyte.gz")]
    for name in names:
        if pictures.with_name(name).is_file():
            return pictures.with_name(name)
    raise FileNotFoundError(
        f"the classes of {pictures} are not known: there is no {names[0]}, packed (.gz) or unpacked, beside it. "
        "Download it from where the images came from"
    )


def _labels(path: Path) -> bytes:
    """The labels, one byte each."""
    try:
        with _unpacked(path) as file:
            start, labels = file.read(8), file.read()
    except (EOFError, gzip.BadGzipFile, zlib.error) as broken:
        raise ValueError(f"{path} can't be unpacked ({broken}): download it again") from broken
    if start[:4] != _LABELS_OF_BYTES:
        raise ValueError(
            f"{path} begins with {start[:4].hex() or 'nothing'}, but IDX files of labels begin with "
            f"{_LABELS_OF_BYTES.hex()}: download it again"
        )
    number = int.from_bytes(start[4:], "big")
    if number != len(labels):
        raise ValueError(f"{path} should contain {number} labels, but contains {len(labels)}: download it again")
    return labels


def _unpacked(path: Path) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def _shape(path: Path) -> tuple[int, int, int]:  # number, height, width
    try:
        with _unpacked(path) as file:
            start = file.read(16)
    except (EOFError, gzip.BadGzipFile, zlib.error) as broken:
        raise ValueError(f"{path} can't be unpacked ({broken}): download it again") from broken
    if start[:4] != _PICTURES_OF_BYTES:
        raise ValueError(
            f"{path} begins with {start[:4].hex() or 'nothing'}, but IDX files of images begin with "
            f"{_PICTURES_OF_BYTES.hex()}: download it again"
        )
    number, height, width = (int(size) for size in np.frombuffer(start[4:].ljust(12, b"\0"), ">u4"))
    if not prod((number, height, width)):
        raise ValueError(f"{path} says that it contains {number} images of {height}x{width}: download it again")
    try:
        check_pixels(width, height)
    except ValueError as large:
        raise ValueError(f"the images of {path}: {large}") from None
    return number, height, width


def _rows(path: Path) -> Iterator[NDArray[np.uint8]]:
    number, height, width = _shape(path)
    try:
        with _unpacked(path) as file:
            file.read(16)
            for index in range(number):
                row = file.read(height * width)
                if len(row) < height * width:
                    raise EOFError(f"it ends in image {index} of {number}")
                yield np.frombuffer(row, np.uint8).reshape(height, width)
            if file.read(1):  # this also verifies the checksum of a compressed file
                raise EOFError(f"it continues after the {number} images that it should contain")
    except (EOFError, gzip.BadGzipFile, zlib.error) as broken:
        raise ValueError(f"{path} is damaged ({broken}): download it again") from broken


IDX = Reader("idx", "IDX files like those of MNIST", _recognises, _open)
