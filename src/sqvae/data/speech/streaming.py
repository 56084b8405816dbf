"""Streaming of recordings to encode: they are read once, in order, one ahead, and not stored."""

from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from sqvae.data.collection import Skipped
from sqvae.data.sources import prefixes
from sqvae.data.speech.audio import is_audio_name
from sqvae.data.speech.log_mel import LogMel
from sqvae.data.speech.places import Place
from sqvae.data.speech.reading import Heard, hear
from sqvae.data.speech.recordings import Recording, UnreadableRecordingError, item_names, legible
from sqvae.data.speech.sources import is_speech_name, opened_speech


def stream_speech(
    inputs: Sequence[str | Path],
    features: LogMel,
    *,
    strict: bool = False,
    on_skip: Callable[[Skipped], None],
    on_note: Callable[[str], None] = lambda note: None,
    only: Collection[str] | None = None,
) -> Iterator[Heard]:
    """Yield all recordings of the inputs that can be read, in order.

    A recording's name is its path relative to the common folder of all inputs, so names are unique; with a single input
    it is relative to the input. The sets of an input follow each other: train, validation, test, others.

    Arguments:
        inputs: anything that :func:`sqvae.data.speech.load_speech` takes.
        features: how recordings become frames.
        strict: raise an error for the first recording that can't be read.
        on_skip: called with each recording that can't be read, if not strict.
        on_note: called with a sentence about what is ignored, such as folders that can't be read.
        only: the recordings to read, as named in lists of ABX items (`item_names`); None: all of them.
    """
    for source, prefix in zip(inputs, prefixes(inputs, is_speech_name, is_audio_name), strict=True):
        with opened_speech(source) as found:
            for note in (*found.place.notes, *found.speech.notes):
                on_note(note)
            owner = _owner(source, found.place)
            members = (one for _, some in found.speech.in_order() for one in some)
            known = (one if one.speaker is not None else replace(one, speaker=owner) for one in members)
            recordings = [
                one
                for one in known
                if only is None or any(name in only for name in item_names(one.file_id, one.speaker))
            ]
            for outcome in _one_ahead(recordings, features):
                named = outcome.renamed(prefix + outcome.name)
                if isinstance(named, Heard):
                    yield named
                elif strict:
                    raise UnreadableRecordingError(named)
                else:
                    on_skip(named)


def _owner(source: str | Path, place: Place) -> str:
    """The speaker if the source does not say: the name of the folder."""
    path = Path(source)
    return legible(path.resolve().parent.name if path.is_file() and is_audio_name(path.name) else place.label)


def count_speech(inputs: Sequence[str | Path]) -> int:
    """The number of recordings that :func:`stream_speech` will try to read. It looks at names only."""
    total = 0
    for source in inputs:
        with opened_speech(source) as found:
            total += sum(len(recordings) for _, recordings in found.speech.in_order())
    return total


def _one_ahead(recordings: Sequence[Recording], features: LogMel) -> Iterator[Heard | Skipped]:
    # The block ends when the thread is done, so before the archive that it reads is closed.
    with ThreadPoolExecutor(1, thread_name_prefix="sqvae-speech") as pool:
        ahead: Future[Heard | Skipped] | None = None
        for recording in recordings:
            now, ahead = ahead, pool.submit(hear, recording, features)
            if now is not None:
                yield now.result()
        if ahead is not None:
            yield ahead.result()
