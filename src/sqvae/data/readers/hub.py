"""Datasets of the Hugging Face hub by name, read with the package `datasets`."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from PIL import Image

from sqvae.data.collection import Collection, File, Found, Opener, Part, row_name
from sqvae.data.decoding import open_picture
from sqvae.data.readers.folder import ADVICE, SPLIT_NAMES


def open_hub(name: str) -> Found:
    """The images of ``OWNER/NAME``, or of a folder in which such a dataset was saved."""
    try:
        datasets = import_module("datasets")
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(
            "datasets of the Hugging Face hub need the package datasets: pip install 'sqvae[hub]'"
        ) from missing
    try:
        splits = datasets.load_dataset(name)
    except Exception as failure:
        # There are many kinds of exceptions, from many packages; their messages are passed on.
        raise ValueError(f"hf:{name} can't be loaded: {failure}") from failure
    column = _picture_column(name, next(iter(splits.values())).features, datasets.Image)
    parts: dict[Part, Collection] = {}
    used: dict[str, Any] = {}
    unused = []
    for split, rows in splits.items():
        part = SPLIT_NAMES.get(str(split).lower())
        if part is None or part in parts:
            unused.append(str(split))
            continue
        encoded = rows.select_columns([column]).cast_column(column, datasets.Image(decode=False))
        parts[part], used[str(split)] = _HubPictures(str(split), encoded, column), rows
    if "train" not in parts:
        if len(splits) != 1:
            raise ValueError(f"hf:{name} has the sets {', '.join(map(str, splits))}, but none is called train")
        only, rows = next(iter(splits.items()))
        encoded = rows.select_columns([column]).cast_column(column, datasets.Image(decode=False))
        parts, used, unused = {"all": _HubPictures(str(only), encoded, column)}, {str(only): rows}, []
    notes = (f"the sets {', '.join(unused)} of hf:{name} are not used",) if unused else ()
    return Found(parts, notes=notes, categories=lambda: _classes(name, used, datasets.ClassLabel))


def _classes(name: str, splits: Mapping[str, Any], kind: type) -> dict[str, str]:
    """The classes from the class column that is called label, or otherwise from the first class column."""
    features = next(iter(splits.values())).features
    columns = [column for column, feature in features.items() if isinstance(feature, kind)]
    if not columns:
        raise ValueError(
            f"the classes of hf:{name} are not known: it has no column of classes (ClassLabel); its columns are "
            f"{_described(features)}. {ADVICE}"
        )
    column = "label" if "label" in columns else columns[0]
    names: list[str] = features[column].names
    return {
        row_name(split, index): names[label]
        for split, rows in splits.items()
        for index, label in enumerate(rows[column][:])
        if label is not None and label >= 0  # -1 marks a hidden class in some test sets
    }


def _picture_column(name: str, features: Any, kind: type) -> str:
    columns: list[str] = [column for column, feature in features.items() if isinstance(feature, kind)]
    if not columns:
        raise ValueError(f"hf:{name} has no column of images (Image); its columns are {_described(features)}")
    return columns[0]


def _described(features: Any) -> str:
    return ", ".join(f"{column} ({type(feature).__name__})" for column, feature in features.items())


class _HubPictures(Collection):
    """The encoded images of one set: the column of each row contains their bytes, or the path of a file.

    Arguments:
        split: the set's name.
        rows: the set, with the image column only.
        column: the name of the image column.
    """

    def __init__(self, split: str, rows: Any, column: str) -> None:
        self._split = split
        self._rows = rows
        self._column = column

    def __len__(self) -> int:
        return len(self._rows)

    def files(self) -> Sequence[File]:
        stored = [Path(file["filename"]) for file in self._rows.cache_files]
        files = [File(f"{index}", path) for index, path in enumerate(stored)]
        if self._rows[0][self._column]["bytes"] is None:
            paths = (Path(row[self._column]["path"]) for row in self._rows)
            files += [File(path.name, path) for path in paths]
        return files

    def items(self) -> Iterator[tuple[str, Opener]]:
        for index, row in enumerate(self._rows):
            picture = row[self._column] or {}
            yield row_name(self._split, index), partial(_open_picture, picture.get("bytes"), picture.get("path"))


def _open_picture(content: bytes | None, path: str | None) -> Image.Image:
    if content is None and path is None:
        raise ValueError("the row has no image")
    return open_picture(Path(path or "") if content is None else content)
