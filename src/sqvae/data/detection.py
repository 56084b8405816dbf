"""Whether a source holds pictures or label maps, by a look at a few."""

from itertools import islice
from pathlib import Path

import numpy as np
from PIL import Image

from sqvae.data.catalogue import DATASETS
from sqvae.data.collection import Collection
from sqvae.data.decoding import read_labels
from sqvae.data.preprocessing import USUALLY_IGNORED
from sqvae.data.sources import opened

_LOOKED_AT = 24
"""So many are opened."""

_MOST_LABELS = 48
"""A map with more labels than that, as half of them may have, is taken for a picture."""

_LEAST_EVEN = 0.7
"""The share of neighbouring pixels with the same label: photographs have 0.2, and digits 0.8, but more labels."""


def holds_labels(source: str | Path) -> bool:
    """Whether what is there looks like label maps: one channel, kept exactly, few labels, in areas.

    A set by name says so itself. Masks of 0 and 255 are left to be pictures: they have one class and no other.
    """
    if isinstance(source, str) and source in DATASETS:
        return DATASETS[source].preprocessing.labels
    try:
        with opened(source, labels=True) as found:
            parts = [collection for part, collection in found.in_order() if part in ("train", "all")]
            seen = [look for collection in parts[:1] for look in _looks(collection)]
    except ValueError:
        return False  # what is wrong with it is said when it is loaded
    if not seen:
        return False
    numbers = sorted(len(labels) for labels, _ in seen)
    every = set[int]().union(*(labels for labels, _ in seen)) - {USUALLY_IGNORED}
    even = sum(share for _, share in seen) / len(seen)
    return len(every) > 1 and numbers[len(numbers) // 2] <= _MOST_LABELS and even >= _LEAST_EVEN


def _looks(collection: Collection) -> list[tuple[set[int], float]]:
    """The labels of some, evenly chosen, and how even they are; none if one of them can't be a label map."""
    looks = []
    step = max(1, len(collection) // _LOOKED_AT)
    for _, opener in islice(collection.items(), 0, None, step):
        try:
            with opener() as image:
                if image.format is None and image.mode == "RGB":
                    return []
                labels = read_labels(image)
        except (OSError, SyntaxError, Image.DecompressionBombError):
            continue  # it will be skipped, with a reason, when it is decoded
        except ValueError:
            return []
        across, down = labels[:, 1:] == labels[:, :-1], labels[1:] == labels[:-1]
        pairs = max(1, across.size + down.size)
        looks.append((set(np.unique(labels).tolist()), float(across.sum() + down.sum()) / pairs))
    return looks
