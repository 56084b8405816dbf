"""What commands do with models of speech."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from rich.table import Table
from torch import Tensor

from sqvae.cli import console
from sqvae.cli.left_out import LeftOut
from sqvae.cli.targets import FolderOfResults
from sqvae.cli.wording import UNCHECKED
from sqvae.codec import UnitFile, encode_speech_to_file
from sqvae.config import ConfigurationError, check_name
from sqvae.data import Skipped
from sqvae.data.speech import Heard, count_speech, stream_speech, write_audio
from sqvae.files import written
from sqvae.metrics import read_items
from sqvae.modalities.speech.abx import MODES, REPRESENTATIONS, abx_of
from sqvae.modalities.speech.tokenizer import SpeechTokenizer, load_speech_tokenizer

VOCODER = "sound by the method of Griffin and Lim; a neural vocoder, given the .npy frames, sounds better"


def encode_recordings(run: Path, inputs: Sequence[str], out: Path, *, strict: bool) -> None:
    """Recordings to units, in one file that describes itself; or as text, if its name ends in .txt."""
    tokenizer = load_speech_tokenizer(run)
    with LeftOut("recording") as left_out, console.progress_bar() as progress:
        encoded = encode_speech_to_file(
            tokenizer, inputs, out, strict=strict, on_skip=left_out, on_note=left_out.note, progress=progress
        )
    console.out.print(
        f"{console.counted(encoded.recordings, 'recording')}, {encoded.seconds / 60:.1f} minutes, "
        f"{tokenizer.codes_per_second:g} codes a second "
        f"below {tokenizer.codebook_size}: {out} ({out.stat().st_size:,} bytes)",
        soft_wrap=True,
    )


def decode_units(run: Path, path: Path, out: Path, *, speaker: str | None, audio: bool, overwrite: bool) -> None:
    """Units back to log-mel frames, NAME.npy, and to sound if wanted, NAME.wav."""
    tokenizer, units = load_speech_tokenizer(run), UnitFile.open(path)
    units.check_belongs_to(tokenizer.fingerprint)
    if not units.checked:
        console.note(UNCHECKED.format(path))
    voices = [_voice(tokenizer, speaker, own, name) for own, name in zip(units.speakers, units.names, strict=True)]
    results = SoundFolder(out, tokenizer, audio=audio, overwrite=overwrite)
    with console.progress_bar() as progress:
        for done, (unit, voice) in enumerate(zip(units.units(), voices, strict=True), 1):
            frames = tokenizer.decode([unit.codes], [voice], [unit.frames])[0]
            results.save(unit.name, frames, unit.samples)
            progress("decoding", done, len(units))
    results.tell()


def reconstruct_recordings(
    run: Path, inputs: Sequence[str], out: Path, *, speaker: str | None, audio: bool, strict: bool, overwrite: bool
) -> None:
    """Recordings through their units and back."""
    tokenizer = load_speech_tokenizer(run)
    results = SoundFolder(out, tokenizer, audio=audio, overwrite=overwrite)
    if speaker is not None:
        tokenizer.speaker(speaker)
    with LeftOut("recording") as left_out:
        for heard in _heard(tokenizer, inputs, strict, "reconstructing", left_out):
            problem = _no_voice(tokenizer, speaker, heard.speaker or "")
            if problem and strict:
                raise ConfigurationError(f"{heard.name} is {problem}")
            if problem:
                left_out(Skipped(heard.name, problem))
                continue
            voice = _voice(tokenizer, speaker, heard.speaker or "", heard.name)
            results.save(heard.name, tokenizer.reconstruct([heard.frames()], voice)[0], heard.samples)
    if not results.saved:
        raise ConfigurationError(f"no recording is left: nothing has been written to {out}")
    results.tell()


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
    if asked is not None or len(tokenizer.speakers) == 1 or own in tokenizer.speakers:
        return ""
    who = f"by {own!r}, whom this model does not know" if own else "by a speaker who is not known"
    return f"{who}: choose a voice with --speaker; there is {_few(tokenizer.speakers)}"


def _few(names: Sequence[str], most: int = 20) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _heard(
    tokenizer: SpeechTokenizer, inputs: Sequence[str], strict: bool, what: str, left_out: LeftOut
) -> Iterator[Heard]:
    """All recordings, with a bar."""
    seen = 0

    def skip(one: Skipped) -> None:
        nonlocal seen
        seen += 1
        left_out(one)

    with console.progress_bar() as progress:
        total = count_speech(inputs)
        for heard in stream_speech(inputs, tokenizer.features, strict=strict, on_skip=skip, on_note=left_out.note):
            yield heard
            seen += 1
            progress(what, seen, total)


class SoundFolder:
    """A folder that frames and sound are saved to, each under its source's name.

    Arguments:
        path: of the folder.
        audio: whether sound is wanted too.
        overwrite: whether files may be replaced: one might be an original.
    """

    def __init__(self, path: Path, tokenizer: SpeechTokenizer, *, audio: bool, overwrite: bool) -> None:
        self.path = path
        self.tokenizer = tokenizer
        self.audio = audio
        self.saved = 0
        self._results = FolderOfResults(path, [".npy", ".wav"] if audio else [".npy"], overwrite=overwrite)

    def save(self, name: str, frames: Tensor, samples: int) -> None:  # (T, mels)
        """Write frames as .npy, and as .wav."""
        numbers, *sounds = self._results.places(name)
        with written(numbers, lasting=False) as aside:
            np.save(aside, frames.numpy())
        for sound in sounds:
            write_audio(sound, self.tokenizer.sound(frames, samples=samples).numpy(), self.tokenizer.features.rate)
        self.saved += 1

    def tell(self) -> None:
        """Say what was written."""
        mels = self.tokenizer.features.mels
        sound = f", and {VOCODER}" if self.audio else "; --audio writes sound as well"
        number = console.counted(self.saved, "recording")
        console.out.print(
            f"{number} in {self.path}: log-mel frames in dB, (frames, {mels}), as .npy{sound}", soft_wrap=True
        )


def report_abx(
    run: Path,
    path: Path,
    sources: Sequence[str],
    modes: Sequence[str],
    representations: Sequence[str],
    allow_missing: bool,
) -> None:
    """Print how well what a model makes of recordings tells phones apart."""
    for name in representations:
        check_name(name, REPRESENTATIONS, "--on")
    for mode in modes:
        check_name(mode, MODES, "--mode")
    tokenizer, items = load_speech_tokenizer(run), read_items(path)
    with console.progress_bar() as progress, LeftOut("recording") as left_out:
        results = abx_of(
            tokenizer,
            items,
            sources,
            representations=representations,
            modes=modes or MODES,
            allow_missing=allow_missing,
            on_skip=left_out,
            progress=progress,
        )
    table = Table("on", "mode", "error", "triples", title=f"ABX, {len(items):,} items of {path.name}; 50% is chance")
    for (mode, name), result in results.items():
        table.add_row(REPRESENTATIONS[name].description, mode, f"{100 * result.error:.2f}%", f"{result.triples:,}")
    console.out.print(table)
    missing = max(result.items_without_features for result in results.values())
    if missing:
        console.note(f"{missing:,} items of recordings that are not there are left out")
    short = max(result.items_without_frames for result in results.values())
    if short:
        console.note(f"up to {short:,} items are shorter than a code, and left out")
