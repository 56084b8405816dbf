"""The interface between the page of `sqvae explore` and one kind of data."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from sqvae.modalities.views import CodedExample


class RefusedError(ValueError):
    """An uploaded file can't be used. The message gives the reason."""


@dataclass(frozen=True)
class Example:
    """An example on the page: an uploaded file, or an example of the held-out data."""

    data: Tensor = field(repr=False)
    """The example as it is stored for training: an image (C, H, W), log-mel frames (T, mels), or a vector (values,)."""
    name: str
    """The name of the example, which is only displayed."""
    voice: str | None = None
    """The speaker whose voice the decoder uses, for speech; None: the first that the model knows."""
    note: str = ""
    """What was done to the file to fit the model, for example "resized to 28x28"."""
    recorded: Callable[[], NDArray[np.float32]] | None = field(default=None, repr=False)
    """A function that reads the waveform, (samples,), at the sample rate of the features; None except for speech."""
    samples: int | None = None
    """The number of samples of the waveform; None except for speech."""


class Box(NamedTuple):
    """The rectangle of an image that one position of the latent map covers, in pixels."""

    left: float
    top: float
    width: float
    height: float


class ExampleViewer(ABC):
    """How the page of `sqvae explore` reads, decodes and displays examples of one kind of data with one model.

    Codes have the shape (h, w) for images, and (n,) for other data. A position is an index into the flattened codes.
    """

    noun: str
    """The word for one example, for example "picture"."""
    accept: str
    """The file types that the browser offers, as the `accept` attribute of an HTML input."""
    wide: bool
    """Whether images of examples are long strips, which are stacked vertically."""
    replacement_caption: str
    """A description of the images of replacement codes, for the text above them."""
    voices: tuple[str, ...] = ()
    """The speakers whose voices the decoder can use; empty except for speech."""

    @abstractmethod
    def read(self, content: bytes, name: str) -> Example:
        """Read an example from the bytes of a file. Raises :class:`RefusedError` if the file can't be used."""

    @abstractmethod
    def held_out(self, examples: Any, index: int) -> Example:
        """One example of a held-out set."""

    @abstractmethod
    def view(self, example: Example, codes: Tensor | None = None) -> CodedExample:
        """Encode and decode an example, or decode other codes in place of its own."""

    @abstractmethod
    def decoded(self, codes: Tensor) -> Tensor:  # -> uint8 (3, H, W)
        """The image that codes decode to."""

    @abstractmethod
    def code_images(self, codes: Tensor) -> Tensor:  # (n,) -> uint8 (n, 3, P, Q)
        """The image that each code decodes to by itself."""

    def replacements(self, codes: Tensor, position: int, others: Tensor) -> Tensor | None:  # (n,) -> uint8 (n, 3, P, P)
        """The image patches around a position if it had each of the other codes; None where that takes too long."""
        return None

    @abstractmethod
    def columns(self, codes: Tensor) -> int:
        """The number of codes in a row of the map."""

    @abstractmethod
    def box(self, codes: Tensor, position: int) -> Box:
        """The rectangle of the image that a position covers."""

    def seconds(self, frames: int) -> float | None:
        """The duration of a number of frames; None where examples have no duration."""
        return None

    @abstractmethod
    def position_name(self, codes: Tensor, position: int) -> str:
        """The name of a position, for example "row 1, column 2"."""

    @abstractmethod
    def rate(self, bits: float, codes: Tensor) -> str:
        """The bit rate of an example as text, for example in bits per pixel."""

    @abstractmethod
    def sample_shape(self) -> tuple[int, ...] | None:
        """The shape of the codes of a sample; None where the prior defines it."""

    def interpolation(
        self, first: Example, second: Example, steps: int
    ) -> list[Tensor] | None:  # -> uint8 (3, H, W), each
        """The images of an interpolation between two examples; None where the data has none."""
        return None

    def sound(self, example: Example, codes: Tensor) -> bytes | None:
        """The sound that codes decode to, as FLAC; None except for speech."""
        return None

    def original(self, example: Example) -> bytes | None:
        """The original recording, as FLAC; None where it is not available."""
        return None
