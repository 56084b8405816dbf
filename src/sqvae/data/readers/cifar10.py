"""CIFAR-10 as downloaded: pickled or binary batches, packed or unpacked; or as lossless mosaics."""

import math
import os
import re
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sqvae.data.collection import Block, Collection, File, Found, Part, Reader, Rows, classes_of_rows
from sqvae.data.decoding import open_picture
from sqvae.data.limits import BYTES
from sqvae.data.preprocessing import Header, Preprocessing
from sqvae.data.readers.pickled import Called, read_pickle

_SIDE = 32
_RECORD = 3 * _SIDE * _SIDE
_HEADER = Header(_SIDE, _SIDE, grey=False)

_BATCH = re.compile(r"(?P<stem>data_batch_[1-9]|test_batch)(?P<kind>\.bin|\.webp|)")
_PREFERRED = ("", ".bin", ".webp")
_PIECE = 1 << 20
"""Number of bytes to read at a time."""

_SUBFOLDERS = (".", "cifar-10-batches-py", "cifar-10-batches-bin")
_ARCHIVES = ("cifar-10-python.tar.gz", "cifar-10-binary.tar.gz")

_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
"""The classes in the published order."""

Pixels = NDArray[np.uint8]  # (N, 32, 32, 3)
Result = TypeVar("Result")


_RECONSTRUCT = ("numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct")
"""The function that makes an array; NumPy has moved it."""

_KNOWN = (*_RECONSTRUCT, "numpy.ndarray", "numpy.dtype")


def _in_pickle(content: bytes, name: str) -> Any:
    batch = read_pickle(content)
    return _plain(batch.get(name.encode(), batch.get(name))) if isinstance(batch, dict) else None


def _plain(value: Any) -> Any:
    """A value of a batch, with calls that make arrays converted to arrays. Other calls are an error."""
    if not isinstance(value, Called):
        return value
    if value.name not in _KNOWN:
        raise ValueError(f"it asks for {value.name}, but a batch contains arrays only")
    match value.arguments, value.state:
        case (Called("numpy.ndarray"), _, _), (1, tuple(shape), Called("numpy.dtype") as kind, bool(turned), numbers):
            return _array(shape, kind, numbers, "F" if turned else "C")
    return None


def _array(shape: tuple[Any, ...], kind: Called, numbers: Any, order: Literal["C", "F"]) -> NDArray[np.uint8] | None:
    """An array of bytes; None for any other array."""
    of_bytes = isinstance(kind.arguments, tuple) and kind.arguments[:1] in (("u1",), (b"u1",))
    sides = shape if all(type(side) is int and side >= 0 for side in shape) else (-1,)
    if not of_bytes or not isinstance(numbers, bytes) or math.prod(sides) != len(numbers):
        return None
    return np.frombuffer(numbers, np.uint8).reshape(sides, order=order)


def _from_pickle(content: bytes) -> Pixels:
    pixels = _in_pickle(content, "data")
    if not isinstance(pixels, np.ndarray) or pixels.shape[1:] != (_RECORD,):
        raise ValueError(f"it holds no uint8 array 'data' of shape (N, {_RECORD})")
    return pixels.reshape(-1, 3, _SIDE, _SIDE).transpose(0, 2, 3, 1)


def _records(content: bytes) -> NDArray[np.uint8]:  # -> (N, 1 + 3072): the class, then the pixels
    if len(content) % (1 + _RECORD):
        raise ValueError(f"its {len(content)} bytes are not a multiple of the record size, {1 + _RECORD}")
    return np.frombuffer(content, np.uint8).reshape(-1, 1 + _RECORD)


def _from_binary(content: bytes) -> Pixels:
    return _records(content)[:, 1:].reshape(-1, 3, _SIDE, _SIDE).transpose(0, 2, 3, 1)


def _from_mosaic(content: bytes) -> Pixels:
    with open_picture(content) as image:
        mosaic = np.asarray(image.convert("RGB"))
    rows, columns = mosaic.shape[0] // _SIDE, mosaic.shape[1] // _SIDE
    if mosaic.shape[:2] != (rows * _SIDE, columns * _SIDE):
        raise ValueError(f"the sides of a mosaic must be multiples of {_SIDE}, got {mosaic.shape[1]}x{mosaic.shape[0]}")
    tiles = mosaic.reshape(rows, _SIDE, columns, _SIDE, 3).transpose(0, 2, 1, 3, 4)
    return tiles.reshape(-1, _SIDE, _SIDE, 3)


_DECODERS: dict[str, Callable[[bytes], Pixels]] = {"": _from_pickle, ".bin": _from_binary, ".webp": _from_mosaic}

_LABELS: dict[str, Callable[[bytes], Any]] = {
    "": lambda content: _in_pickle(content, "labels"),
    ".bin": lambda content: _records(content)[:, 0],
}
"""Readers of labels. Mosaics don't contain labels."""


def _decode(where: str, kind: str, content: bytes) -> Pixels:
    return _understood(where, _DECODERS[kind], content)


def _understood(where: str, decoder: Callable[[bytes], Result], content: bytes) -> Result:
    try:
        return decoder(content)
    except Exception as broken:
        # The exception depends on the damage to the pickle.
        raise ValueError(f"{where} is not a batch of CIFAR-10 ({broken}): download it again") from broken


def _batches_in(folder: Path) -> dict[str, Path]:
    """The batches in a folder by name, all of the same kind."""
    # Names instead of paths, because this is called for every folder, and some contain a million images.
    names = os.listdir(folder) if folder.is_dir() else []
    batches = sorted((named["stem"], named["kind"]) for named in map(_BATCH.fullmatch, names) if named)
    for kind in _PREFERRED:
        found = {stem: folder / f"{stem}{kind}" for stem, its_kind in batches if its_kind == kind}
        if any(stem.startswith("data_batch") for stem in found):
            return found
    return {}


def _find(path: Path) -> dict[str, Path] | Path | None:
    """The batches, or the archive that contains them."""
    if path.is_file():
        return path if path.name in _ARCHIVES else None
    for subfolder in _SUBFOLDERS:
        if found := _batches_in(path / subfolder):
            return found
    return next((path / name for name in _ARCHIVES if (path / name).is_file()), None)


def _recognises(path: Path) -> bool:
    return _find(path) is not None


def _open(path: Path) -> Found:
    found = _find(path)
    parts = _from_archive(found) if isinstance(found, Path) else _from_folder(found or {})
    return Found(
        parts, Preprocessing(size=_SIDE, channels=3), validation_is_last=True, categories=partial(_classes, found or {})
    )


def _from_folder(batches: dict[str, Path]) -> dict[Part, Collection]:
    parts: dict[Part, list[Path]] = {}
    for stem, path in batches.items():
        parts.setdefault("test" if stem == "test_batch" else "train", []).append(path)
    return {
        part: Rows(partial(_blocks, paths), [File(path.name, path) for path in paths], _HEADER)
        for part, paths in parts.items()
    }


def _blocks(paths: list[Path]) -> list[Block]:
    return [Block(path.stem, partial(_number, path), partial(_read, path)) for path in paths]


def _read(path: Path) -> Pixels:
    return _decode(str(path), path.suffix, path.read_bytes())


def _number(path: Path) -> int:
    if path.suffix == ".bin":
        return path.stat().st_size // (1 + _RECORD)
    if path.suffix == ".webp":
        with Image.open(path) as image:
            return (image.width // _SIDE) * (image.height // _SIDE)
    return len(_read(path))


def _from_archive(archive: Path) -> dict[Part, Collection]:
    starts: dict[Part, str] = {"train": "data_batch", "test": "test_batch"}
    files = [File(archive.name, archive)]
    return {part: Rows(partial(_unpack, archive, start), files, _HEADER) for part, start in starts.items()}


def _unpack(archive: Path, start: str) -> list[Block]:
    """The batches whose names begin with `start`.

    They are not in order in the archive, and a compressed file can only be read from its beginning, so all of them are
    kept in memory: 150 MB for training.
    """
    batches = sorted(_members(archive, start))
    if not batches:
        raise ValueError(f"{archive} contains no file whose name begins with {start}: download it again")
    decoded = [(stem, _decode(f"{stem} in {archive}", kind, content)) for stem, kind, content in batches]
    return [Block(stem, pixels.__len__, partial(iter, pixels)) for stem, pixels in decoded]


def _members(archive: Path, start: str) -> Iterator[tuple[str, str, bytes]]:
    """The name, the kind and the content of each batch whose name begins with `start`."""
    try:
        yield from _unpacked(archive, start)
    except (tarfile.TarError, EOFError, OSError, zlib.error) as broken:
        raise ValueError(f"{archive} can't be unpacked ({broken}): download it again") from broken


def _unpacked(archive: Path, start: str) -> Iterator[tuple[str, str, bytes]]:
    with tarfile.open(archive) as unpacked:
        for member in unpacked:
            named = _BATCH.fullmatch(Path(member.name).name)
            if named and named["stem"].startswith(start) and member.isfile():
                file = unpacked.extractfile(member)
                assert file is not None  # members that are files can be read
                with closing(file):
                    BYTES.check(member.size, f"{member.name} in {archive} has {member.size:,} bytes")
                    yield named["stem"], named["kind"], file.read()
        # Read to the end, where the checksum of a compressed file is verified.
        while unpacked.fileobj is not None and unpacked.fileobj.read(_PIECE):
            pass


def _classes(found: Mapping[str, Path] | Path) -> dict[str, str]:
    """The classes from the batches or, for mosaics, from label files beside them."""
    if isinstance(found, Path):
        return _classes_of_batches(_members(found, ""), found)
    mosaics = {stem: path for stem, path in found.items() if path.suffix not in _LABELS}
    if mosaics:
        return _classes_of_mosaics(mosaics)
    folder = next(iter(found.values())).parent
    return _classes_of_batches(((stem, path.suffix, path.read_bytes()) for stem, path in found.items()), folder)


def _classes_of_batches(batches: Iterable[tuple[str, str, bytes]], where: Path) -> dict[str, str]:
    classes: dict[str, str] = {}
    for stem, kind, content in batches:
        batch = f"{stem}{kind} in {where}"
        labels = _understood(batch, partial(_labels, kind), content)
        classes |= classes_of_rows({stem: len(_decode(batch, kind, content))}, labels, batch)
    return classes


def _classes_of_mosaics(batches: Mapping[str, Path]) -> dict[str, str]:
    classes: dict[str, str] = {}
    for start, name in (("data_batch", "train_labels.npy"), ("test_batch", "test_labels.npy")):
        paths = {stem: path for stem, path in batches.items() if stem.startswith(start)}
        if not paths:
            continue
        file = next(iter(paths.values())).with_name(name)
        if not file.is_file():
            raise FileNotFoundError(
                f"the classes of {', '.join(path.name for path in paths.values())} are not known: there is no {file}, "
                f"an array of a number from 0 to {len(_CLASSES) - 1} for each image"
            )
        try:
            labels = _named(np.load(file, allow_pickle=False))
        except (ValueError, EOFError) as broken:
            raise ValueError(f"{file} does not contain the classes of CIFAR-10 ({broken}): make it again") from broken
        classes |= classes_of_rows({stem: _number(path) for stem, path in paths.items()}, labels, str(file))
    return classes


def _labels(kind: str, content: bytes) -> list[str]:
    return _named(_LABELS[kind](content))


def _named(labels: Any) -> list[str]:  # (N,) -> (N)
    if isinstance(labels, list) and not all(type(label) is int for label in labels):
        labels = None  # lists of anything else are not converted to an array
    numbers = np.asarray(labels)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or not np.isin(numbers, np.arange(len(_CLASSES))).all():
        raise ValueError(f"its labels must be integers from 0 to {len(_CLASSES) - 1}, one for each image")
    return [_CLASSES[number] for number in numbers]


CIFAR10 = Reader("cifar10", "CIFAR-10 as downloaded", _recognises, _open)
