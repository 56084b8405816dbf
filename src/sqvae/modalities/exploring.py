"""What the page of `sqvae explore` shows of examples, whatever their kind."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from sqvae.modalities.views import Seen


class RefusedError(ValueError):
    """A file can't be taken. The message says why."""


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


class ExampleView(ABC):
    """What the page of `sqvae explore` shows of a model. Arrays of codes are (h, w) for images, and (n,) for others."""

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

    def between(self, first: Example, second: Example, steps: int) -> list[Tensor] | None:  # -> uint8 (3, H, W), each
        """Examples on the way from one to another; None where that is not shown."""
        return None

    def sound(self, example: Example, codes: Tensor) -> bytes | None:
        """What codes sound like, as FLAC; None where nothing can be heard."""
        return None

    def original(self, example: Example) -> bytes | None:
        """What was recorded, as FLAC; None where it can't be had."""
        return None
