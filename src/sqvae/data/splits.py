"""Division of images into training, validation and test sets, if the source does not define all of them."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sqvae.data.collection import Part
from sqvae.data.wording import counted

Rows = NDArray[np.int64]

_LARGE = 20_000
_LAST = 10_000
"""If there are more training images than the first number, the last 10,000 are for validation, as usual for MNIST."""


@dataclass(frozen=True)
class Split:
    """Rows of the decoded images, by set."""

    train: Rows
    validation: Rows
    test: Rows
    notes: tuple[str, ...] = ()


def split(
    parts: Mapping[Part, Rows], names: Sequence[str], *, seed: int, validation_is_last: bool, noun: str = "image"
) -> Split:
    """Divide rows, each with a name, into three sets.

    Rows are drawn by a hash of the seed and of their names. So the same images give the same sets on any machine. If an
    image is added later, nearly all others stay in their sets.
    """
    parts = {part: rows for part, rows in parts.items() if len(rows)}
    everything = np.concatenate([np.empty(0, np.int64), *parts.values()])
    if len(everything) < 3:
        note = (
            f"only {counted(len(everything), noun)}, so training, validation and test sets are the same: "
            f"metrics on them say nothing about new {noun}s"
        )
        return Split(everything, everything, everything, (note,))
    if "all" in parts:
        return _divide(everything, names, seed, noun)
    train = parts["train"]
    drawn: dict[Part, Rows] = {}
    notes = []
    missing: tuple[Part, ...] = ("validation", "test")
    for part in missing:
        if part in parts:
            drawn[part] = parts[part]
        elif len(train) == 1:
            drawn[part] = train
            notes.append(f"there are no {part} images, and only 1 training image: it is used for both")
        else:
            last = part == "validation" and validation_is_last
            train, drawn[part] = _last(train) if last else _draw(train, _tenth(train), names, seed)
            how = f"the last {len(drawn[part]):,}" if last else f"{len(drawn[part]):,}, drawn by split seed {seed},"
            notes.append(f"there are no {part} images: {how} of the training images are set aside")
    return Split(train, drawn["validation"], drawn["test"], tuple(notes))


def _divide(rows: Rows, names: Sequence[str], seed: int, noun: str) -> Split:
    held_out = _tenth(rows)
    rest, test = _draw(rows, held_out, names, seed)
    train, validation = _draw(rest, held_out, names, seed)
    note = (
        f"{counted(len(rows), noun)}, divided by split seed {seed}: {len(train):,} for training, "
        f"{len(validation):,} for validation, {len(test):,} for testing"
    )
    return Split(train, validation, test, (note,))


def _tenth(rows: Rows) -> int:
    return max(round(len(rows) / 10), 1)


def _last(rows: Rows) -> tuple[Rows, Rows]:
    number = _LAST if len(rows) > _LARGE else max(len(rows) // 10, 1)
    return rows[:-number], rows[-number:]


def _draw(rows: Rows, number: int, names: Sequence[str], seed: int) -> tuple[Rows, Rows]:
    """The remaining and the drawn rows, both in order."""
    lots = [lot(seed, names[row]) for row in rows]
    order = sorted(range(len(rows)), key=lots.__getitem__)
    return rows[sorted(order[number:])], rows[sorted(order[:number])]


def lot(seed: int, name: str) -> bytes:
    """A pseudo-random sort key of a name: the lowest keys are drawn. It is the same on every machine."""
    return hashlib.sha256(f"{seed}/{name}".encode("utf-8", "surrogateescape")).digest()
