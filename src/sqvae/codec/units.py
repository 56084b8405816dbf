"""Units of speech in a self-describing file: sequences of codes of any lengths.

The file has the safetensors format, or NumPy's .npz (see `formats`):

- ``codes``: (total,), int32, of all recordings one after the other; with layers (total, layers);
- ``lengths``: (N,), int32, the number of codes of each recording;
- ``frames`` and ``samples``: (N,), int32, the length of each recording, so that decoding gives its exact duration;
- ``names`` and ``speakers``: UTF-8 bytes, each terminated by a zero byte; an unknown speaker has an empty name;
- metadata: the format, the model's fingerprint, the codebook size, codes per second, samples per second, and the number
  of layers if there are any.

As text, a recording is a line: its name, a tab, and its codes separated by blanks; with layers those of a place are
separated by commas.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

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
from sqvae.codec.metadata import LAYERS, layers_of, number_of, text_of, whole_number_of
from sqvae.codec.writing import CodeFileError, PlainFile, SafetensorsWriter
from sqvae.data import Progress, Skipped
from sqvae.data.speech import LogMel, count_speech, stream_speech

KIND = "sqvae-units"

LONGEST = 2**31 - 1
"""Maximum number of samples of a recording: a day and a half at 16 kHz."""


@dataclass(frozen=True)
class Unit:
    """The codes of one recording."""

    name: str
    speaker: str
    """The speaker; empty if unknown."""
    codes: Tensor = field(repr=False)
    """(n,), or (n, layers)"""
    frames: int
    samples: int


class UnitWriter(SafetensorsWriter):
    """Writes the codes of recordings as a stream, also in pieces of recordings.

    The file appears under its name, complete, after the block.

    Arguments:
        path: the file to write.
        codebook_size: K.
        fingerprint: the model's fingerprint.
        codes_per_second: the number of codes per second.
        rate: the sample rate of the recordings, in which `samples` is counted.
        layers: the number of layers; None if codes have no axis of them.
    """

    def __init__(
        self,
        path: Path,
        *,
        codebook_size: int,
        fingerprint: str,
        codes_per_second: float,
        rate: int,
        layers: int | None = None,
    ) -> None:
        super().__init__(path)
        self._layers = () if layers is None else (layers,)
        self._metadata = {
            "format": versions_of(KIND)[0],
            "fingerprint": fingerprint,
            "codebook_size": str(codebook_size),
            "codes_per_second": json.dumps(codes_per_second),
            "rate": str(rate),
        }
        if layers is not None:
            self._metadata[LAYERS] = str(layers)
        self._names: list[bytes] = []
        self._speakers: list[bytes] = []
        self._lengths: list[int] = []
        self._frames: list[int] = []
        self._samples: list[int] = []
        self._pending = 0

    @property
    def written(self) -> int:
        """The number of recordings written."""
        return len(self._names)

    def add(self, codes: Tensor) -> None:  # (n,), or (n, layers)
        """Add some codes of the current recording."""
        self.put(codes.cpu().to(torch.int32).contiguous().numpy().tobytes())
        self._pending += len(codes)

    def end(self, name: str, speaker: str, *, frames: int, samples: int) -> None:
        """End the current recording, and add its name, speaker and length."""
        if samples > LONGEST:
            raise CodeFileError(f"{name} has {samples:,} samples, more than {LONGEST:,}: cut it into parts")
        self._names.append(name.encode("utf-8", "surrogateescape"))
        self._speakers.append(speaker.encode("utf-8", "surrogateescape"))
        self._lengths.append(self._pending)
        self._frames.append(frames)
        self._samples.append(samples)
        self._pending = 0

    def finish(self) -> tuple[Mapping[str, str], Mapping[str, tuple[str, list[int]]]]:
        tensors: dict[str, tuple[str, list[int]]] = {"codes": ("I32", [sum(self._lengths), *self._layers])}
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
    """A file of units, opened for reading. Codes are read from the disk when they are needed."""

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
    """Whether it was verified by its checksum; files of earlier versions have none."""
    layers: int | None = None
    """The number of layers; None if codes have no axis of them."""

    @classmethod
    def open(cls, path: str | Path) -> "UnitFile":
        """Open a file and read its metadata."""
        path = Path(path).expanduser()
        try:
            with opened(path) as file:
                metadata = file.metadata
                if metadata.get("format") not in versions_of(KIND):
                    raise CodeFileError(f"{path} is not a file of units: `sqvae encode` writes them for speech models")
                checked = is_checked(path, metadata, KIND)
                check_whole_numbers(file, "codes")
                numbers = [_column(file, name) for name in ("lengths", "frames", "samples")]
                names, speakers = (file.words(name) for name in ("names", "speakers"))
                shape, layers = file.shape("codes"), layers_of(metadata)
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
                    f"{path} is not a file of units: units as text are for other tools, and can't be decoded"
                ) from failure
            raise unreadable(path, "units", failure) from failure
        lengths, frames, samples = numbers
        sizes = {len(names), len(speakers), *map(len, numbers)}
        halves = all(0 <= 2 * length - own < 2 for length, own in zip(lengths, frames, strict=False))
        counts = all(number >= 0 for number in (*lengths, *samples))
        fits = shape == (sum(lengths), *(() if layers is None else (layers,)))
        if len(sizes) > 1 or not fits or not halves or not counts:
            raise CodeFileError(f"{path} is damaged: its parts are inconsistent. Encode the recordings again")
        return cls(path, *said, names, speakers, lengths, frames, samples, checked, layers)

    def __len__(self) -> int:
        return len(self.names)

    def units(self) -> Iterator[Unit]:
        """Yield the recordings in order."""
        with opened(self.path) as file:
            for index, own in enumerate(file.rows("codes", self.lengths)):
                check_range(own, self.codebook_size, self.path)
                yield Unit(self.names[index], self.speakers[index], own, self.frames[index], self.samples[index])

    def check_belongs_to(self, fingerprint: str) -> None:
        """Raise CodeFileError if the codes are from another model: they would decode to noise."""
        if self.fingerprint != fingerprint:
            raise CodeFileError(
                f"{self.path} contains units of another model: its fingerprint is {self.fingerprint}, but this model's "
                f"is {fingerprint}. Decode with the run that encoded them, unless it was trained further since; or "
                f"encode the recordings again"
            )


def _column(file: StoredCodes, name: str) -> list[int]:
    """A tensor of integers, one per recording."""
    check_whole_numbers(file, name)
    if len(file.shape(name)) != 1:
        raise ValueError(f"{name} must have one axis, got the shape {file.shape(name)}")
    return [int(number) for number in file.tensor(name).tolist()]


_ESCAPED = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r"})


def units_as_text(units: Sequence[Unit] | Iterator[Unit]) -> Iterator[str]:
    """Yield a line for each recording: its name, a tab, and its codes separated by blanks, with commas between the
    layers of a place."""
    for unit in units:
        name = unit.name.translate(_ESCAPED)
        places = unit.codes.view(len(unit.codes), -1).tolist()
        yield f"{name}\t{' '.join(','.join(map(str, place)) for place in places)}\n"


def to_text(source: Path, path: Path) -> None:
    """Convert a file of units to text."""
    with PlainFile(path) as file:
        for line in units_as_text(UnitFile.open(source).units()):
            file.put(line.encode("utf-8", "surrogateescape"))


UNIT_CONVERSIONS = {NPZ: to_npz, ".txt": to_text}
"""Formats of files of units besides safetensors, by file extension."""


class SpeechCoder(Protocol):
    """A model that turns recordings into units: see `sqvae.load`."""

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the weights."""

    @property
    def codebook_size(self) -> int:
        """The number of codes, K."""

    @property
    def codes_per_second(self) -> float:
        """The number of codes per second of speech."""

    @property
    def features(self) -> LogMel:
        """How recordings become frames."""

    @property
    def layers(self) -> int | None:
        """The number of layers; None if codes have no axis of them."""

    def encode_pieces(self, pieces: Iterable[Tensor], *, layers: int | None = None) -> Iterator[Tensor]:
        """(T, mels), ... -> (n,), ...: encodes one recording in pieces."""


class EncodedSpeech(NamedTuple):
    """How much was encoded."""

    recordings: int
    seconds: float


def encode_speech_to_file(
    coder: SpeechCoder,
    inputs: str | Path | Sequence[str | Path],
    path: str | Path,
    *,
    layers: int | None = None,
    strict: bool = False,
    on_skip: Callable[[Skipped], None] = lambda skipped: None,
    on_note: Callable[[str], None] = lambda note: None,
    progress: Progress | None = None,
) -> EncodedSpeech:
    """Encode recordings, folders or archives of them, or named datasets, to a file of units, like `sqvae encode`.

    Recordings are read as they are needed, long ones in pieces, and codes are written as a stream.

    Arguments:
        coder: a trained speech model, from `sqvae.load`.
        inputs: anything that `sqvae.data.speech.stream_speech` takes, or a single input.
        path: the file to write, which is replaced if it exists. It ends in .safetensors, in .npz for NumPy, or in .txt
            for one line per recording. `sqvae.UnitFile` reads the first two.
        layers: of a model with layers, only the first of them; None: all.
        strict: raise an error for the first recording that can't be read, instead of skipping it.
        on_skip: called with each recording that is skipped.
        on_note: called with a sentence about files that are ignored.
        progress: called with the activity, the number of items done and the total number.
    """
    if not hasattr(coder, "encode_pieces"):
        raise TypeError(
            f"encode_speech_to_file is for tokenizers of speech; got a {type(coder).__name__}. Encode images and label "
            "maps with sqvae.encode_to_file"
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
            layers=coder.layers if layers is None else layers,
        ) as writer,
    ):
        for heard in stream_speech(inputs, coder.features, strict=strict, on_skip=skip, on_note=on_note):
            for codes in coder.encode_pieces(heard.pieces(), layers=layers):
                writer.add(codes)
            writer.end(heard.name, heard.speaker or "", frames=len(heard), samples=heard.samples)
            samples += heard.samples
            seen += 1
            if progress is not None:
                progress("encoding", seen, total)
        if not writer.written:
            raise CodeFileError("none of the recordings can be read, so there is nothing to encode")
    return EncodedSpeech(writer.written, samples / coder.features.rate)
