"""Finding the recordings of a source: a path or a dataset's name."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from sqvae.data.catalogue import DATASETS, find_folder
from sqvae.data.sources import unknown, unlike
from sqvae.data.speech.catalogue import MADE_UP, SPEECH_SETS
from sqvae.data.speech.places import Place, find_place
from sqvae.data.speech.readers import SPEECH_READERS
from sqvae.data.speech.recordings import FoundSpeech
from sqvae.data.speech.voices import made_up_voices


class Opened(NamedTuple):
    """Recordings, and the place that contains them."""

    place: Place
    speech: FoundSpeech


@contextmanager
def opened_speech(source: str | Path) -> Iterator[Opened]:
    """Open a path or a named dataset; its files are closed at the end."""
    # A name in SPEECH_SETS means the dataset even if there is a folder of that name; ./vctk is the folder.
    named = is_speech_name(source)
    place = _place(source)
    try:
        reader = next(reader for reader in SPEECH_READERS if reader.recognises(place.names))
        if named and reader.name != SPEECH_SETS[str(source)].reader:
            known = SPEECH_SETS[str(source)]
            raise FileNotFoundError(unlike(str(source), place.path, known.layout, known.origin, "recordings"))
        yield Opened(place, reader.read(place))
    finally:
        place.close()


def is_speech_name(source: str | Path) -> bool:
    """Whether a source is the name of a speech dataset, and not a path."""
    return isinstance(source, str) and source in SPEECH_SETS


def _place(source: str | Path) -> Place:
    if source == MADE_UP:
        return made_up_voices()
    return find_place(folder_of_speech(str(source)) if is_speech_name(source) else _path(source))


def _path(source: str | Path) -> Path:
    if isinstance(source, str) and source in DATASETS:
        raise ValueError(f"{source} is a dataset of images, not of recordings; datasets of recordings: {_names()}")
    path = Path(source).expanduser()
    if not path.exists():
        raise FileNotFoundError(unknown(str(source)))
    return path


def folder_of_speech(name: str) -> Path:
    """The folder of a named speech dataset: see `sqvae.data.folder_of`."""
    known = SPEECH_SETS[name]
    return find_folder(name, known.folders, known.layout, known.origin)


def _names() -> str:
    return ", ".join(SPEECH_SETS)
