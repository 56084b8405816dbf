"""Which pictures to train on, to validate on and to test on, where the source does not say or says it in part."""

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
"""Of more than this many pictures to train on, the last so many are for validation, as is usual for MNIST."""


@dataclass(frozen=True)
class Split:
    """Rows of the decoded pictures, by what they are for."""

    train: Rows
    validation: Rows
    test: Rows
    notes: tuple[str, ...] = ()


def split(parts: Mapping[Part, Rows], names: Sequence[str], *, seed: int, validation_is_last: bool) -> Split:
    """Divide rows, each with a name, into three sets.

    Rows are drawn by a hash of the seed and of their names. So the same pictures give the same sets on any machine,
    and a picture that is added later leaves nearly all others in the set where they were.
    """
    parts = {part: rows for part, rows in parts.items() if len(rows)}
    everything = np.concatenate([np.empty(0, np.int64), *parts.values()])
    if len(everything) < 3:
        note = (
            f"only {counted(len(everything), 'picture')}, so the same are for training, validation and test: "
            "numbers on them say nothing about new pictures"
        )
        return Split(everything, everything, everything, (note,))
    if "all" in parts:
        return _divide(everything, names, seed)
    train = parts["train"]
    drawn: dict[Part, Rows] = {}
    notes = []
    missing: tuple[Part, ...] = ("validation", "test")
    for part in missing:
        if part in parts:
            drawn[part] = parts[part]
        elif len(train) == 1:
            drawn[part] = train
            notes.append(f"there are no {part} pictures, and only 1 to train on: it is used for both")
        else:
            last = part == "validation" and validation_is_last
            train, drawn[part] = _last(train) if last else _draw(train, _tenth(train), names, seed)
            how = f"the last {len(drawn[part]):,}" if last else f"{len(drawn[part]):,}, drawn by split seed {seed},"
            notes.append(f"there are no {part} pictures: {how} of those to train on are set aside")
    return Split(train, drawn["validation"], drawn["test"], tuple(notes))


def _divide(rows: Rows, names: Sequence[str], seed: int) -> Split:
    held_out = _tenth(rows)
    rest, test = _draw(rows, held_out, names, seed)
    train, validation = _draw(rest, held_out, names, seed)
    note = (
        f"{counted(len(rows), 'picture')}, drawn by split seed {seed}: {len(train):,} to train on, "
        f"{len(validation):,} to validate on, {len(test):,} to test on"
    )
    return Split(train, validation, test, (note,))


def _tenth(rows: Rows) -> int:
    return max(round(len(rows) / 10), 1)


def _last(rows: Rows) -> tuple[Rows, Rows]:
    number = _LAST if len(rows) > _LARGE else max(len(rows) // 10, 1)
    return rows[:-number], rows[-number:]


def _draw(rows: Rows, number: int, names: Sequence[str], seed: int) -> tuple[Rows, Rows]:
    """The rest and the drawn, both in order."""
    lots = [lot(seed, names[row]) for row in rows]
    order = sorted(range(len(rows)), key=lots.__getitem__)
    return rows[sorted(order[number:])], rows[sorted(order[:number])]


def lot(seed: int, name: str) -> bytes:
    """What a name draws: of those with a seed, the lowest are taken. The same on every machine."""
    return hashlib.sha256(f"{seed}/{name}".encode("utf-8", "surrogateescape")).digest()
