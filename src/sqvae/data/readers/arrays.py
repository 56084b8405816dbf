"""NumPy files: .npy with one array of images, .npz with one or several."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from sqvae.data.collection import Block, Collection, File, Found, Part, Reader, Rows, classes_of_rows
from sqvae.data.decoding import sixteen_to_eight, unit_to_eight
from sqvae.data.preprocessing import Header
from sqvae.data.readers.folder import SPLIT_NAMES
from sqvae.data.readers.zip_file import NOT_AN_ARCHIVE, open_zip

_LAYOUTS = "(N, height, width), (N, height, width, channels) or (N, channels, height, width), with 1 or 3 channels"
_AFFIX = re.compile(r"^(x|images)_|_(x|images)$")
"""Prefix or suffix that the name of an array may have in addition to that of a set."""

NOT_AN_ARRAY = (ValueError, SyntaxError, TokenError, OverflowError, MemoryError, TypeError)
"""Exceptions that NumPy may raise for an invalid array header, which it parses as Python."""

_Shapes = Mapping[str, tuple[tuple[int, ...], np.dtype[Any]]]


class Layout:
    """The meaning of the axes and values of an array.

    Arguments:
        name: the name of the array in error messages.
        shape: the shape, with a first axis of images.
        dtype: the data type.
        labels: whether the values are classes.
        one: whether it is a single image in memory, without the first axis; errors then don't advise on saving it.
    """

    def __init__(
        self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], labels: bool, *, one: bool = False
    ) -> None:
        self.name = name
        self._verb = "pass" if one else "save"
        self.dtype = dtype
        self.labels = labels
        given = f"{name} holds {dtype} of shape {shape[1:] if one else shape}"
        if labels and (len(shape) != 3 or dtype.kind not in "iub"):
            raise ValueError(f"{given}; label maps are integers, ({'' if one else 'N, '}height, width)")
        if len(shape) not in (3, 4) or (len(shape) == 4 and not {shape[1], shape[3]} & {1, 3}):
            raise ValueError(f"{given}; images are {_LAYOUTS}")
        if len(shape) == 3 and shape[2] in (1, 3) and not one:
            raise ValueError(f"{given}, which looks like a single image; images are {_LAYOUTS}: add a first axis")
        if 0 in shape:
            raise ValueError(f"{given}: it contains no image")
        if not labels and dtype.kind not in "fb" and dtype not in (np.uint8, np.uint16):
            raise ValueError(
                f"{given}; images are uint8, uint16, bool, or floats in [0, 1]: "
                f"if its values are from 0 to 255, {self._verb} it as uint8, with .astype(numpy.uint8)"
            )
        self.number = shape[0]
        # If both ends could be channels, they are last, as in most libraries.
        self.channel_first = len(shape) == 4 and shape[3] not in (1, 3)
        height, width = shape[2:] if self.channel_first else shape[1:3]
        channels = 1 if len(shape) == 3 else shape[1] if self.channel_first else shape[3]
        self.header = Header(width, height, grey=channels == 1)

    def check_range(self, rows: Iterable[NDArray[Any]]) -> None:
        """Raise ValueError if floats are not in [0, 1]."""
        if self.dtype.kind != "f" or self.labels:
            return
        lowest, highest, unknown = np.inf, -np.inf, False
        for row in rows:
            known = row[~np.isnan(row)]
            unknown = unknown or known.size < row.size
            if known.size:
                lowest, highest = min(lowest, float(known.min())), max(highest, float(known.max()))
        if unknown or lowest < 0 or highest > 1:
            span = f"in [{lowest:g}, {highest:g}]{' and NaN' if unknown else ''}"
            raise ValueError(
                f"{self.name} holds floats {span if lowest <= highest else 'that are all NaN'}, "
                f"but they must lie in [0, 1]: scale them, or {self._verb} images as uint8"
            )

    def picture(self, row: NDArray[Any]) -> NDArray[np.uint8 | np.int32]:  # (...) -> (H, W) or (H, W, 3)
        if self.labels:
            bounds = np.iinfo(np.int32)
            if row.dtype != bool and (row.min() < bounds.min or row.max() > bounds.max):
                raise ValueError(f"{self.name} has labels beyond {bounds.max:,}; number the classes from 0")
            return np.ascontiguousarray(row.astype(np.int32))
        if self.dtype.kind == "f":
            row = unit_to_eight(row)
        elif self.dtype.kind == "b":
            row = row.astype(np.uint8) * 255
        elif self.dtype == np.uint16:
            row = sixteen_to_eight(row)
        if self.channel_first:
            row = row.transpose(1, 2, 0)
        return np.ascontiguousarray(row[..., 0] if row.ndim == 3 and row.shape[2] == 1 else row)


def _collection(layout: Layout, file: Path, name: str, raw: Callable[[], Iterator[NDArray[Any]]]) -> Rows:
    def rows() -> Iterator[NDArray[np.uint8 | np.int32]]:
        # Check everything first: an array in the wrong range is a mistake, not a single image to skip.
        layout.check_range(raw())
        return map(layout.picture, raw())

    return Rows(lambda: [Block(name, lambda: layout.number, rows)], [File(file.name, file)], layout.header)


def _open_npy(path: Path, labels: bool = False) -> Found:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (*NOT_AN_ARRAY, EOFError, OSError) as broken:
        if isinstance(broken, PermissionError):
            raise
        raise ValueError(f"{path} is not an array of numbers that can be read without pickle ({broken})") from broken
    layout = Layout(str(path), array.shape, array.dtype, labels)
    return Found({"all": _collection(layout, path, path.stem, lambda: iter(array))})


def _open_npz(path: Path, labels: bool = False) -> Found:
    try:
        with open_zip(path, ".npz file") as archive:
            names = [name[: -len(".npy")] for name in archive.namelist() if name.endswith(".npy")]
            others = [name for name in archive.namelist() if not name.endswith(".npy")]
            shapes = {name: _read_header(path, archive, name) for name in names}
    except NOT_AN_ARCHIVE as broken:
        raise ValueError(f"{path} is not a complete .npz file ({broken}): save it again") from broken
    chosen: dict[Part, str] = {}
    for name in names:
        part = SPLIT_NAMES.get(_AFFIX.sub("", name.lower()))
        if part is not None:
            chosen.setdefault(part, name)
    notes: tuple[str, ...] = ()
    if "train" not in chosen:
        pictures = [name for name in names if len(shapes[name][0]) in (3, 4)] if len(names) > 1 else names
        if len(pictures) != 1:
            raise ValueError(
                f"{path} holds the arrays {', '.join(names) or '(none)'}; expected one array of images, or arrays "
                "named train, validation (or val) and test (or x_train, x_val and x_test)"
            )
        chosen = {"all": pictures[0]}
    left = [name for name in names if name not in chosen.values()] + others
    if left:
        notes = (f"only {', '.join(chosen.values())} of {path.name} is read, not {', '.join(left)}",)
    parts: dict[Part, Collection] = {}
    for part, name in chosen.items():
        layout = Layout(f"{path}[{name}]", *shapes[name], labels)
        parts[part] = _collection(layout, path, name, partial(_rows_of_npz, path, name))
    return Found(parts, notes=notes, categories=partial(_classes_of_npz, path, tuple(chosen.values()), shapes))


def _classes_of_npz(path: Path, pictures: tuple[str, ...], shapes: _Shapes) -> dict[str, str]:
    """Classes from the arrays of labels that belong to the arrays of images: y_train for x_train."""
    names = {name.lower(): name for name in shapes if name not in pictures}
    classes: dict[str, str] = {}
    for array in pictures:
        base = _AFFIX.sub("", array.lower())
        expected = [f"{base}_labels", f"labels_{base}", f"{base}_y", f"y_{base}"]
        if len(pictures) == 1:
            expected = ["labels", "y", *expected]
        name = next((names[name] for name in expected if name in names), None)
        if name is None:
            raise ValueError(
                f"the classes of {path}[{array}] are not known: there is no array called {' or '.join(expected[:4])}; "
                "save one with a label, an integer or a string, for each image"
            )
        shape, dtype = shapes[name]
        if shape[1:] not in ((), (1,)) or not shape or dtype.kind not in "iubU":
            raise ValueError(f"{path}[{name}] holds {dtype} of shape {shape}; labels are integers or strings, (N,)")
        labels = [str(row.item()) for row in _rows_of_npz(path, name)]
        classes |= classes_of_rows({array: shapes[array][0][0]}, labels, f"{path}[{name}]")
    return classes


def _read_header(path: Path, archive: ZipFile, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    with archive.open(f"{name}.npy") as member:
        shape, _, dtype = _start_of_array(path, name, member)
    return shape, dtype


def _start_of_array(path: Path, name: str, member: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    try:
        version = np.lib.format.read_magic(member)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, by_columns, dtype = read(member)
    except NOT_AN_ARRAY as broken:
        raise ValueError(f"{path}[{name}] is not an array ({broken}): save it again") from broken
    if dtype.hasobject:
        raise ValueError(f"{path}[{name}] holds Python objects, which need pickle: save it as numbers")
    return shape, by_columns, dtype


def _rows_of_npz(path: Path, name: str) -> Iterator[NDArray[Any]]:
    """Yield the rows one by one, so that an array may be larger than memory."""
    try:
        with ZipFile(path) as archive, archive.open(f"{name}.npy") as member:
            shape, by_columns, dtype = _start_of_array(path, name, member)
            if by_columns:
                yield from np.load(path, allow_pickle=False)[name]
                return
            size = dtype.itemsize * int(np.prod(shape[1:]))
            for index in range(shape[0]):
                row = member.read(size)
                if len(row) < size:
                    raise EOFError(f"it ends in row {index} of {shape[0]}")
                yield np.frombuffer(row, dtype).reshape(shape[1:])
    except NOT_AN_ARCHIVE as broken:
        raise ValueError(f"{path}[{name}] is incomplete ({broken}): save it again") from broken


def _is_npy(path: Path) -> bool:
    return path.is_file() and path.suffix.lower() == ".npy"


def _is_npz(path: Path) -> bool:
    return path.is_file() and path.suffix.lower() == ".npz"


NPY = Reader("npy", "a .npy file", _is_npy, _open_npy, partial(_open_npy, labels=True))
NPZ = Reader("npz", "a .npz file", _is_npz, _open_npz, partial(_open_npz, labels=True))
