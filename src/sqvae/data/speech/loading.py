"""Loading of speech datasets: recordings are found, converted to frames once and cached on disk."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from sqvae.data.cache import cache_folder, has_remains
from sqvae.data.collection import Part, Skipped, by_reason
from sqvae.data.content import Progress, know_files
from sqvae.data.speech.log_mel import FEATURES, LogMel
from sqvae.data.speech.places import Place
from sqvae.data.speech.recordings import FoundSpeech, Recording, UnreadableRecordingError, legible
from sqvae.data.speech.sources import Opened, opened_speech
from sqvae.data.speech.splits import divide
from sqvae.data.speech.stored import KIND, StoredSpeech, find_speech, make_speech, speech_key
from sqvae.data.speech.utterances import SpeechSets, Utterance, Utterances
from sqvae.data.wording import counted, listed, unreadable


def _silent(what: str, done: int, total: int) -> None:
    pass


def load_speech(
    source: str | Path,
    features: str | LogMel | None = None,
    *,
    split_seed: int = 0,
    strict: bool = False,
    cache: str | Path | None = None,
    progress: Progress | None = None,
) -> SpeechSets:
    """Load the utterances of the training, validation and test sets.

    They are converted to log-mel frames once, in a file of the cache, which is mapped into memory. If the source does
    not define these sets, they are drawn from every speaker: see :func:`sqvae.data.speech.splits.divide`.

    Arguments:
        source: a path (a folder with a folder for each speaker, a folder of recordings, a .zip file of them, one
            recording, or a dataset as downloaded), or a name in ``SPEECH_SETS``.
        features: how recordings become frames, or a name in ``FEATURES``; by default the features for the source.
        split_seed: the seed for drawing sets if the source has none.
        strict: raise an error for the first recording that can't be read, instead of skipping it with a note.
        cache: the cache folder; if None, ``$SQVAE_CACHE`` or the user's cache folder.
        progress: called with the activity, the number of items done and the total number.
    """
    root = cache_folder(cache)
    report = progress or _silent
    with opened_speech(source) as found:
        place, speech = found
        chosen = _features(speech.features if features is None else features)
        recordings = [one for part, members in speech.in_order() if part != "rest" for one in members]
        files = place.files(recording.name for recording in recordings)
        key = speech_key(know_files(root, {KIND: files}, report).content, recordings, chosen)
        notes = [*place.notes, *speech.notes, *_left_out(speech), *_unnamed(place, recordings)]
        entry = find_speech(root, key)
        if entry is None:
            if has_remains(root, key, KIND):
                notes.append("the cache of these recordings was damaged and has been rebuilt")
            entry = make_speech(root, key, recordings, chosen, strict=strict, progress=report)
    rows = _rows(entry, found)
    _check(entry, rows, source, strict)
    if entry.skipped:
        notes.append(f"{unreadable(len(entry.skipped), 'recording')}: {by_reason(entry.skipped)}")
    sets = divide(rows, seed=split_seed, published=speech.published)
    skipped = _skipped(entry, speech)
    return SpeechSets(
        Utterances(entry.file, sets.train, skipped["train"], source=source),
        Utterances(entry.file, sets.validation, skipped["validation"], source=source),
        Utterances(entry.file, sets.test, skipped["test"], source=source),
        chosen,
        tuple(sorted({utterance.speaker for utterance in sets.train})),
        key,
        (*notes, *sets.notes),
    )


def _features(given: str | LogMel) -> LogMel:
    if isinstance(given, LogMel):
        return given
    if given not in FEATURES:
        raise ValueError(f"features must be one of {', '.join(map(repr, FEATURES))}, or a LogMel; got {given!r}")
    return FEATURES[given]


def _rows(entry: StoredSpeech, found: Opened) -> dict[Part, list[Utterance]]:
    """The utterances that could be read, by the set that the source assigns them to."""
    places = zip(entry.names, entry.starts(), entry.frames, entry.samples, strict=True)
    stored = {name: where for name, *where in places}
    rows: dict[Part, list[Utterance]] = {}
    for part, recordings in found.speech.in_order():
        if part != "rest":
            rows[part] = [
                Utterance(one.name, one.file_id, one.speaker or legible(found.place.label), *stored[one.name])
                for one in recordings
                if one.name in stored
            ]
    return rows


def _check(entry: StoredSpeech, rows: Mapping[Part, Sequence[Utterance]], source: str | Path, strict: bool) -> None:
    """Raise an error if there are no training recordings, or if a recording is missing in strict mode."""
    if strict and entry.skipped:
        raise UnreadableRecordingError(entry.skipped[0])
    if not rows.get("all") and not rows.get("train"):
        what = "training recordings" if "train" in rows else "recordings"
        raise ValueError(f"none of the {what} in {source} can be read: {by_reason(entry.skipped)}")


def _skipped(entry: StoredSpeech, speech: FoundSpeech) -> dict[Part, tuple[Skipped, ...]]:
    """Unreadable recordings by set. Those that belong to no set yet are counted with the training set."""
    part_of = {recording.name: part for part, recordings in speech.in_order() for recording in recordings}
    skipped: dict[Part, list[Skipped]] = {"train": [], "validation": [], "test": []}
    for one in entry.skipped:
        part = part_of[one.name]
        skipped["train" if part == "all" else part].append(one)
    return {part: tuple(members) for part, members in skipped.items()}


def _left_out(speech: FoundSpeech) -> list[str]:
    rest = speech.parts.get("rest", ())
    if not rest:
        return []
    names = [recording.name for recording in rest]
    return [f"{counted(len(rest), 'recording')} outside the folders of the sets skipped: {listed(names, 3)}"]


def _unnamed(place: Place, recordings: Sequence[Recording]) -> list[str]:
    """A note that recordings without a speaker are assigned to one speaker."""
    number = sum(recording.speaker is None for recording in recordings)
    if not number:
        return []
    called = f"called {legible(place.label)}"
    if number == len(recordings):
        return [f"there are no folders of speakers: all recordings are assigned to one speaker, {called}"]
    which = f"{counted(number, 'recording')} outside the folders of speakers"
    return [f"{which} {'is' if number == 1 else 'are'} assigned to one speaker, {called}"]
