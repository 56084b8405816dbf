"""Pictures and recordings to codes, and back, in files."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqvae.codec import (
    CONVERSIONS,
    SAFETENSORS,
    UNCHECKED,
    UNIT_CONVERSIONS,
    CodeFile,
    UnitFile,
    check_ending,
    decode_file,
    encode_speech_to_file,
    encode_to_file,
)
from sqvae.config import ConfigurationError
from sqvae.data import Progress, Skipped, count, stream
from sqvae.data.speech import Heard, count_speech, stream_speech
from sqvae.files import check_free
from sqvae.inference.folders import PictureFolder, Saved, SoundFolder, check_apart
from sqvae.modalities.images.tokenizer import load_tokenizer
from sqvae.modalities.speech.tokenizer import SpeechTokenizer, load_speech_tokenizer
from sqvae.runs import Announce, is_unfinished
from sqvae.tokenizers import kind_of
from sqvae.training import RunFolder

FEW = 20
"""Speakers that are named in an error; others are counted."""


def is_of_speech(run: str | Path, *, speaker: str | None = None, audio: bool = False) -> bool:
    """Whether a run is a model of speech. It raises if it isn't, and is asked for a voice.

    Arguments:
        run: a run's folder, a checkpoint's, or ``hf:OWNER/NAME``.
        speaker: the voice that is asked for, if one is.
        audio: whether sound is asked for.
    """
    kind = kind_of(run)
    if kind != "speech" and (speaker is not None or audio):
        raise ConfigurationError(f"`speaker=` and `audio=` are of models of speech, and {run} is one of {kind}")
    return kind == "speech"


def noun_of(run: str | Path) -> str:
    """What one example of a run's data is called: a picture, a label map, or a recording."""
    return {"speech": "recording", "labels": "label map"}.get(kind_of(run), "picture")


@dataclass(frozen=True)
class Encoded:
    """A file of codes that was written."""

    path: Path
    number: int
    """How many examples it holds,"""
    noun: str
    """and what each is."""
    codebook_size: int
    shape: tuple[int, ...] = ()
    """Of a picture's codes: (h, w)."""
    seconds: float = 0.0
    """Of all recordings together,"""
    codes_per_second: float = 0.0
    """and how many codes a second of them takes."""


def encode(
    run: str | Path,
    inputs: Sequence[str],
    path: str | Path,
    *,
    batch: int = 64,
    strict: bool = False,
    overwrite: bool = False,
    on_skip: Callable[[Skipped], None] = lambda skipped: None,
    on_note: Callable[[str], None] = lambda note: None,
    warn: Announce = print,
    progress: Progress | None = None,
) -> Encoded:
    """Encode pictures or recordings with a run's model, to one file of codes.

    :func:`sqvae.codec.encode_to_file` and :func:`sqvae.codec.encode_speech_to_file` do the same with a model that is
    loaded already.

    Arguments:
        run: a run's folder, a checkpoint's, or ``hf:OWNER/NAME``.
        inputs: files, folders, archives, or names of data sets.
        path: of the file of codes; its ending is its format: .safetensors or .npz, and for speech also .txt.
        batch: pictures that are encoded at a time.
        strict: whether the first input that can't be read is an error, rather than left out.
        overwrite: whether a file of that name may be replaced.
        on_skip: called with each input that is left out.
        on_note: called with a sentence about files that are passed over.
        warn: called with a sentence if the run is still to be trained further, and its codes will be of no use then.
        progress: called with what is being done, how many are done and how many there are.
    """
    of_speech, path = is_of_speech(run), Path(path)
    check_ending(path, [SAFETENSORS, *(UNIT_CONVERSIONS if of_speech else CONVERSIONS)])
    check_free(path, overwrite)
    if is_unfinished(run):
        warn(
            f"{run} is not trained to its end. When it goes on it becomes another model, which can't decode these "
            f"codes; to keep this one, copy {RunFolder(run).usable()}"
        )
    if of_speech:
        speech = load_speech_tokenizer(run)
        units = encode_speech_to_file(
            speech, inputs, path, strict=strict, on_skip=on_skip, on_note=on_note, progress=progress
        )
        return Encoded(
            path,
            units.recordings,
            "recording",
            speech.codebook_size,
            seconds=units.seconds,
            codes_per_second=speech.codes_per_second,
        )
    tokenizer = load_tokenizer(run)
    codes = encode_to_file(
        tokenizer,
        inputs,
        path,
        batch_size=batch,
        strict=strict,
        on_skip=on_skip,
        on_note=on_note,
        progress=progress,
    )
    return Encoded(path, len(codes), tokenizer.medium.noun, codes.codebook_size, tuple(codes.shape[1:]))


def decode(
    run: str | Path,
    codes: str | Path,
    path: str | Path,
    *,
    batch: int = 64,
    overwrite: bool = False,
    speaker: str | None = None,
    audio: bool = False,
    announce: Announce = print,
    progress: Progress | None = None,
) -> Saved:
    """Decode a file of codes with a run's model, to pictures or to log-mel frames and sound in a folder.

    Arguments:
        run: a run's folder, a checkpoint's, or ``hf:OWNER/NAME``.
        codes: a file that :func:`encode` has written, with the same model.
        path: of the folder; each example becomes NAME.png, or NAME.npy and NAME.wav.
        batch: pictures that are decoded at a time.
        overwrite: whether files may be replaced.
        speaker: of speech: the voice to speak with; None: the recording's own.
        audio: of speech: whether sound is written beside frames.
        announce: takes a sentence if the file is one that can't be checked.
        progress: called with what is being done, how many are done and how many there are.
    """
    codes, path = Path(codes), Path(path)
    if is_of_speech(run, speaker=speaker, audio=audio):
        return _decode_units(run, codes, path, speaker, audio, overwrite, announce, progress)
    tokenizer, file = load_tokenizer(run), CodeFile.open(codes)
    folder = PictureFolder(path, overwrite=overwrite)
    if not file.checked:
        announce(UNCHECKED.format(codes))
    for names, pictures in decode_file(tokenizer, file, batch_size=batch):
        folder.save(names, tokenizer.medium.images(pictures))
        if progress is not None:
            progress("decoding", folder.saved, len(file))
    return Saved(path, folder.saved, tokenizer.medium.noun)


def _decode_units(
    run: str | Path,
    path: Path,
    out: Path,
    speaker: str | None,
    audio: bool,
    overwrite: bool,
    announce: Announce,
    progress: Progress | None,
) -> Saved:
    tokenizer, units = load_speech_tokenizer(run), UnitFile.open(path)
    units.check_belongs_to(tokenizer.fingerprint)
    if not units.checked:
        announce(UNCHECKED.format(path))
    voices = [_voice(tokenizer, speaker, own, name) for own, name in zip(units.speakers, units.names, strict=True)]
    results = SoundFolder(out, tokenizer, audio=audio, overwrite=overwrite)
    for done, (unit, voice) in enumerate(zip(units.units(), voices, strict=True), 1):
        frames = tokenizer.decode([unit.codes], [voice], [unit.frames])[0]
        results.save(unit.name, frames, unit.samples)
        if progress is not None:
            progress("decoding", done, len(units))
    return results.saved


def reconstruct(
    run: str | Path,
    inputs: Sequence[str],
    path: str | Path,
    *,
    batch: int = 64,
    strict: bool = False,
    overwrite: bool = False,
    speaker: str | None = None,
    audio: bool = False,
    on_skip: Callable[[Skipped], None] = lambda skipped: None,
    on_note: Callable[[str], None] = lambda note: None,
    progress: Progress | None = None,
) -> Saved:
    """Send pictures or recordings through a run's model and back, and save what comes out in a folder.

    Arguments:
        run: a run's folder, a checkpoint's, or ``hf:OWNER/NAME``.
        inputs: files, folders, archives, or names of data sets.
        path: of the folder; each example becomes NAME.png, or NAME.npy and NAME.wav.
        batch: pictures that are computed at a time.
        strict: whether the first input that can't be read is an error, rather than left out.
        overwrite: whether files may be replaced, and the folder may lie among the originals.
        speaker: of speech: the voice to speak with; None: the recording's own.
        audio: of speech: whether sound is written beside frames.
        on_skip: called with each input that is left out.
        on_note: called with a sentence about files that are passed over.
        progress: called with what is being done, how many are done and how many there are.
    """
    path = Path(path)
    if not overwrite:
        check_apart(inputs, path)
    if is_of_speech(run, speaker=speaker, audio=audio):
        return _reconstruct_recordings(run, inputs, path, speaker, audio, strict, overwrite, on_skip, on_note, progress)
    tokenizer = load_tokenizer(run)
    folder, noun = PictureFolder(path, overwrite=overwrite), tokenizer.medium.noun
    total = count(inputs, labels=tokenizer.preprocessing.labels) if progress is not None else 0
    for names, pictures in stream(
        inputs, tokenizer.preprocessing, batch=batch, strict=strict, on_skip=on_skip, on_note=on_note
    ):
        folder.save(names, tokenizer.medium.images(tokenizer.reconstruct(pictures)))
        if progress is not None:
            progress("reconstructing", folder.saved, total)
    if not folder.saved:
        raise ValueError(f"none of the {noun}s can be read: nothing has been written to {path}")
    return Saved(path, folder.saved, noun)


def _reconstruct_recordings(
    run: str | Path,
    inputs: Sequence[str],
    path: Path,
    speaker: str | None,
    audio: bool,
    strict: bool,
    overwrite: bool,
    on_skip: Callable[[Skipped], None],
    on_note: Callable[[str], None],
    progress: Progress | None,
) -> Saved:
    tokenizer = load_speech_tokenizer(run)
    results = SoundFolder(path, tokenizer, audio=audio, overwrite=overwrite)
    if speaker is not None:
        tokenizer.speaker(speaker)
    for heard in _heard(tokenizer, inputs, strict, on_skip, on_note, progress):
        problem = _no_voice(tokenizer, speaker, heard.speaker or "")
        if problem and strict:
            raise ConfigurationError(f"{heard.name} is {problem}")
        if problem:
            on_skip(Skipped(heard.name, problem))
            continue
        voice = _voice(tokenizer, speaker, heard.speaker or "", heard.name)
        results.save(heard.name, tokenizer.reconstruct([heard.frames()], voice)[0], heard.samples)
    if not results.number:
        raise ConfigurationError(f"no recording is left: nothing has been written to {path}")
    return results.saved


def _voice(tokenizer: SpeechTokenizer, asked: str | None, own: str, name: str) -> str:
    """Who is to speak: whom a person names, or who spoke, or the only one that the model knows."""
    if problem := _no_voice(tokenizer, asked, own):
        raise ConfigurationError(f"{name} is {problem}")
    if asked is None and len(tokenizer.speakers) == 1:
        return tokenizer.speakers[0]
    voice = own if asked is None else asked
    tokenizer.speaker(voice)
    return voice


def _no_voice(tokenizer: SpeechTokenizer, asked: str | None, own: str) -> str:
    """Why there is nobody to speak a recording; nothing where there is."""
    known = tokenizer.speakers
    if asked is not None or len(known) == 1 or own in known:
        return ""
    who = f"by {own!r}, whom this model does not know" if own else "by a speaker who is not known"
    more = f" and {len(known) - FEW} more" if len(known) > FEW else ""
    return f"{who}: choose a voice with `speaker=`; there is {', '.join(known[:FEW])}{more}"


def _heard(
    tokenizer: SpeechTokenizer,
    inputs: Sequence[str],
    strict: bool,
    on_skip: Callable[[Skipped], None],
    on_note: Callable[[str], None],
    progress: Progress | None,
) -> Iterator[Heard]:
    """All recordings, while it is told how far it is."""
    seen = 0

    def skip(one: Skipped) -> None:
        nonlocal seen
        seen += 1
        on_skip(one)

    total = count_speech(inputs) if progress is not None else 0
    for heard in stream_speech(inputs, tokenizer.features, strict=strict, on_skip=skip, on_note=on_note):
        yield heard
        seen += 1
        if progress is not None:
            progress("reconstructing", seen, total)
