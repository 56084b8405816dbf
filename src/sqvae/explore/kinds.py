"""What differs between pictures and speech on the page."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sqvae.analysis import interpolated
from sqvae.explore.uploads import LONGEST, picture_from, sound_from
from sqvae.modalities import (
    Seen,
    SpeechTokenizer,
    Tokenizer,
    drawn_alone,
    drawn_at,
    see,
    see_codes,
    see_speech,
    see_units,
    spoken_alone,
)
from sqvae.networks.speech import STRIDE
from sqvae.reports.sound import as_flac
from sqvae.runs import Generator

DRAWN_SECONDS = 2
"""Of speech that is made up."""


@dataclass(frozen=True)
class Example:
    """What a person looks at."""

    data: Tensor = field(repr=False)
    """As it is stored for training: (C, H, W), or frames (T, mels)."""
    name: str
    """Shown, and used for nothing else."""
    voice: str | None = None
    """Of speech: whose voice to speak with."""
    note: str = ""
    """What was done to it."""
    recorded: Callable[[], NDArray[np.float32]] | None = field(default=None, repr=False)
    """Of speech: gives the recording itself, (samples,), at the rate of the features;"""
    samples: int | None = None
    """how many these are."""


class Box(NamedTuple):
    """The part of a picture that one code stands for."""

    left: float
    top: float
    width: float
    height: float


class Kind(ABC):
    """One kind of run. Arrays of codes are (h, w) for pictures, and (n,) for speech."""

    noun: str
    accept: str
    """The files that a browser offers to choose from."""
    wide: bool
    """Whether examples are long strips, shown below each other."""
    nearest_shown: str
    """What is shown of codes that may take another's place."""
    voices: tuple[str, ...] = ()
    """Of speech: those that it can speak with."""

    @abstractmethod
    def read(self, content: bytes, name: str) -> Example:
        """An example from a file's bytes; raises :class:`RefusedError`."""

    @abstractmethod
    def held_out(self, examples: Any, index: int) -> Example:
        """One of a set."""

    @abstractmethod
    def see(self, example: Example, codes: Tensor | None = None) -> Seen:
        """An example through its codes, or through others."""

    @abstractmethod
    def decoded(self, codes: Tensor) -> Tensor:  # -> uint8 (3, H, W)
        """What codes stand for."""

    @abstractmethod
    def alone(self, codes: Tensor) -> Tensor:  # (n,) -> uint8 (n, 3, P, Q)
        """What each code stands for by itself."""

    def tried(self, codes: Tensor, place: int, others: Tensor) -> Tensor | None:  # (n,) -> uint8 (n, 3, P, P)
        """What each of some codes would draw at a place, with what lies around it; None where that takes too long."""
        return None

    @abstractmethod
    def columns(self, codes: Tensor) -> int:
        """How many codes stand in a row of the map."""

    @abstractmethod
    def box(self, codes: Tensor, place: int) -> Box:
        """The part of the example that a code stands for."""

    def seconds(self, frames: int) -> float | None:
        """How long an example of so many frames is; None of pictures."""
        return None

    @abstractmethod
    def place_name(self, codes: Tensor, place: int) -> str:
        """Where a code stands, in words."""

    @abstractmethod
    def rate(self, bits: float, codes: Tensor) -> str:
        """What bits are for each pixel, or for each second."""

    @abstractmethod
    def shape_drawn(self) -> tuple[int, ...] | None:
        """Of the codes of an example that is made up; None where the prior knows."""


class PictureKind(Kind):
    """Pictures, label maps and grey levels."""

    accept = "image/*"
    wide = False
    nearest_shown = "what each would draw there"

    def __init__(self, tokenizer: Tokenizer, prior: Generator | None) -> None:
        self.tokenizer = tokenizer
        self.prior = prior
        self.noun = tokenizer.medium.noun

    def read(self, content: bytes, name: str) -> Example:
        picture, changes = picture_from(content, self.tokenizer.preprocessing)
        return Example(picture, name, note=changes)

    def held_out(self, examples: Any, index: int) -> Example:
        return Example(examples.take([index])[0], f"held-out {self.noun} {index + 1:,} of {len(examples):,}")

    def see(self, example: Example, codes: Tensor | None = None) -> Seen:
        return see(self.tokenizer, example.data, self.prior, codes=codes)

    def decoded(self, codes: Tensor) -> Tensor:
        return see_codes(self.tokenizer, codes)

    def alone(self, codes: Tensor) -> Tensor:
        return drawn_alone(self.tokenizer, codes)

    def tried(self, codes: Tensor, place: int, others: Tensor) -> Tensor | None:
        return drawn_at(self.tokenizer, codes, place, others)

    def columns(self, codes: Tensor) -> int:
        return codes.shape[1]

    def box(self, codes: Tensor, place: int) -> Box:
        rows, columns = codes.shape
        _, height, width = self.tokenizer.shape
        tall, broad = height / rows, width / columns
        return Box(place % columns * broad, place // columns * tall, broad, tall)

    def place_name(self, codes: Tensor, place: int) -> str:
        return f"row {place // codes.shape[1] + 1}, column {place % codes.shape[1] + 1}"

    def rate(self, bits: float, codes: Tensor) -> str:
        _, height, width = self.tokenizer.shape
        return f"{bits / (height * width):.2f} bits per pixel"

    def shape_drawn(self) -> tuple[int, ...] | None:
        return None

    def between(self, first: Example, second: Example, steps: int) -> list[Tensor]:  # -> uint8 (3, H, W), each
        """Pictures from one to another, by the codes nearest to points between their encodings."""
        a, b = (one.data.expand(steps, *one.data.shape) for one in (first, second))
        codes = interpolated(self.tokenizer, a, b, torch.linspace(0, 1, steps))
        return [self.decoded(one) for one in codes]


class SpeechKind(Kind):
    """Speech, looked at as spectrograms."""

    noun = "recording"
    accept = "audio/*"
    wide = True
    nearest_shown = "what each sounds like alone"

    def __init__(self, tokenizer: SpeechTokenizer, prior: Generator | None) -> None:
        self.tokenizer = tokenizer
        self.prior = prior
        self.voices = tokenizer.speakers

    def read(self, content: bytes, name: str) -> Example:
        frames, samples, longer = sound_from(content, self.tokenizer.features)
        note = f"the first {LONGEST} seconds of it" if longer else ""
        return Example(frames, name, note=note, recorded=lambda: samples, samples=len(samples))

    def held_out(self, examples: Any, index: int) -> Example:
        features = self.tokenizer.features
        frames, most = examples.frames(index), round(LONGEST / features.seconds_per_frame)
        voice = examples.speakers[index]
        samples = int(examples.samples[index]) if len(frames) <= most else (most - 1) * features.shift
        return Example(
            frames[:most],
            f"held-out utterance {index + 1:,} of {len(examples):,}, by {voice}",
            voice if voice in self.voices else None,
            f"the first {LONGEST} seconds of it" if len(frames) > most else "",
            lambda: examples.sound(index, features.rate, samples),
            samples,
        )

    def see(self, example: Example, codes: Tensor | None = None) -> Seen:
        return see_speech(self.tokenizer, example.data, example.voice, self.prior, codes=codes)

    def decoded(self, codes: Tensor) -> Tensor:
        return see_units(self.tokenizer, codes)

    def alone(self, codes: Tensor) -> Tensor:
        return spoken_alone(self.tokenizer, codes)

    def sound(self, example: Example, codes: Tensor) -> bytes:
        """What codes sound like, as FLAC."""
        frames = self.tokenizer.decode([codes], example.voice or self.voices[0], [len(example.data)])[0]
        return as_flac(
            self.tokenizer.sound(frames, samples=example.samples).cpu().numpy(), self.tokenizer.features.rate
        )

    def original(self, example: Example) -> bytes | None:
        """What was recorded, as FLAC; None where it can't be had."""
        if example.recorded is None:
            return None
        try:
            return as_flac(example.recorded(), self.tokenizer.features.rate)
        except (OSError, ValueError):  # its file may have gone since
            return None

    def columns(self, codes: Tensor) -> int:
        return len(codes)

    def box(self, codes: Tensor, place: int) -> Box:
        return Box(STRIDE * place, 0, STRIDE, self.tokenizer.features.mels)

    def seconds(self, frames: int) -> float:
        return frames * self.tokenizer.features.seconds_per_frame

    def place_name(self, codes: Tensor, place: int) -> str:
        return f"at {place / self.tokenizer.codes_per_second:.2f} s"

    def rate(self, bits: float, codes: Tensor) -> str:
        return f"{bits * self.tokenizer.codes_per_second / len(codes):.0f} bits a second"

    def shape_drawn(self) -> tuple[int, ...] | None:
        return (round(DRAWN_SECONDS * self.tokenizer.codes_per_second),)


def kind_for(tokenizer: Any, prior: Generator | None) -> Kind:
    """What a model's examples are."""
    known = SpeechKind if tokenizer.experiment.data.kind == "speech" else PictureKind
    return known(tokenizer, prior)
