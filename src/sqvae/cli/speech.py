"""What commands do with models of speech."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from rich.table import Table
from torch import Tensor

from sqvae.cli import console
from sqvae.codec import CodeFileError, NameTaker, UnitFile, UnitWriter, units_as_text
from sqvae.data import Skipped
from sqvae.data.speech import Heard, count_speech, stream_speech, write_audio
from sqvae.experiment import (
    MODES,
    REPRESENTATIONS,
    ConfigurationError,
    SpeechTokenizer,
    abx_of,
    check_name,
    load_speech_tokenizer,
)
from sqvae.metrics import read_items

VOCODER = "sound by the method of Griffin and Lim; a neural vocoder, given the .npy frames, sounds better"


def encode_recordings(run: Path, inputs: Sequence[str], out: Path, *, strict: bool) -> None:
    """Recordings to units, in one file that describes itself; or as text, if its name ends in .txt."""
    tokenizer = load_speech_tokenizer(run)
    if out.is_dir():
        raise CodeFileError(f"can't write {out}: it is a folder; name a file")
    as_text = out.suffix == ".txt"
    # Units as text are made of units; these lie aside under a name that is nobody's.
    target = out.with_name(f".{out.name}.{os.getpid()}.units") if as_text else out
    try:
        number, seconds = _write_units(tokenizer, inputs, target, strict)
        if as_text:
            _as_text(target, out)
    finally:
        if as_text:
            target.unlink(missing_ok=True)
    console.out.print(
        f"{number:,} recordings, {seconds / 60:.1f} minutes, {tokenizer.codes_per_second:g} codes a second "
        f"below {tokenizer.codebook_size}: {out} ({out.stat().st_size:,} bytes)",
        soft_wrap=True,
    )


def _write_units(tokenizer: SpeechTokenizer, inputs: Sequence[str], target: Path, strict: bool) -> tuple[int, float]:
    """Encode all recordings; returns how many there were, and how many seconds."""
    writer = UnitWriter(
        target,
        codebook_size=tokenizer.codebook_size,
        fingerprint=tokenizer.fingerprint,
        codes_per_second=tokenizer.codes_per_second,
        rate=tokenizer.features.rate,
    )
    samples = 0
    with writer:
        for heard in _heard(tokenizer, inputs, strict, "encoding"):
            for codes in tokenizer.encode_pieces(heard.pieces()):
                writer.add(codes)
            writer.end(heard.name, heard.speaker or "", frames=len(heard), samples=heard.samples)
            samples += heard.samples
        if not writer.written:
            raise CodeFileError("none of the recordings can be read, so there is nothing to encode")
    return writer.written, samples / tokenizer.features.rate


def _as_text(units: Path, out: Path) -> None:
    partial = out.with_name(f".{out.name}.{os.getpid()}.partial")
    try:
        with partial.open("w", encoding="utf-8", errors="surrogateescape") as file:
            file.writelines(units_as_text(UnitFile.open(units).units()))
        partial.replace(out)
    finally:
        partial.unlink(missing_ok=True)


def decode_units(run: Path, path: Path, out: Path, *, speaker: str | None, audio: bool, overwrite: bool) -> None:
    """Units back to log-mel frames, NAME.npy, and to sound if wanted, NAME.wav."""
    tokenizer, units = load_speech_tokenizer(run), UnitFile.open(path)
    units.check_belongs_to(tokenizer.fingerprint)
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
    for heard in _heard(tokenizer, inputs, strict, "reconstructing"):
        try:
            voice = _voice(tokenizer, speaker, heard.speaker or "", heard.name)
        except ConfigurationError as failure:
            if strict:
                raise
            console.warning(f"left out: {failure}")
            continue
        results.save(heard.name, tokenizer.reconstruct([heard.frames()], voice)[0], heard.samples)
    if not results.saved:
        raise ConfigurationError(f"no recording is left: nothing has been written to {out}")
    results.tell()


def _voice(tokenizer: SpeechTokenizer, asked: str | None, own: str, name: str) -> str:
    """Who is to speak: whom a person names, or who spoke, or the only one that the model knows."""
    if asked is None and len(tokenizer.speakers) == 1:
        return tokenizer.speakers[0]
    if asked is None and own not in tokenizer.speakers:
        who = f"by {own}, whom this model does not know" if own else "by a speaker who is not known"
        raise ConfigurationError(f"{name} is {who}: choose a voice with --speaker; there is {_few(tokenizer.speakers)}")
    voice = own if asked is None else asked
    tokenizer.speaker(voice)
    return voice


def _few(names: Sequence[str], most: int = 20) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _heard(tokenizer: SpeechTokenizer, inputs: Sequence[str], strict: bool, what: str) -> Iterator[Heard]:
    """All recordings, with a bar, and a word for each that is left out."""
    seen = 0

    def skip(one: Skipped) -> None:
        nonlocal seen
        seen += 1
        console.warning(f"left out: {one}")

    with console.progress_bar() as progress:
        total = count_speech(inputs)
        for heard in stream_speech(inputs, tokenizer.features, strict=strict, on_skip=skip):
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
        self.overwrite = overwrite
        self.saved = 0
        self._names = NameTaker("")

    def save(self, name: str, frames: Tensor, samples: int) -> None:  # (T, mels)
        """Write frames as .npy, and as .wav."""
        stem = self._names.take(name)
        numbers, sound = (self.path / f"{stem}{ending}" for ending in (".npy", ".wav"))
        for target in (numbers, *([sound] if self.audio else [])):
            if target.exists() and not self.overwrite:
                raise FileExistsError(
                    f"{target} is there already, and is left as it is. Choose another folder with -o, or pass "
                    f"--overwrite"
                )
        numbers.parent.mkdir(parents=True, exist_ok=True)
        np.save(numbers, frames.numpy())
        if self.audio:
            write_audio(sound, self.tokenizer.sound(frames, samples=samples).numpy(), self.tokenizer.features.rate)
        self.saved += 1

    def tell(self) -> None:
        """Say what was written."""
        mels = self.tokenizer.features.mels
        kinds = f"frames in dB, (frames, {mels}), as .npy" + (f", and {VOCODER}" if self.audio else "")
        console.out.print(f"{self.saved:,} recordings in {self.path}: {kinds}", soft_wrap=True)


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
    with console.progress_bar() as progress:
        results = abx_of(
            tokenizer,
            items,
            sources,
            representations=representations,
            modes=modes or MODES,
            allow_missing=allow_missing,
            on_skip=lambda one: console.warning(f"left out: {one}"),
            progress=progress,
        )
    table = Table("on", "mode", "error", "triples", title=f"ABX, {len(items):,} items of {path.name}; 50% is chance")
    for (mode, name), result in results.items():
        table.add_row(REPRESENTATIONS[name].description, mode, f"{100 * result.error:.2f}%", f"{result.triples:,}")
    console.out.print(table)
    missing = max(result.items_without_features for result in results.values())
    if missing:
        console.note(f"{missing:,} items of recordings that are not there are left out")
    left_out = max(result.items_without_frames for result in results.values())
    if left_out:
        console.note(f"up to {left_out:,} items are shorter than a code, and left out")
