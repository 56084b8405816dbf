"""Loading of image datasets: images are found, decoded once and cached on disk."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sqvae.data.cache import Entry, cache_folder, entry_key, find_entry, has_jpegs, has_remains, make_entry
from sqvae.data.collection import Found, Part, UnreadablePictureError, by_reason, evenly_chosen
from sqvae.data.content import Known, Progress, know, survey
from sqvae.data.decoding import Colour, palette_of, read_labels
from sqvae.data.pictures import Pictures, PictureSets
from sqvae.data.preprocessing import NOTHING_KNOWN, UNDECIDED, Preprocessing, resolve
from sqvae.data.sources import opened
from sqvae.data.splits import split
from sqvae.data.wording import counted, listed, unreadable

_LOOKED_AT = 48
"""Number of label maps whose palettes are read for the colours of classes."""

_UNSEEN: Colour = (128, 128, 128)
"""The colour of a class without a colour in any of these palettes."""


def _silent(what: str, done: int, total: int) -> None:
    pass


def load(
    source: str | Path,
    preprocessing: Preprocessing = UNDECIDED,
    *,
    split_seed: int = 0,
    strict: bool = False,
    cache: str | Path | None = None,
    progress: Progress | None = None,
    multiple: int = 4,
    class_names: Sequence[str] = (),
) -> PictureSets:
    """Load the images of the training, validation and test sets.

    Images are decoded once into a file of the cache, which is mapped into memory. If the source does not define these
    sets, they are drawn at random: 80%, 10% and 10%.

    Arguments:
        source: a path (a folder, a .zip, .npy or .npz file, a dataset as downloaded), a name in ``DATASETS``, or
            ``hf:OWNER/NAME`` for a dataset of the Hugging Face hub.
        preprocessing: how images become arrays; what is None is decided from the data. With ``labels``, the source is
            read as label maps.
        split_seed: the seed for drawing sets if the source has none.
        strict: raise an error for the first image that can't be read, instead of skipping it with a note.
        cache: the cache folder; if None, ``$SQVAE_CACHE`` or the user's cache folder.
        progress: called with the activity, the number of items done and the total number.
        multiple: height and width of the result must be multiples of this.
        class_names: names of the classes of label maps; by default those of the source.
    """
    root = cache_folder(cache)
    report = progress or _silent
    with opened(source, labels=preprocessing.labels) as found:
        wanted = preprocessing.over(found.preprocessing)
        wanted.check_multiple(multiple)
        known = know(root, found, report)
        names = tuple(class_names) or (found.class_names if preprocessing.labels else ())
        resolved, decisions = _resolve(preprocessing, wanted, known, found, multiple, names)
        if resolved.classes is not None and names and len(names) != resolved.classes:
            decisions.append(f"{len(names)} class names for {resolved.classes} classes: the names are not used")
            names = ()
        colours = _colours(found, resolved)
        notes = [*found.notes, *_left_out(found), *decisions]
        key = entry_key(known.content, resolved, jpegs=has_jpegs(found))
        entry = find_entry(root, key)
        if entry is None:
            if has_remains(root, key):
                notes.append("the cache of these images was damaged and has been rebuilt")
            entry = make_entry(root, key, found, resolved, strict=strict, progress=report)
    _check(entry, source, strict)
    rows = _rows(entry.parts)
    sets = split(rows, entry.names, seed=split_seed, validation_is_last=found.validation_is_last)
    # Images that sets are drawn from belong to no set yet; their skipped ones are counted with the training set.
    skipped = {**entry.skipped, "train": entry.skipped.get("train", []) + entry.skipped.get("all", [])}

    def pictures(part: Part, chosen: NDArray[np.int64]) -> Pictures:
        return Pictures(entry.pictures, chosen, entry.names, tuple(skipped.get(part, [])))

    train = pictures("train", sets.train)
    if resolved.ignore is not None and not train.differs_from(resolved.ignore):
        raise ValueError(NOTHING_KNOWN.format(resolved.ignore))
    return PictureSets(
        train,
        pictures("validation", sets.validation),
        pictures("test", sets.test),
        resolved,
        key,
        (*notes, *_notes(entry), *sets.notes),
        names,
        colours,
    )


def _resolve(
    asked: Preprocessing,
    wanted: Preprocessing,
    known: Known,
    found: Found,
    multiple: int,
    class_names: Sequence[str],
) -> tuple[Preprocessing, list[str]]:
    # A dataset's own size, and a given crop, need no note, so the headers need not be read.
    if wanted.resolved and (asked.size is None or wanted.crop is not None):
        return wanted, []
    surveyed = survey(known, found, labels=wanted.labels and wanted.classes is None)
    # A stored survey may have found no labels because the source contains images.
    if surveyed is None or (wanted.labels and surveyed.labels == ()):
        # No image can be read. Any shape will do to find out why.
        any_shape = (
            Preprocessing(multiple, channels=1, labels=True, classes=2)
            if wanted.labels
            else Preprocessing(multiple, channels=3)
        )
        return wanted.over(any_shape), []
    return resolve(wanted, surveyed, multiple, class_names)


def _colours(found: Found, resolved: Preprocessing) -> tuple[str, ...]:
    """The colours of classes in the palettes of some training label maps; empty if there are no palettes.

    A palette may end with the last entry that its map uses. So each class has its colour in the first map that contains
    it, or otherwise in the first palette that is long enough.
    """
    if not resolved.labels or resolved.classes is None:
        return ()
    shown: dict[int, Colour] = {}
    defined: dict[int, Colour] = {}
    for part, collection in found.in_order():
        if part in ("train", "all"):
            for _, opener in evenly_chosen(collection.items(), len(collection), _LOOKED_AT):
                with suppress(Exception), opener() as image:  # unreadable ones are reported elsewhere
                    if palette := palette_of(image):
                        used = np.unique(read_labels(image)).tolist()
                        shown = {label: palette[label] for label in used if label in palette} | shown
                        defined = palette | defined
    colours = defined | shown
    if len({colours[label] for label in range(resolved.classes) if label in colours}) < 2:
        return ()
    return tuple("#{:02x}{:02x}{:02x}".format(*colours.get(label, _UNSEEN)) for label in range(resolved.classes))


def _left_out(found: Found) -> list[str]:
    if "rest" not in found.parts:
        return []
    rest = found.parts["rest"]
    names = [name for name, _ in rest.items()]
    return [f"{counted(len(rest), 'image')} outside the folders of the sets skipped: {listed(names, 3)}"]


def _check(entry: Entry, source: str | Path, strict: bool) -> None:
    """Raise an error if there are no training images, or if an image is missing in strict mode."""
    skipped = [one for ones in entry.skipped.values() for one in ones]
    if strict and skipped:
        raise UnreadablePictureError(skipped[0])
    if not entry.parts.get("train", entry.parts.get("all")):
        what = "training images" if "train" in entry.parts else "images"
        raise ValueError(f"none of the {what} in {source} can be read: {by_reason(skipped)}")


def _notes(entry: Entry) -> list[str]:
    skipped = [one for ones in entry.skipped.values() for one in ones]
    notes = []
    if skipped:
        notes.append(f"{unreadable(len(skipped), 'image')}: {by_reason(skipped)}")
    if entry.enlarged:
        _, _, height, width = entry.shape
        notes.append(f"{counted(entry.enlarged, 'image')} smaller than {width}x{height} enlarged")
    return notes


def _rows(parts: Mapping[Part, int]) -> dict[Part, NDArray[np.int64]]:
    """The rows of each part. The parts are stored one after the other."""
    ends = np.cumsum(list(parts.values()))
    return {part: np.arange(end - number, end) for (part, number), end in zip(parts.items(), ends, strict=True)}
