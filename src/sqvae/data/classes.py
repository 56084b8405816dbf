"""The class of each image as a whole, if the source knows it."""

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
"""Number of images that an error message lists by name."""


@dataclass(frozen=True, eq=False)
class Classes:
    """The class of every image of the training, validation and test sets, as an index into ``names``."""

    names: tuple[str, ...]
    """(K): the classes of the training set, in alphabetical order; numbers are sorted by value."""
    train: Tensor
    """int64 (N,) from 0 to K - 1: the class of each image of the training set."""
    validation: Tensor
    """The same for the validation set."""
    test: Tensor
    """The same for the test set."""


def classes_of(source: str | Path, sets: PictureSets) -> Classes:
    """The class of every image of the three sets.

    The class is the name of the folder that directly contains the image, in a folder or a zip file. It comes from the
    label files beside IDX files, from the batches of CIFAR-10, from arrays of labels in an .npz file, or from the class
    column of a dataset of the hub. Images are identified by their names, so unreadable images are missing here too.

    Every image must have a class, and every class of the validation and test sets must occur in the training set. A
    class without training images can't be learned, and leaving such images out silently would change what the metrics
    are measured on.

    Arguments:
        source: what the sets were loaded from.
        sets: the images, from :func:`sqvae.data.load`.
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
    """The class of each image, by the image's name."""
    with opened(source, labels=labels) as found:
        if found.categories is None:
            raise ValueError(
                f"the classes of the images in {source} are not known: this kind of source has none. {ADVICE}"
            )
        classes = found.categories()
    if labels or not found.class_names:  # the class names of label maps are those of pixels
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
            f"{counted(len(unknown), 'image')} in {source} without a class: {listed(unknown, _NAMED)}. Every image "
            f"needs one. {ADVICE}, and nowhere else"
        )


def _check_all_trained(classes: Container[str], known: Mapping[str, str], names: Sequence[str]) -> None:
    if untrained := [name for name in names if known[name] not in classes]:
        missing = sorted({known[name] for name in untrained}, key=natural)
        raise ValueError(
            f"there are no training images of {listed(missing, _NAMED)}, but {counted(len(untrained), 'image')} in the "
            f"validation or test set: {listed(untrained, _NAMED)}. Remove them, add training images of these classes, "
            "or, if the sets were drawn at random, use another split seed"
        )
