"""Any folder or zip file of recordings: a folder for each speaker, or none, with or without folders of sets above."""

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
    note = f"{number} without a recording's extension left alone: {listed(place.others, 3)}"
    return FoundSpeech(parts, notes=(note,))


def _sets(folders: Sequence[Sequence[str]], depth: int) -> list[Part]:
    """What the uppermost folders that differ say that recordings are for; "rest" where they don't."""
    return [SPLIT_NAMES.get(path[depth].lower(), "rest") if len(path) > depth else "rest" for path in folders]


def _depth(folders: Sequence[Sequence[str]]) -> int:
    """1 if there is one folder that holds everything, in folders of its own, as archives often do; else 0."""
    shared = all(len(path) > 1 for path in folders) and len({path[0] for path in folders}) == 1
    return int(shared)


FOLDER = SpeechReader("folder", "recordings in folders named after speakers, or in one", _recognises, _read)
