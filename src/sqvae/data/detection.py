"""Detection of whether a source contains images or label maps, from a sample of its images, with the reason."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sqvae.data.catalogue import DATASETS
from sqvae.data.collection import Collection, evenly_chosen
from sqvae.data.decoding import Colour, is_lossy, palette_of, read_labels
from sqvae.data.preprocessing import SPARSEST, USUALLY_IGNORED, unknown_label
from sqvae.data.sources import HUB, opened
from sqvae.modality import modality_of

DataKind: TypeAlias = str
"""A name in :data:`sqvae.modality.MODALITIES`."""

TO_PALETTE = (
    "save them as palette PNGs with one palette for all, a number for each colour (in Pillow: "
    "image.quantize(palette=PALETTE, dither=0), where PALETTE is an image of mode P that has the colours)"
)
"""How to convert label maps that are stored as colours."""

_LOOKED_AT = 24
"""Maximum number of images that are opened."""

_MOST_LABELS = 48
"""Maximum median number of labels: label maps with more are taken for images."""

_LEAST_MAPS = 0.75
"""Minimum share of the images that must look like label maps; the others are then left out, each with its reason."""
_SOME_MAPS = 0.1
"""Share of label maps from which on they are mentioned as a doubt."""

_LEAST_EVEN = 0.7
"""Minimum share of neighbouring pixels with the same label: photographs have 0.2, dithered ones with few colours 0.6,
label maps of 16 x 16 pixels 0.75, and label maps of streets 0.97."""

_MOST_SHADES = 0.3
"""Maximum share of colours that lie between the colours on either side: it is 0.02 to 0.2 in label maps of streets with
many kinds of palettes, and 0.4 to 0.8 in photographs with few colours that form areas."""
_MOST_SHADES_OF_GREY = 0.55
"""The same for grey palettes: 0.3 to 0.4 in label maps, and 0.75 to 0.95 in photographs."""

_SHADED_FROM = 5
"""Minimum number of labels for this test. With fewer, one may lie between the others without being a shade."""


@dataclass(frozen=True)
class TakenAs:
    """The kind that data was taken as, and why. As text: "label maps, because ..."."""

    kind: DataKind
    reason: str
    """The reason, in words that follow the kind: "because ...", or "as ... says"."""
    doubt: str | None = None
    """A sentence about evidence against it; None if there is none."""
    conversion: str | None = None
    """How to convert the images so that they can be taken as another kind; None if no conversion is needed."""

    def __str__(self) -> str:
        return f"{modality_of(self.kind).plural}, {self.reason}"

    @property
    def in_full(self) -> str:
        """The text with the doubt, if there is one."""
        return str(self) if self.doubt is None else f"{self}. This is in doubt: {self.doubt}"


def recognise(source: str | Path) -> TakenAs:
    """Decide whether a source contains images or label maps (one channel, lossless, few labels that form areas).

    If a palette gives the labels colours, these must not shade into each other as those of photographs do, and a label
    must have the same colour in all images; the lengths of the palettes do not matter. Without colours, the labels must
    be close together. A named dataset has a known kind. A dataset of the hub is taken for images, because looking at it
    would mean loading it. If only some of the signs are those of label maps, as for black and white masks, the result
    is images with a doubt; also if colour images have few colours that form areas.
    """
    if isinstance(source, str) and source in DATASETS:
        if DATASETS[source].preprocessing.labels:
            return TakenAs("labels", f"because {source} is a dataset of label maps")
        return TakenAs("pictures", f"because {source} is a dataset of images")
    if str(source).startswith(HUB):
        return TakenAs("pictures", "because a dataset of the hub is not examined before it is loaded")
    seen: list[_Look] = []
    for labels in (False, True):  # a source that has both is taken for images
        try:
            with opened(source, labels=labels) as found:
                parts = [collection for part, collection in found.in_order() if part in ("train", "all")]
                seen = [look for collection in parts[:1] for look in _looks(collection)]
            break
        except ValueError:
            continue  # the error is reported when the source is loaded
    return _judged(seen)


class _Look(NamedTuple):
    """What was found in one image."""

    form: str
    """How it is stored: "in colour", "JPEG", "1 bit", "palette" or "grey". The first two can't be label maps."""
    labels: frozenset[int] = frozenset()
    even: float = 0.0
    """The share of neighbouring pixels that are equal."""
    colours: tuple[tuple[int, Colour], ...] = ()
    """The palette colours of the labels that occur."""
    shades: tuple[int, int] = (0, 0)
    """How often a colour has two other colours on its sides, and how often it lies between them."""
    few: frozenset[int] = frozenset()
    """All colours of a colour image with few colours, 0xrrggbb each."""

    @property
    def may_be_map(self) -> bool:
        """Whether this image alone could be a label map."""
        return 0 < len(self.labels) <= 2 * _MOST_LABELS and self.even >= _LEAST_EVEN / 1.5


def _judged(seen: Sequence[_Look]) -> TakenAs:
    if not seen:
        return TakenAs("pictures", "because none of the images could be opened")
    maps = [look for look in seen if look.may_be_map]
    if not _have_areas(maps):
        reason = f"because {_unlike_maps(seen, len(seen))}"
        doubt = _maps_as_colours(seen)
        return TakenAs("pictures", reason, doubt, None if doubt is None else TO_PALETTE)
    if len(_known(maps)) < 2:
        return TakenAs("pictures", "because the images looked at are blank")
    against = _against(maps)
    if len(maps) < _LEAST_MAPS * len(seen):
        some = against is None and len(maps) >= _SOME_MAPS * len(seen)
        doubt = f"{len(maps)} of the {len(seen)} images looked at have {_few(maps)}, and may be label maps"
        others = [look for look in seen if not look.may_be_map]
        return TakenAs("pictures", f"because {_unlike_maps(others, len(seen))}", doubt if some else None)
    if against is not None:
        reason = f"because the images looked at have {_few(maps)}, but {against}"
        return TakenAs("pictures", reason, "they may be label maps all the same, which have few labels in areas")
    forms = {look.form for look in maps}
    what = forms.pop() if len(forms) == 1 else "grey or palette"
    same = ", and a label has the same colour in all of them" if sum(bool(look.colours) for look in maps) > 1 else ""
    return TakenAs("labels", f"because {_are(len(maps), len(seen), f'{what} image')} with {_few(maps)}{same}")


def _have_areas(maps: Sequence[_Look]) -> bool:
    """Whether they have few labels that form areas."""
    if not maps:
        return False
    numbers = sorted(len(look.labels) for look in maps)
    even = sum(look.even for look in maps) / len(maps)
    return numbers[len(numbers) // 2] <= _MOST_LABELS and even >= _LEAST_EVEN


def _maps_as_colours(seen: Sequence[_Look]) -> str | None:
    """A doubt if nearly all images have the same few colours in areas, as coloured label maps do; otherwise None."""
    some = [look for look in seen if look.few and look.even >= _LEAST_EVEN / 1.5]
    if len(some) < _LEAST_MAPS * len(seen):
        return None
    numbers = sorted(len(look.few) for look in some)
    colours = set[int]().union(*(look.few for look in some))
    even = sum(look.even for look in some) / len(some)
    if numbers[len(numbers) // 2] < 2 or len(colours) > 2 * _MOST_LABELS or even < _LEAST_EVEN:
        return None
    return f"the images looked at have only {len(colours)} colours, in areas: they may be label maps kept as colours"


def _against(maps: Sequence[_Look]) -> str | None:
    """Evidence against label maps, though there are few labels that form areas; None if there is none."""
    if any(look.form == "1 bit" for look in maps):
        return "one bit per pixel, as black and white masks and drawings have"
    meanings: dict[int, set[Colour]] = {}
    for look in maps:
        for label, colour in look.colours:
            meanings.setdefault(label, set()).add(colour)
    if different := sorted(label for label, colours in meanings.items() if len(colours) > 1):
        first = different[0]
        return f"a label does not have the same colour in all of them (label {first} is {_colours(meanings[first])})"
    labels = _known(maps)
    if all(colour == (label,) * 3 for label, colours in meanings.items() for colour in colours):
        apart = max(labels) >= SPARSEST * len(labels)
        return "these are far apart, as shades of grey are" if apart else None
    grey = all(len(set(colour)) == 1 for colours in meanings.values() for colour in colours)
    number, between = (sum(counts) for counts in zip(*(look.shades for look in maps), strict=True))
    shaded = number > 0 and between / number > (_MOST_SHADES_OF_GREY if grey else _MOST_SHADES)
    return "their colours shade into each other, as in photographs" if shaded and len(labels) >= _SHADED_FROM else None


def _colours(colours: set[Colour]) -> str:
    named = ["#{:02x}{:02x}{:02x}".format(*colour) for colour in sorted(colours)[:2]]
    return " and ".join(named) + (f" and {len(colours) - 2} more" if len(colours) > 2 else "")


def _known(maps: Sequence[_Look]) -> set[int]:
    """Their labels, without those that usually mark unknown pixels."""
    every = set[int]().union(*(look.labels for look in maps)) - {-1}
    others = every - {USUALLY_IGNORED}
    return others if len(others) > 1 else every


def _few(maps: Sequence[_Look]) -> str:
    """The number of labels, in words. A label that will be ignored is counted separately."""
    labels = sorted(set[int]().union(*(look.labels for look in maps)))
    ignored = unknown_label(labels, ())
    if ignored is None or len(labels) < 2:
        return f"{len(labels)} labels in areas"
    return f"{len(labels) - 1} labels and {ignored}, in areas"


def _are(number: int, total: int, what: str) -> str:
    """How many images have a property ("in colour") or are of a kind ("grey image")."""
    noun = what.endswith("image")
    some = (
        "the image" if total == 1 else f"all {total} images" if number == total else f"{number} of the {total} images"
    )
    if number == 1:
        return f"{some} looked at is {'a ' if noun else ''}{what}"
    return f"{some} looked at are {what}{'s' if noun else ''}"


def _unlike_maps(looks: Sequence[_Look], total: int) -> str:
    """What most of the images are that label maps are not."""
    form, number = Counter(look.form for look in looks).most_common(1)[0]
    if form == "in colour":
        return _are(number, total, form)
    if form == "JPEG":
        return _are(number, total, "stored in a lossy format such as JPEG")
    numbers = sorted(len(look.labels) for look in looks if look.form == form)
    middle, what = numbers[len(numbers) // 2], "colours" if form == "palette" else "levels"
    found = _are(number, total, f"{form} image")
    if middle > _MOST_LABELS:
        return f"{found} of many {what}, {middle} at the median"
    return f"{found} of {middle} {what} at the median, and these don't form areas"


def _looks(collection: Collection) -> list[_Look]:
    """Look at some of the images, evenly chosen."""
    looks = []
    for _, opener in evenly_chosen(collection.items(), len(collection), _LOOKED_AT):
        try:
            with opener() as image:
                looks.append(_look(image))
        except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
            continue  # it will be skipped with a reason when it is decoded
    return looks


def _look(image: Image.Image) -> _Look:
    form = {"1": "1 bit", "P": "palette"}.get(image.mode, "grey")
    try:
        labels = read_labels(image)
    except ValueError:
        grey = image.mode in ("L", "LA") and is_lossy(image)
        return _Look("JPEG") if grey else _look_at_colours(image)
    even = _evenness(labels)
    used = np.unique(labels).tolist()
    colours = palette_of(image)
    known = tuple((label, colours[label]) for label in used if label in colours)
    # Counting shades takes time, and is useless with many labels or without colours.
    shades = _shades(labels, colours) if known and len(used) <= 2 * _MOST_LABELS else (0, 0)
    return _Look(form, frozenset(used), even, known, shades)


def _look_at_colours(image: Image.Image) -> _Look:
    if is_lossy(image):
        return _Look("in colour")
    opaque = image.convert("RGB")
    if opaque.getcolors(2 * _MOST_LABELS) is None:  # returns early if there are many colours
        return _Look("in colour")
    packed = np.asarray(opaque).astype(np.int64) @ np.array([1 << 16, 1 << 8, 1])
    return _Look("in colour", even=_evenness(packed), few=frozenset(np.unique(packed).tolist()))


def _evenness(values: NDArray[np.int64]) -> float:  # (H, W)
    """The share of neighbouring pixels that are equal."""
    across, down = values[:, 1:] == values[:, :-1], values[1:] == values[:-1]
    return int(across.sum() + down.sum()) / max(1, int(across.size + down.size))


def _shades(labels: NDArray[np.int64], colours: dict[int, Colour]) -> tuple[int, int]:  # (H, W) -> (all, between)
    """Number of runs of a label between runs of two others in rows and columns, and of those between them in colour."""
    table = np.zeros((int(labels.max()) + 1, 3), np.int64)
    for label, colour in colours.items():
        if label < len(table):
            table[label] = colour
    total = between = 0
    for lines in (labels, labels.T):
        ended = np.pad(lines, ((0, 0), (0, 1)), constant_values=-1).ravel()  # so that no run continues in the next line
        runs = ended[np.flatnonzero(np.diff(ended, prepend=-2))]
        before, here, after = runs[:-2], runs[1:-1], runs[2:]
        apart = (before >= 0) & (here >= 0) & (after >= 0) & (before != after)
        first, middle, last = (table[part[apart]] for part in (before, here, after))
        inside = (np.minimum(first, last) <= middle) & (middle <= np.maximum(first, last))
        total += int(apart.sum())
        between += int(inside.all(1).sum())
    return total, between
