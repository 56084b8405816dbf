"""Hashes of the content of files, which are remembered as long as paths, sizes and modification times stay the same."""

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from sqvae.data.collection import File, Found
from sqvae.data.preprocessing import Survey
from sqvae.data.threads import in_order
from sqvae.files import write_text

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with the activity ("reading" or "decoding"), the number of items done and the total number."""

FORMAT = 1
"""Increase this whenever the same files would give another survey, other arrays or names, or another entry format."""

_UNSETTLED = 2.0
"""Number of seconds in which a file may change without a change of its modification time, on coarse file systems."""


@dataclass(frozen=True)
class Known:
    """What is known about the files of a source, and where to store it."""

    content: str
    survey: Survey | None
    remember: Path | None


def know(root: Path, found: Found, progress: Progress) -> Known:
    """What is known about the files of images, except those that belong to no split."""
    return know_files(root, {part: pictures.files() for part, pictures in found.in_order() if part != "rest"}, progress)


def know_files(root: Path, files: Mapping[str, Sequence[File]], progress: Progress) -> Known:
    """The hash of the names and bytes of all files, from the index if no path, size or modification time changed."""
    paths = list(dict.fromkeys(file.path for part in files.values() for file in part))
    stamps = dict(zip(paths, map(_stamp, paths), strict=True))
    listing = _digest(
        f"{FORMAT}\0{part}\0{file.label}\0{os.path.abspath(file.path)}\0{stamps[file.path]}"
        for part, members in files.items()
        for file in members
    )
    remembered = root / "index" / f"{listing}.json"
    with suppress(OSError, ValueError, KeyError, TypeError):
        known = json.loads(remembered.read_text("utf-8"))
        survey = known["survey"]
        return Known(known["content"], survey and _survey_from(survey), remembered)
    settled = time.time() - _UNSETTLED > max((stamp[1] for stamp in stamps.values()), default=0) / 1e9
    hashes = {}
    for done, (path, hashed) in enumerate(zip(paths, in_order(_hash_file, paths), strict=True), 1):
        hashes[path] = hashed
        progress("reading", done, len(paths))
    content = _digest(f"{part}\0{file.label}\0{hashes[file.path]}" for part in files for file in files[part])
    known_now = Known(content, None, remembered if settled else None)
    _remember(known_now)
    return known_now


def survey(known: Known, found: Found, *, labels: bool = False) -> Survey | None:
    """The survey of all headers, and of all labels if requested. It is computed once for unchanged files."""
    if known.survey is not None and (known.survey.labels is not None or not labels):
        return known.survey
    training = [collection for part, collection in found.in_order() if part in ("train", "all")]
    others = [collection for part, collection in found.in_order() if part in ("validation", "test")]
    result = Survey.of(
        (header for collection in training for header in collection.headers()),
        (header for collection in others for header in collection.headers()),
    )
    if result is not None and labels:
        seen = set[int]().union(*(collection.labels() for collection in (*training, *others)))
        result = replace(result, labels=tuple(sorted(seen)))
    if result is not None:
        _remember(Known(known.content, result, known.remember))
    return result


def _remember(known: Known) -> None:
    if known.remember is None:
        return
    # This only saves time later: a cache that can't be written to may still contain the images.
    with suppress(OSError):
        known.remember.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"content": known.content, "survey": known.survey and asdict(known.survey)})
        write_text(known.remember, text)


def _survey_from(stored: Mapping[str, Any]) -> Survey:
    labels = stored.get("labels")
    return Survey(
        stored["sizes"],
        tuple(stored["smallest"]),
        tuple(stored["largest"]),
        stored["grey"],
        None if labels is None else tuple(labels),
    )


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return -1, -1
    return status.st_size, status.st_mtime_ns


def _hash_file(path: Path) -> str:
    hashed = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                hashed.update(block)
    except OSError:
        # It will be skipped with a reason when it is decoded. Once it is readable, it has another hash.
        return "unreadable"
    return hashed.hexdigest()


def _digest(pieces: Iterable[str]) -> str:
    hashed = hashlib.sha256()
    for piece in pieces:
        encoded = piece.encode("utf-8", "surrogateescape")
        # With lengths, so that two different lists never give the same text.
        hashed.update(b"%d:%b" % (len(encoded), encoded))
    return hashed.hexdigest()
