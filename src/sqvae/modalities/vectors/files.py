"""Vectors in files: .npy, .npz, .safetensors and .parquet, with the names of their rows where a file has them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

NAMES = ("names", "name", "ids", "id", "keys", "key", "item_id")
"""What the names of rows are called in a file, in this order."""


@dataclass(frozen=True)
class VectorRows:
    """Rows of a file or of several, in order."""

    rows: Tensor = field(repr=False)
    """(N, values), float32."""
    names: tuple[str, ...] = field(repr=False)

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, indices: Any) -> Tensor:  # (n,) -> (n, values)
        """Some of the rows."""
        return self.rows[torch.as_tensor(indices, dtype=torch.int64)]

    def subset(self, indices: Sequence[int]) -> "VectorRows":
        """Some of the rows, with their names."""
        return VectorRows(self.take(indices), tuple(self.names[index] for index in indices))


def is_vector_file(path: str | Path) -> bool:
    """Whether a path is a file that may hold vectors, by its name."""
    return Path(path).suffix.lower() in READERS and Path(path).is_file()


def holds_vectors(path: str | Path) -> bool:
    """Whether a file holds float rows. Arrays of integers, or with more axes, are images."""
    if not is_vector_file(path):
        return False
    if Path(path).suffix.lower() == ".npy":  # an array of images may be large, so only its header is looked at
        try:
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError):
            return False
        return bool(array.ndim == 2 and array.dtype.kind == "f")
    try:
        return _found(Path(path))[0].dtype.kind == "f"
    except (ImportError, OSError, ValueError):
        return False


def read_vectors(path: str | Path) -> VectorRows:
    """All rows of a file. Rows without a name are called by their number, from 0 on.

    Raises ValueError if the file holds no vectors, or vectors with values that are not finite.
    """
    path = Path(path).expanduser()
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if not is_vector_file(path):
        raise ValueError(f"{path} is no file of vectors: these end in {', '.join(READERS)}")
    try:
        found, names = _found(path)
    except OSError as failure:
        raise ValueError(f"{path} can't be read: {failure}") from failure
    if found.dtype.kind not in "fiu":
        raise ValueError(f"{path} must hold numbers, got {found.dtype}")
    if not len(found) or not found.shape[1]:
        raise ValueError(f"{path} holds no vectors: its array has the shape {found.shape}")
    rows = torch.from_numpy(np.ascontiguousarray(found, dtype=np.float32))
    wrong = (~rows.isfinite().all(1)).nonzero().flatten()
    if len(wrong):
        raise ValueError(
            f"{path} holds values that are not finite in {len(wrong):,} of {len(rows):,} rows, the first in row "
            f"{int(wrong[0])}: leave such rows out"
        )
    if names is None:
        names = tuple(str(row) for row in range(len(rows)))
    if len(names) != len(rows):
        raise ValueError(f"{path} has {len(names):,} names for {len(rows):,} rows")
    return VectorRows(rows, names)


def _found(path: Path) -> tuple[NDArray[Any], tuple[str, ...] | None]:
    """The only array of rows in a file, and the rows' names if there are any."""
    array, names = READERS[path.suffix.lower()](path)
    if array.ndim != 2:
        raise ValueError(f"{path} must hold rows of vectors, (rows, values), got the shape {array.shape}")
    return array, names


def _npy(path: Path) -> tuple[NDArray[Any], None]:
    try:
        return np.load(path, allow_pickle=False), None
    except (ValueError, EOFError) as failure:
        raise ValueError(f"{path} is damaged, or no array of numbers: {failure}") from None


def _npz(path: Path) -> tuple[NDArray[Any], tuple[str, ...] | None]:
    import zipfile
    import zlib

    try:
        with np.load(path, allow_pickle=False) as file:
            return _only(path, {name: file[name] for name in file.files})
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error) as failure:
        raise ValueError(f"{path} holds no vectors that can be read: {failure}") from None


def _safetensors(path: Path) -> tuple[NDArray[Any], tuple[str, ...] | None]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        tensors = load_file(path)
    except SafetensorError as failure:
        raise ValueError(f"{path} is damaged, or no safetensors file: {failure}") from None
    floats = {name: t.float() if t.is_floating_point() else t for name, t in tensors.items()}
    return _only(path, {name: tensor.numpy() for name, tensor in floats.items()})


def _parquet(path: Path) -> tuple[NDArray[Any], tuple[str, ...] | None]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ImportError(f"{path} needs pyarrow to be read: pip install 'sqvae[vectors]'") from None
    try:
        table = pyarrow.parquet.read_table(path)
    except pyarrow.ArrowException as failure:
        raise ValueError(f"{path} is damaged, or no Parquet file: {failure}") from None
    types = pyarrow.types
    named = next((name for name in NAMES if name in table.column_names), None)
    lists = [
        field.name
        for field in table.schema
        if (types.is_list(field.type) or types.is_fixed_size_list(field.type) or types.is_large_list(field.type))
        and types.is_floating(field.type.value_type)
    ]
    if len(lists) > 1:
        raise ValueError(f"{path} has several columns of vectors ({', '.join(lists)}): keep one of them")
    if lists:
        rows = table.column(lists[0]).to_pylist()
        lengths = {len(row) if row is not None else 0 for row in rows}
        if len(lengths) != 1:
            raise ValueError(f"the vectors in the column {lists[0]} of {path} must have one length, got {lengths}")
        array = np.array(rows, np.float32)
    else:
        numbers = [field.name for field in table.schema if types.is_floating(field.type)]
        if not numbers:
            raise ValueError(f"{path} has neither a column of vectors nor columns of floats")
        array = np.stack([table.column(name).to_numpy() for name in numbers], 1)
    return array, None if named is None else tuple(map(str, table.column(named).to_pylist()))


def _only(path: Path, arrays: Mapping[str, NDArray[Any]]) -> tuple[NDArray[Any], tuple[str, ...] | None]:
    named = next((name for name in NAMES if name in arrays), None)
    floats = [name for name, array in arrays.items() if name != named and array.ndim == 2 and array.dtype.kind == "f"]
    if len(floats) != 1:
        shapes = ", ".join(f"{name} {array.dtype} {array.shape}" for name, array in arrays.items())
        raise ValueError(f"{path} must hold one array of float rows, (rows, values), got {shapes or 'nothing'}")
    return arrays[floats[0]], None if named is None else _texts(arrays[named])


def _texts(names: NDArray[Any]) -> tuple[str, ...]:
    """Names from an array of texts or numbers; or from bytes, each name terminated by a zero byte."""
    if names.dtype == np.uint8:
        return tuple(part.decode("utf-8", "surrogateescape") for part in names.tobytes().split(b"\0")[:-1])
    return tuple(map(str, names.flatten().tolist()))


READERS: Mapping[str, Callable[[Path], tuple[NDArray[Any], tuple[str, ...] | None]]] = {
    ".npy": _npy,
    ".npz": _npz,
    ".safetensors": _safetensors,
    ".parquet": _parquet,
}
"""What reads a file of vectors, by its ending."""
