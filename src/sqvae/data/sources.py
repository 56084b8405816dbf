"""From what a person names to the pictures that are there."""

import difflib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from sqvae.data.catalogue import DATASETS, folder_of
from sqvae.data.collection import Found, Reader
from sqvae.data.readers import READERS
from sqvae.data.readers.demo import open_demo
from sqvae.data.readers.hub import open_hub
from sqvae.data.readers.shapes import open_shape_maps, open_shapes

_PACKAGED = {"demo": open_demo, "shapes": open_shapes, "shape-maps": open_shape_maps}
"""Sets that have no files of their own, by name."""

HUB = "hf:"
"""What the name of a data set of the Hugging Face hub begins with."""


@contextmanager
def opened(source: str | Path, *, labels: bool = False) -> Iterator[Found]:
    """What is found at a path or under a name, with its files let go of in the end.

    Arguments:
        labels: look for label maps rather than pictures, where a source has both or reads them differently.
    """
    found = _open(source, labels)
    try:
        yield found
    finally:
        found.close()


def _open(source: str | Path, labels: bool) -> Found:
    name = str(source)
    if name.startswith(HUB):
        return open_hub(name.removeprefix(HUB))
    # A name in the list means the set even if a folder here is called so; ./mnist is the folder.
    if isinstance(source, str) and name in DATASETS:
        return _open_named(name, labels)
    path = Path(source).expanduser()
    if not path.exists():
        raise FileNotFoundError(
            unknown(name, DATASETS, f", and {HUB}OWNER/NAME for a data set of the Hugging Face hub")
        )
    for reader in READERS:
        if (labels or not reader.only_labels) and reader.recognises(path):
            return _read(reader, path, labels)
    raise ValueError(f"{path} is none of: {'; '.join(reader.description for reader in READERS)}")


def _read(reader: Reader, path: Path, labels: bool) -> Found:
    return reader.open_labels(path) if labels and reader.open_labels is not None else reader.open(path)


def _open_named(name: str, labels: bool) -> Found:
    dataset = DATASETS[name]
    if labels != dataset.preprocessing.labels:
        wanted, there = ("label maps", "pictures") if labels else ("pictures", "label maps")
        others = [other for other, one in DATASETS.items() if one.preprocessing.labels == labels]
        raise ValueError(f"{name} is a set of {there}, and not of {wanted}; of those there is {', '.join(others)}")
    if name in _PACKAGED:
        return replace(_PACKAGED[name](), preprocessing=dataset.preprocessing, class_names=dataset.class_names)
    folder = folder_of(name)
    reader: Reader = next(reader for reader in READERS if reader.name == dataset.reader)
    if not reader.recognises(folder):
        raise FileNotFoundError(unlike(name, folder, dataset.layout, dataset.origin, "pictures"))
    found = _read(reader, folder, labels)
    return replace(found, preprocessing=dataset.preprocessing, class_names=dataset.class_names or found.class_names)


def prefixes(
    inputs: Sequence[str | Path], is_set: Callable[[str | Path], bool], is_single: Callable[[str], bool]
) -> list[str]:
    """What comes before the names of what is found in each of several inputs, so that no two have the same.

    Arguments:
        inputs: paths, and names of sets.
        is_set: whether an input is the name of a set.
        is_single: whether a file's name says that it is one of what is looked for, and does not hold many.
    """
    if len(inputs) == 1:
        return [""]
    paths = {index: Path(source).absolute() for index, source in enumerate(inputs) if not is_set(source)}
    common = os.path.commonpath([path.parent for path in paths.values()]) if paths else ""
    before = []
    for index, source in enumerate(inputs):
        if index not in paths:
            before.append(f"{source}/")
            continue
        # Its own name is its file's.
        above = paths[index].parent if is_single(paths[index].name) else paths[index]
        prefix = Path(os.path.relpath(above, common)).as_posix()
        before.append("" if prefix == "." else f"{prefix}/")
    return before


def unknown(name: str, known: Iterable[str], also: str = "") -> str:
    """An error: there is nothing of that name."""
    names = list(known)
    near = difflib.get_close_matches(name.lower(), names, n=1)
    return (
        f"{name} is neither a path that exists nor the name of a data set"
        f"{f'; did you mean {near[0]}?' if near else '.'} The names are {', '.join(names)}{also}"
    )


def unlike(name: str, folder: Path, layout: str, origin: str, what: str) -> str:
    """An error: a folder has the name of a set, and holds something else."""
    return (
        f"{folder} does not hold {name} as it is published: it must hold {layout}, from {origin}. "
        f"To use the {what} that are there, pass --data {folder}"
    )
