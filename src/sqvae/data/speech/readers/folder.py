"""Any folder or zip file of recordings, optionally with folders for speakers, and folders for sets above these."""

from collections.abc import Sequence

from sqvae.data.collection import Part
from sqvae.data.readers.folder import SPLIT_NAMES
from sqvae.data.speech.places import Place
from sqvae.data.speech.recordings import FoundSpeech, Recording, SpeechReader
from sqvae.data.wording import counted, listed


def _recognises(names: Sequence[str]) -> bool:
    return True


def _read(place: Place) -> FoundSpeech:
    folders = [name.split("/")[:-1] for name in place.names]
    depth = _depth(folders)
    sets = _sets(folders, depth)
    has_sets = "train" in sets and len(set(sets) - {"rest"}) > 1
    parts: dict[Part, list[Recording]] = {}
    for name, path, part in zip(place.names, folders, sets, strict=True):
        within = path[depth + has_sets :]
        recording = Recording.at(place, name, within[0] if within else None)
        parts.setdefault(part if has_sets else "all", []).append(recording)
    if not place.others:
        return FoundSpeech(parts)
    number = counted(len(place.others), "file")
    note = f"{number} without a recording's extension ignored: {listed(place.others, 3)}"
    return FoundSpeech(parts, notes=(note,))


def _sets(folders: Sequence[Sequence[str]], depth: int) -> list[Part]:
    """The set of each recording, by the uppermost folders that differ; "rest" if they don't name a set."""
    return [SPLIT_NAMES.get(path[depth].lower(), "rest") if len(path) > depth else "rest" for path in folders]


def _depth(folders: Sequence[Sequence[str]]) -> int:
    """1 if a single folder contains everything, in subfolders, as in many archives; otherwise 0."""
    shared = all(len(path) > 1 for path in folders) and len({path[0] for path in folders}) == 1
    return int(shared)


FOLDER = SpeechReader("folder", "recordings in folders named after speakers, or in one", _recognises, _read)
