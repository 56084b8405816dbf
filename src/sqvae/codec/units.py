"""Units of speech in a file that describes itself: sequences of codes of any lengths.

The file is in the safetensors format, or in numpy's .npz (see `formats`):

- ``codes``: (total,), int32, of all recordings one after the other;
- ``lengths``: (N,), int32, how many of them each recording has;
- ``frames`` and ``samples``: (N,), int32, how long each recording is, so that decoding gives its exact duration back;
- ``names`` and ``speakers``: UTF-8 bytes, each ended by a zero byte; a speaker who is not known has an empty name;
- metadata: the format, the model's fingerprint, the size of the codebook, codes a second, and samples a second.

As text, a recording is a line: its name, a tab, and its codes with blanks between them.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from sqvae.codec.aside import AsideWriter, CodeFileError, PlainFile
from sqvae.codec.formats import (
    FAILURES,
    NPZ,
    StoredCodes,
    check_range,
    check_whole_numbers,
    is_checked,
    opened,
    sources,
    to_npz,
    unreadable,
    versions_of,
    written_as,
)
from sqvae.codec.metadata import number_of, text_of, whole_number_of
from sqvae.data import Progress, Skipped
from sqvae.data.speech import LogMel, count_speech, stream_speech

KIND = "sqvae-units"

LONGEST = 2**31 - 1
"""Samples that a recording may have: a day and a half at 16 kHz."""


@dataclass(frozen=True)
class Unit:
    """The codes of one recording."""

    name: str
    speaker: str
    """Empty where it is not known."""
    codes: Tensor = field(repr=False)
    """(n,)"""
    frames: int
    samples: int


class UnitWriter(AsideWriter):
    """Writes the codes of recordings as they come, and they may come in pieces.

    Within its block the file does not exist under its name; after it, it is whole.

    Arguments:
        path: of the file.
        codebook_size: K.
        fingerprint: of the model.
        codes_per_second, rate: of the codes, and of the samples that are counted.
    """

    def __init__(self, path: Path, *, codebook_size: int, fingerprint: str, codes_per_second: float, rate: int) -> None:
        super().__init__(path)
        self._metadata = {
            "format": versions_of(KIND)[0],
            "fingerprint": fingerprint,
            "codebook_size": str(codebook_size),
            "codes_per_second": json.dumps(codes_per_second),
            "rate": str(rate),
        }
        self._names: list[bytes] = []
        self._speakers: list[bytes] = []
        self._lengths: list[int] = []
        self._frames: list[int] = []
        self._samples: list[int] = []
        self._pending = 0

    @property
    def written(self) -> int:
        """How many recordings are."""
        return len(self._names)

    def add(self, codes: Tensor) -> None:  # (n,)
        """Some codes of the present recording."""
        self.put(codes.cpu().to(torch.int32).contiguous().numpy().tobytes())
        self._pending += len(codes)

    def end(self, name: str, speaker: str, *, frames: int, samples: int) -> None:
        """The present recording is over, and this is what it was."""
        if samples > LONGEST:
            raise CodeFileError(f"{name} has {samples:,} samples, more than {LONGEST:,}: cut it into parts")
        self._names.append(name.encode("utf-8", "surrogateescape"))
        self._speakers.append(speaker.encode("utf-8", "surrogateescape"))
        self._lengths.append(self._pending)
        self._frames.append(frames)
        self._samples.append(samples)
        self._pending = 0

    def finish(self) -> tuple[Mapping[str, str], Mapping[str, tuple[str, list[int]]]]:
        tensors: dict[str, tuple[str, list[int]]] = {"codes": ("I32", [sum(self._lengths)])}
        for name, values in (("lengths", self._lengths), ("frames", self._frames), ("samples", self._samples)):
            self.put(torch.tensor(values, dtype=torch.int32).numpy().tobytes())
            tensors[name] = ("I32", [len(values)])
        for name, words in (("names", self._names), ("speakers", self._speakers)):
            joined = b"".join(word + b"\0" for word in words)
            self.put(joined)
            tensors[name] = ("U8", [len(joined)])
        return self._metadata, tensors


@dataclass(frozen=True)
class UnitFile:
    """A file of units, opened for reading. Its codes stay on the disk until they are asked for."""

    path: Path
    fingerprint: str
    codebook_size: int
    codes_per_second: float
    rate: int
    names: list[str] = field(repr=False)
    speakers: list[str] = field(repr=False)
    lengths: list[int] = field(repr=False)
    frames: list[int] = field(repr=False)
    samples: list[int] = field(repr=False)
    checked: bool = True
    """Whether it is known to be as it was written: files of earlier versions have no checksum."""

    @classmethod
    def open(cls, path: str | Path) -> "UnitFile":
        """Read what the file says of itself."""
        path = Path(path).expanduser()
        try:
            with opened(path) as file:
                metadata = file.metadata
                if metadata.get("format") not in versions_of(KIND):
                    raise CodeFileError(f"{path} is no file of units: `sqvae encode` writes them for models of speech")
                checked = is_checked(path, metadata, KIND)
                check_whole_numbers(file, "codes")
                numbers = [_column(file, name) for name in ("lengths", "frames", "samples")]
                names, speakers = (file.words(name) for name in ("names", "speakers"))
                total = math.prod(file.shape("codes"))
                said = (
                    text_of(metadata, "fingerprint"),
                    whole_number_of(metadata, "codebook_size"),
                    number_of(metadata, "codes_per_second"),
                    whole_number_of(metadata, "rate"),
                )
        except FileNotFoundError:
            raise CodeFileError(f"there is no file {path}") from None
        except FAILURES as failure:
            if path.suffix == ".txt":
                raise CodeFileError(
                    f"{path} is no file of units: units as text are for other tools, and can't be decoded"
                ) from failure
            raise unreadable(path, "units", failure) from failure
        lengths, frames, samples = numbers
        sizes = {len(names), len(speakers), *map(len, numbers)}
        halves = all(0 <= 2 * length - own < 2 for length, own in zip(lengths, frames, strict=False))
        counts = all(number >= 0 for number in (*lengths, *samples))
        if len(sizes) > 1 or sum(lengths) != total or not halves or not counts:
            raise CodeFileError(f"{path} is damaged: its parts don't fit each other. Encode the recordings again")
        return cls(path, *said, names, speakers, lengths, frames, samples, checked)

    def __len__(self) -> int:
        return len(self.names)

    def units(self) -> Iterator[Unit]:
        """Recording by recording, in order."""
        with opened(self.path) as file:
            for index, own in enumerate(file.rows("codes", self.lengths)):
                check_range(own, self.codebook_size, self.path)
                yield Unit(self.names[index], self.speakers[index], own, self.frames[index], self.samples[index])

    def check_belongs_to(self, fingerprint: str) -> None:
        """Raise if another model has written these codes: they would decode to noise."""
        if self.fingerprint != fingerprint:
            raise CodeFileError(
                f"{self.path} holds units of another model: its fingerprint is {self.fingerprint}, and this model's is "
                f"{fingerprint}. Decode with the run that encoded them, unless it was trained further since; or encode "
                f"the recordings again"
            )


def _column(file: StoredCodes, name: str) -> list[int]:
    """Whole numbers, one a recording."""
    check_whole_numbers(file, name)
    if len(file.shape(name)) != 1:
        raise ValueError(f"{name} must be one row of numbers, got the shape {file.shape(name)}")
    return [int(number) for number in file.tensor(name).tolist()]


_ESCAPED = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r"})


def units_as_text(units: Sequence[Unit] | Iterator[Unit]) -> Iterator[str]:
    """A line for each recording: its name, a tab, and its codes with blanks between them."""
    for unit in units:
        name = unit.name.translate(_ESCAPED)
        yield f"{name}\t{' '.join(map(str, unit.codes.tolist()))}\n"


def to_text(source: Path, path: Path) -> None:
    """Make a text of a file of units."""
    with PlainFile(path) as file:
        for line in units_as_text(UnitFile.open(source).units()):
            file.put(line.encode("utf-8", "surrogateescape"))


UNIT_CONVERSIONS = {NPZ: to_npz, ".txt": to_text}
"""Formats of files of units beside safetensors, by their endings."""


class SpeechCoder(Protocol):
    """What turns recordings into units: see `sqvae.load`."""

    @property
    def fingerprint(self) -> str:
        """Of the weights."""

    @property
    def codebook_size(self) -> int:
        """K."""

    @property
    def codes_per_second(self) -> float:
        """Of speech."""

    @property
    def features(self) -> LogMel:
        """How recordings become frames."""

    def encode_pieces(self, pieces: Iterable[Tensor]) -> Iterator[Tensor]:
        """(T, mels), ... -> (n,), ...: one recording piece by piece."""


class EncodedSpeech(NamedTuple):
    """How much was encoded."""

    recordings: int
    seconds: float


def encode_speech_to_file(
    coder: SpeechCoder,
    inputs: str | Path | Sequence[str | Path],
    path: str | Path,
    *,
    strict: bool = False,
    on_skip: Callable[[Skipped], None] = lambda skipped: None,
    on_note: Callable[[str], None] = lambda note: None,
    progress: Progress | None = None,
) -> EncodedSpeech:
    """Encode recordings, folders or archives of them, or named sets, to a file of units: as `sqvae encode` does.

    Recordings are read as they are needed, long ones piece by piece, and codes written as they come.

    Arguments:
        coder: a trained model of speech, from `sqvae.load`.
        inputs: whatever `sqvae.data.speech.stream_speech` takes, or one of them alone.
        path: of the file to write, which is replaced if it is there. It ends in .safetensors, in .npz for numpy, or in
            .txt for a line a recording. `sqvae.UnitFile` reads the first two.
        strict: raise for the first recording that can't be read, rather than leave it out.
        on_skip: called with each that is left out.
        on_note: called with a sentence about files that are passed over.
        progress: called with what is being done, how many are done and how many there are.
    """
    if not hasattr(coder, "encode_pieces"):
        raise TypeError(
            f"encode_speech_to_file is for tokenizers of speech; got a {type(coder).__name__}. Pictures and label maps "
            "are encoded by sqvae.encode_to_file"
        )
    inputs = sources(inputs)
    total = count_speech(inputs) if progress is not None else 0
    seen = samples = 0

    def skip(skipped: Skipped) -> None:
        nonlocal seen
        seen += 1
        on_skip(skipped)

    with (
        written_as(Path(path).expanduser(), UNIT_CONVERSIONS) as target,
        UnitWriter(
            target,
            codebook_size=coder.codebook_size,
            fingerprint=coder.fingerprint,
            codes_per_second=coder.codes_per_second,
            rate=coder.features.rate,
        ) as writer,
    ):
        for heard in stream_speech(inputs, coder.features, strict=strict, on_skip=skip, on_note=on_note):
            for codes in coder.encode_pieces(heard.pieces()):
                writer.add(codes)
            writer.end(heard.name, heard.speaker or "", frames=len(heard), samples=heard.samples)
            samples += heard.samples
            seen += 1
            if progress is not None:
                progress("encoding", seen, total)
        if not writer.written:
            raise CodeFileError("none of the recordings can be read, so there is nothing to encode")
    return EncodedSpeech(writer.written, samples / coder.features.rate)
