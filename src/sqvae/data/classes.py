"""The class of each picture as a whole, where the source knows it."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from sqvae.data.pictures import PictureSets
from sqvae.data.readers.folder import ADVICE, natural
from sqvae.data.sources import opened
from sqvae.data.wording import counted, listed

_NAMED = 5
"""How many pictures an error names one by one."""


@dataclass(frozen=True, eq=False)
class Classes:
    """The class of every picture to train on, to validate on and to test on, as its place in ``names``."""

    names: tuple[str, ...]
    """(K), of the classes of the pictures to train on: in alphabetical order, numbers by their value."""
    train: Tensor
    """int64 (N,) in 0 to K - 1, in the order of the pictures to train on;"""
    validation: Tensor
    """the same for those to validate on"""
    test: Tensor
    """and to test on."""


def classes_of(source: str | Path, sets: PictureSets) -> Classes:
    """The class of every picture of three sets.

    It is the name of the folder that directly holds the picture, in a folder or a zip file; what the label files
    beside IDX files say, the batches of CIFAR-10, arrays of labels in an .npz file, or the column of classes of a data
    set of the hub. Pictures are known by their names, so that those that could not be read are missing here too.

    Every picture must have a class, and those to validate and to test on none that there is nothing to train on of:
    nothing could be learnt of it, and to leave such pictures out in silence would change what numbers are of.

    Arguments:
        source: what the sets were loaded from.
        sets: the pictures, from :func:`sqvae.data.load`.
    """
    known = _known(source, labels=sets.preprocessing.labels)
    pictures = {"train": sets.train, "validation": sets.validation, "test": sets.test}
    _check_all_known(source, known, [name for part in pictures.values() for name in part.names])
    names = tuple(sorted({known[name] for name in sets.train.names}, key=natural))
    ids = {name: index for index, name in enumerate(names)}
    _check_all_trained(ids, known, [*sets.validation.names, *sets.test.names])
    train, validation, test = (
        torch.tensor([ids[known[name]] for name in part.names], dtype=torch.int64) for part in pictures.values()
    )
    return Classes(names, train, validation, test)


def _known(source: str | Path, *, labels: bool) -> Mapping[str, str]:
    """The class of each picture, by the picture's name."""
    with opened(source, labels=labels) as found:
        if found.categories is None:
            raise ValueError(
                f"the classes of the pictures in {source} are not known: nothing says them where pictures are stored "
                f"in this way. {ADVICE}"
            )
        classes = found.categories()
    if labels or not found.class_names:  # those of label maps name labels of pixels
        return classes
    highest = max(map(int, classes.values()))
    if highest >= len(found.class_names):
        raise ValueError(
            f"the labels of {source} reach {highest}, but it has {len(found.class_names)} classes, numbered from 0: "
            "download it again"
        )
    return {name: found.class_names[int(number)] for name, number in classes.items()}


def _check_all_known(source: str | Path, known: Mapping[str, str], names: Sequence[str]) -> None:
    if unknown := list(dict.fromkeys(name for name in names if name not in known)):
        raise ValueError(
            f"{counted(len(unknown), 'picture')} in {source} without a class: {listed(unknown, _NAMED)}. Every picture "
            f"needs one. {ADVICE}, and nowhere else"
        )


def _check_all_trained(classes: Container[str], known: Mapping[str, str], names: Sequence[str]) -> None:
    if untrained := [name for name in names if known[name] not in classes]:
        missing = sorted({known[name] for name in untrained}, key=natural)
        raise ValueError(
            f"there are no pictures to train on of {listed(missing, _NAMED)}, and {counted(len(untrained), 'picture')} "
            f"to validate or to test on: {listed(untrained, _NAMED)}. Leave them out, add some to train on, or, where "
            "the sets were drawn, draw them by another split seed"
        )
