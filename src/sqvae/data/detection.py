"""Whether a source holds pictures or label maps, by a look at a few."""

from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from sqvae.data.catalogue import DATASETS
from sqvae.data.collection import Collection
from sqvae.data.decoding import read_labels
from sqvae.data.preprocessing import SPARSEST, USUALLY_IGNORED
from sqvae.data.sources import HUB, opened

_LOOKED_AT = 24
"""So many are opened."""

_MOST_LABELS = 48
"""A map with more labels than that, as half of them may have, is taken for a picture."""

_LEAST_MAPS = 0.75
"""The share of what is there that can be label maps; the others are left out then, each with its reason."""

_LEAST_EVEN = 0.7
"""The share of neighbouring pixels with the same label: photographs have 0.2, and digits 0.8, but more labels."""


def holds_labels(source: str | Path) -> bool:
    """Whether what is there looks like label maps: one channel, kept exactly, few labels, close together, in areas.

    A set by name says so itself, and one of the hub is taken for pictures: to look would be to load it. So are masks of
    one bit, or of 0 and 255: they have one class and no other.
    """
    if isinstance(source, str) and source in DATASETS:
        return DATASETS[source].preprocessing.labels
    if str(source).startswith(HUB):
        return False
    looks: list[_Look | None] = []
    for labels in (False, True):  # where there are both, they are pictures
        try:
            with opened(source, labels=labels) as found:
                parts = [collection for part, collection in found.in_order() if part in ("train", "all")]
                looks = [look for collection in parts[:1] for look in _looks(collection)]
            break
        except ValueError:
            continue  # what is wrong with it is said when it is loaded
    seen = [look for look in looks if look is not None]
    if not seen or len(seen) < _LEAST_MAPS * len(looks):
        return False
    numbers = sorted(len(look.labels) for look in seen)
    every = set[int]().union(*(look.labels for look in seen)) - {USUALLY_IGNORED, -1}
    even = sum(look.even for look in seen) / len(seen)
    return (
        len(every) > 1
        and max(every) < SPARSEST * len(every)
        and numbers[len(numbers) // 2] <= _MOST_LABELS
        and even >= _LEAST_EVEN
        and len({look.palette for look in seen} - {NO_PALETTE}) <= 1  # else the same number means another colour
    )


NO_PALETTE = b""


class _Look(NamedTuple):
    labels: set[int]
    even: float
    """The share of its neighbouring pixels that are alike."""
    palette: bytes
    """NO_PALETTE if it is grey, which goes with any."""


def _looks(collection: Collection) -> list[_Look | None]:
    """Some of them, evenly chosen; None is one that can't be a label map."""
    looks: list[_Look | None] = []
    step = max(1, len(collection) // _LOOKED_AT)
    for _, opener in islice(collection.items(), 0, None, step):
        try:
            with opener() as image:
                if image.mode == "1":
                    looks.append(None)
                    continue
                labels = read_labels(image)
                palette = bytes(image.getpalette() or ()) if image.mode == "P" else NO_PALETTE
        except (OSError, SyntaxError, Image.DecompressionBombError):
            continue  # it will be skipped, with a reason, when it is decoded
        except ValueError:
            looks.append(None)
            continue
        across, down = labels[:, 1:] == labels[:, :-1], labels[1:] == labels[:-1]
        pairs = max(1, across.size + down.size)
        looks.append(_Look(set(np.unique(labels).tolist()), float(across.sum() + down.sum()) / pairs, palette))
    return looks
