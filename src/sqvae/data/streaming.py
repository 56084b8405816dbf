"""Streaming of images to encode: they are read once, in order, a few ahead, and not stored."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from sqvae.data.catalogue import DATASETS
from sqvae.data.collection import Decoded, Skipped, UnreadablePictureError, decode_all
from sqvae.data.decoding import Stored, is_picture_name
from sqvae.data.preprocessing import Preprocessing
from sqvae.data.sources import HUB, opened, prefixes


def stream(
    inputs: Sequence[str | Path],
    preprocessing: Preprocessing,
    *,
    batch: int,
    strict: bool = False,
    on_skip: Callable[[Skipped], None],
    on_note: Callable[[str], None] = lambda note: None,
) -> Iterator[tuple[list[str], Tensor]]:  # -> names, (B, C, H, W)
    """Yield all images of the inputs, in order, in batches with their names; the last batch may be smaller.

    They are uint8, or uint16 for label maps of more than 256 classes.

    An image's name is its path relative to the common folder of all inputs, so names are unique; with a single input it
    is relative to the input. The sets of an input follow each other: train, validation, test, others.

    Arguments:
        inputs: anything that :func:`sqvae.data.load` takes, and single images.
        preprocessing: how images become arrays, with everything decided.
        batch: the number of images in a batch.
        strict: raise an error for the first image that can't be read.
        on_skip: called with each image that can't be read, if not strict.
        on_note: called with a sentence about files that are ignored, such as those that are not images.
    """
    if batch < 1:
        raise ValueError(f"batch must be at least 1, got {batch}")
    empty = np.empty((batch, *preprocessing.shape), preprocessing.dtype)
    return _batches(_outcomes(inputs, preprocessing, on_note), empty, strict, on_skip)


def count(inputs: Sequence[str | Path], *, labels: bool = False) -> int:
    """The number of images, or label maps, that :func:`stream` will try to read.

    It looks at names and headers only, if the format has them.
    """
    total = 0
    for source in inputs:
        with opened(source, labels=labels) as found:
            total += sum(len(collection) for _, collection in found.in_order())
    return total


def _batches(
    outcomes: Iterator[Decoded | Skipped],
    pictures: Stored,
    strict: bool,
    on_skip: Callable[[Skipped], None],
) -> Iterator[tuple[list[str], Tensor]]:
    names: list[str] = []
    for outcome in outcomes:
        if isinstance(outcome, Skipped):
            if strict:
                raise UnreadablePictureError(outcome)
            on_skip(outcome)
            continue
        pictures[len(names)] = outcome.pixels
        names.append(outcome.name)
        if len(names) == len(pictures):
            yield names, torch.from_numpy(pictures)
            names, pictures = [], np.empty_like(pictures)
    if names:
        yield names, torch.from_numpy(pictures[: len(names)].copy())


def _outcomes(
    inputs: Sequence[str | Path], preprocessing: Preprocessing, on_note: Callable[[str], None]
) -> Iterator[Decoded | Skipped]:
    for source, prefix in zip(inputs, prefixes(inputs, _is_name, is_picture_name), strict=True):
        with opened(source, labels=preprocessing.labels) as found:
            for note in found.notes:
                on_note(note)
            for _, collection in found.in_order():
                # If the caller stops early, closed immediately: before the archive that its threads read from.
                with closing(decode_all(collection, preprocessing)) as outcomes:
                    for outcome in outcomes:
                        yield outcome.renamed(prefix + outcome.name)


def _is_name(source: str | Path) -> bool:
    return str(source).startswith(HUB) or (isinstance(source, str) and source in DATASETS)
