"""Recordings to units, and units to frames and sound, in files."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from sqvae.codec import UNCHECKED, UnitFile, encode_speech_to_file
from sqvae.config import ConfigurationError
from sqvae.data import Progress, Skipped
from sqvae.data.speech import Heard, count_speech, stream_speech, write_audio
from sqvae.files import written
from sqvae.inference.coding import Encoded
from sqvae.inference.folders import ResultFolder, Saved
from sqvae.modalities.speech.tokenizer import SpeechTokenizer
from sqvae.runs import Announce

FEW = 20
"""The number of speakers that an error names; others are counted."""


class SoundFolder:
    """A folder that log-mel frames (.npy) and sound (.wav) are saved to, each under its source's name.

    Arguments:
        path: of the folder.
        tokenizer: the model of speech that makes the frames.
        audio: whether sound is wanted too.
        overwrite: whether files may be replaced: one might be an original.
    """

    def __init__(self, path: Path, tokenizer: SpeechTokenizer, *, audio: bool, overwrite: bool = False) -> None:
        self.path = path
        self.tokenizer = tokenizer
        self.audio = audio
        self.number = 0
        self._results = ResultFolder(path, [".npy", ".wav"] if audio else [".npy"], overwrite=overwrite)

    def save(self, name: str, frames: Tensor, samples: int) -> None:  # (T, mels)
        """Save one utterance, whose sound has so many samples."""
        numbers, *sounds = self._results.places(name)
        with written(numbers, lasting=False) as aside:
            np.save(aside, frames.numpy())
        for sound in sounds:
            write_audio(sound, self.tokenizer.sound(frames, samples=samples).numpy(), self.tokenizer.features.rate)
        self.number += 1

    @property
    def saved(self) -> Saved:
        """What has been written so far."""
        return Saved(self.path, self.number, "recording", self.tokenizer.features.mels, self.audio)


def encode_files(tokenizer: SpeechTokenizer, inputs: Sequence[str], path: Path, **options: Any) -> Encoded:
    """Encode recordings to a file of units: see :func:`sqvae.inference.encode`."""
    units = encode_speech_to_file(tokenizer, inputs, path, **options)
    return Encoded(
        path,
        units.recordings,
        "recording",
        tokenizer.codebook_size,
        seconds=units.seconds,
        codes_per_second=tokenizer.codes_per_second,
    )


def decode_file(
    tokenizer: SpeechTokenizer,
    path: Path,
    out: Path,
    *,
    speaker: str | None,
    audio: bool,
    overwrite: bool,
    announce: Announce,
    progress: Progress | None,
) -> Saved:
    """Decode a file of units to log-mel frames and sound in a folder: see :func:`sqvae.inference.decode`."""
    units = UnitFile.open(path)
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


def reconstruct_files(
    tokenizer: SpeechTokenizer,
    inputs: Sequence[str],
    path: Path,
    *,
    speaker: str | None,
    audio: bool,
    layers: int | None,
    strict: bool,
    overwrite: bool,
    on_skip: Callable[[Skipped], None],
    on_note: Callable[[str], None],
    progress: Progress | None,
) -> Saved:
    """Send recordings through a model and save what comes out in a folder: see :func:`sqvae.inference.reconstruct`."""
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
        results.save(heard.name, tokenizer.reconstruct([heard.frames()], voice, layers=layers)[0], heard.samples)
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
