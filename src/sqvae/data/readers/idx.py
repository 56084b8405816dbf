"""IDX files, compressed or not, under the names that MNIST and its successors have."""

import gzip
import os
import re
import zlib
from collections.abc import Iterator
from functools import partial
from math import prod
from pathlib import Path
from typing import IO, cast

import numpy as np
from numpy.typing import NDArray

from sqvae.data.collection import Block, File, Found, Part, Reader, Rows
from sqvae.data.preprocessing import Header

_NAME = re.compile(r"(?P<stem>.*)[-.]idx3-ubyte(\.gz)?")
_PARTS: dict[str, Part] = {"train-images": "train", "t10k-images": "test"}
_SUBFOLDERS = (".", "raw", "MNIST/raw", "FashionMNIST/raw")
"""Where common packages put the files below the folder that one tells them."""

_PICTURES_OF_BYTES = bytes((0, 0, 8, 3))


def _stem(name: str) -> str | None:
    named = _NAME.fullmatch(name)
    return named["stem"] if named else None


def _find(path: Path) -> dict[Part, Path]:
    if path.is_file():
        return {"all": path} if _stem(path.name) is not None else {}
    for subfolder in _SUBFOLDERS:
        # Sorted, so that of a file and its compressed copy the first, which needs no unpacking, is kept.
        found: dict[Part, Path] = {}
        folder = path / subfolder
        # Names rather than paths: this is asked of every folder, and some hold a million pictures.
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
    return Found({part: _collection(file) for part, file in found.items()}, validation_is_last="train" in found)


def _collection(path: Path) -> Rows:
    number, height, width = _shape(path)
    block = Block(_stem(path.name) or path.name, lambda: number, partial(_rows, path))
    return Rows(lambda: [block], [File(path.name, path)], Header(width, height, grey=True))


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
            f"{path} begins with {start[:4].hex() or 'nothing'}, but IDX files of pictures begin with "
            f"{_PICTURES_OF_BYTES.hex()}: download it again"
        )
    number, height, width = (int(size) for size in np.frombuffer(start[4:].ljust(12, b"\0"), ">u4"))
    if not prod((number, height, width)):
        raise ValueError(f"{path} says that it holds {number} pictures of {height}x{width}: download it again")
    return number, height, width


def _rows(path: Path) -> Iterator[NDArray[np.uint8]]:
    number, height, width = _shape(path)
    try:
        with _unpacked(path) as file:
            file.read(16)
            for index in range(number):
                row = file.read(height * width)
                if len(row) < height * width:
                    raise EOFError(f"it ends in picture {index} of {number}")
                yield np.frombuffer(row, np.uint8).reshape(height, width)
    except (EOFError, gzip.BadGzipFile, zlib.error) as broken:
        raise ValueError(f"{path} is not whole ({broken}): download it again") from broken


IDX = Reader("idx", "IDX files as MNIST has them", _recognises, _open)
