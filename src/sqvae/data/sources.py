"""From what a person names to the pictures that are there."""

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
        raise FileNotFoundError(unknown(name))
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


def check_there(source: str) -> None:
    """Raise if something is neither there nor a name; whether a set's files are there is seen when they are read."""
    if not source.startswith(HUB) and source not in _names() and not Path(source).expanduser().exists():
        raise FileNotFoundError(unknown(source))


def unknown(name: str) -> str:
    """An error: there is nothing of that name."""
    path, names = Path(name).expanduser(), _names()
    near = [*beside(path), *difflib.get_close_matches(name.lower(), names, n=1)]
    missing = f"there is no such file or folder: {name}"
    if near:
        return f"{missing}; did you mean {near[0]}?"
    if path.suffix or path.name != name:
        return missing  # it can't be meant as a name
    return (
        f"{missing}. Nor is it the name of a data set: these are {', '.join(names)}, and {HUB}OWNER/NAME for one of "
        f"the Hugging Face hub"
    )


def beside(path: Path) -> list[str]:
    """Files and folders in the place of one that is not there, whose names are like its own, the nearest first."""
    try:
        there = {entry.name.lower(): entry for entry in sorted(path.parent.iterdir())}
    except OSError:
        return []
    return [str(there[name]) for name in difflib.get_close_matches(path.name.lower(), there, n=3, cutoff=0.7)]


def _names() -> list[str]:
    """Of all sets, those of recordings too."""
    from sqvae.data.speech.catalogue import SPEECH_SETS  # which is made with this

    return [*DATASETS, *SPEECH_SETS]


def unlike(name: str, folder: Path, layout: str, origin: str, what: str) -> str:
    """An error: a folder has the name of a set, and holds something else."""
    return (
        f"{folder} does not hold {name} as it is published: it must hold {layout}, from {origin}. "
        f"To use the {what} that are there, pass `source={folder}`"
    )
