"""Data sets of the Hugging Face hub, by name, with the package that reads them."""

from collections.abc import Iterator, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from PIL import Image

from sqvae.data.collection import Collection, File, Found, Opener, Part
from sqvae.data.decoding import open_picture
from sqvae.data.readers.folder import SPLIT_NAMES


def open_hub(name: str) -> Found:
    """The pictures of ``OWNER/NAME``, or of a folder that such a data set was saved in."""
    try:
        datasets = import_module("datasets")
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(
            "data sets of the Hugging Face hub are read by datasets: pip install 'sqvae[hub]'"
        ) from missing
    try:
        splits = datasets.load_dataset(name)
    except Exception as failure:
        # Many kinds, of many packages; what they say is what there is to say.
        raise ValueError(f"hf:{name} can't be loaded: {failure}") from failure
    column = _picture_column(name, next(iter(splits.values())).features, datasets.Image)
    parts: dict[Part, Collection] = {}
    unused = []
    for split, rows in splits.items():
        part = SPLIT_NAMES.get(str(split).lower())
        if part is None or part in parts:
            unused.append(str(split))
            continue
        encoded = rows.select_columns([column]).cast_column(column, datasets.Image(decode=False))
        parts[part] = _HubPictures(str(split), encoded, column)
    if "train" not in parts:
        if len(splits) != 1:
            raise ValueError(f"hf:{name} has the sets {', '.join(map(str, splits))}, and none is called train")
        only, rows = next(iter(splits.items()))
        encoded = rows.select_columns([column]).cast_column(column, datasets.Image(decode=False))
        parts, unused = {"all": _HubPictures(str(only), encoded, column)}, []
    notes = (f"the sets {', '.join(unused)} of hf:{name} are left out",) if unused else ()
    return Found(parts, notes=notes)


def _picture_column(name: str, features: Any, kind: type) -> str:
    columns: list[str] = [column for column, feature in features.items() if isinstance(feature, kind)]
    if not columns:
        described = ", ".join(f"{column} ({type(feature).__name__})" for column, feature in features.items())
        raise ValueError(f"hf:{name} has no column of pictures (Image); its columns are {described}")
    return columns[0]


class _HubPictures(Collection):
    """The pictures of one set, still encoded: each row's column holds their bytes, or the path of a file.

    Arguments:
        split: the set's name.
        rows: the set, with that column only.
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
            yield f"{self._split}/{index:05d}", partial(_open_picture, picture.get("bytes"), picture.get("path"))


def _open_picture(content: bytes | None, path: str | None) -> Image.Image:
    if content is None and path is None:
        raise ValueError("the row has no picture")
    return open_picture(Path(path or "") if content is None else content)
