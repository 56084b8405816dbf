"""Finding the images of a source: a path, a dataset's name or a dataset of the hub."""

import difflib
import os
from collections.abc import Callable, Iterator, Sequence
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
"""Datasets without files of their own, by name."""

HUB = "hf:"
"""The prefix of names of datasets of the Hugging Face hub."""


@contextmanager
def opened(source: str | Path, *, labels: bool = False) -> Iterator[Found]:
    """Open a path or a named dataset; its files are closed at the end.

    Arguments:
        source: a path, a name in ``DATASETS``, or ``hf:OWNER/NAME``.
        labels: look for label maps instead of images, if a source has both or reads them differently.
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
    # A name in DATASETS means the dataset even if there is a folder of that name; ./mnist is the folder.
    if isinstance(source, str) and name in DATASETS:
        return _open_named(name, labels)
    path = Path(source).expanduser()
    if not path.exists():
        raise FileNotFoundError(unknown(name))
    for reader in READERS:
        if (labels or not reader.only_labels) and reader.recognises(path):
            return _read(reader, path, labels)
    raise ValueError(f"{path} is not one of: {'; '.join(reader.description for reader in READERS)}")


def _read(reader: Reader, path: Path, labels: bool) -> Found:
    return reader.open_labels(path) if labels and reader.open_labels is not None else reader.open(path)


def _open_named(name: str, labels: bool) -> Found:
    dataset = DATASETS[name]
    if labels != dataset.preprocessing.labels:
        wanted, there = ("label maps", "images") if labels else ("images", "label maps")
        others = [other for other, one in DATASETS.items() if one.preprocessing.labels == labels]
        raise ValueError(f"{name} is a dataset of {there}, not of {wanted}; datasets of {wanted}: {', '.join(others)}")
    if name in _PACKAGED:
        return replace(_PACKAGED[name](), preprocessing=dataset.preprocessing, class_names=dataset.class_names)
    folder = folder_of(name)
    reader: Reader = next(reader for reader in READERS if reader.name == dataset.reader)
    if not reader.recognises(folder):
        raise FileNotFoundError(unlike(name, folder, dataset.layout, dataset.origin, "images"))
    found = _read(reader, folder, labels)
    return replace(found, preprocessing=dataset.preprocessing, class_names=dataset.class_names or found.class_names)


def prefixes(
    inputs: Sequence[str | Path], is_set: Callable[[str | Path], bool], is_single: Callable[[str], bool]
) -> list[str]:
    """A prefix for each input, so that the names of what is found in several inputs are unique.

    Arguments:
        inputs: paths and names of datasets.
        is_set: whether an input is the name of a dataset.
        is_single: whether a file name is that of a single image or recording, and not of a file that contains many.
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
        # The name of a single file is the file's own name.
        above = paths[index].parent if is_single(paths[index].name) else paths[index]
        prefix = Path(os.path.relpath(above, common)).as_posix()
        before.append("" if prefix == "." else f"{prefix}/")
    return before


def check_there(source: str) -> None:
    """Raise FileNotFoundError if a source is neither a path nor a name. A dataset's files are checked on reading."""
    if not source.startswith(HUB) and source not in _names() and not Path(source).expanduser().exists():
        raise FileNotFoundError(unknown(source))


def unknown(name: str) -> str:
    """The error message for a source that does not exist."""
    path, names = Path(name).expanduser(), _names()
    near = [*beside(path), *difflib.get_close_matches(name.lower(), names, n=1)]
    missing = f"there is no such file or folder: {name}"
    if near:
        return f"{missing}; did you mean {near[0]}?"
    if path.suffix or path.name != name:
        return missing  # it can't be a name
    return (
        f"{missing}. Nor is it the name of a dataset: these are {', '.join(names)}, and {HUB}OWNER/NAME for one of "
        f"the Hugging Face hub"
    )


def beside(path: Path) -> list[str]:
    """Existing files and folders with names similar to a path that does not exist, the most similar first."""
    try:
        there = {entry.name.lower(): entry for entry in sorted(path.parent.iterdir())}
    except OSError:
        return []
    return [str(there[name]) for name in difflib.get_close_matches(path.name.lower(), there, n=3, cutoff=0.7)]


def _names() -> list[str]:
    """The names of all datasets, including those of recordings."""
    from sqvae.data.speech.catalogue import SPEECH_SETS  # imported here because it imports this module

    return [*DATASETS, *SPEECH_SETS]


def unlike(name: str, folder: Path, layout: str, origin: str, what: str) -> str:
    """The error message for a folder with the name of a dataset that contains something else."""
    return (
        f"{folder} does not contain {name} as published: it must contain {layout}, from {origin}. "
        f"To use the {what} in that folder, pass `source={folder}`"
    )
