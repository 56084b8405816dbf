"""What a model is about: how examples of one shape are stored, compared and shown."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

import torch
from PIL import Image
from torch import Tensor

from sqvae.metrics import Comparison


class Medium(ABC):
    """How data of one kind is brought to a model, compared with what becomes of it, and looked at."""

    noun: str
    """What one example is called."""

    @abstractmethod
    def model_input(self, given: Tensor, device: torch.device) -> Tensor:
        """Stored data, (batch, C, H, W), or what a person passes, as the model takes it."""

    @abstractmethod
    def output(self, x: Tensor) -> Tensor:
        """What the model predicts, as a person wants it."""

    @abstractmethod
    def comparison(self) -> Comparison:
        """Measures of data and what became of it, as the model takes and predicts them."""

    @abstractmethod
    def shown(self, x: Tensor) -> Tensor:  # -> (n, C, H, W), in [0, 1]
        """Data to look at, as the model takes or predicts it."""

    def shown_output(self, output: Tensor) -> Tensor:  # -> (n, C, H, W), in [0, 1]
        """What :meth:`output` gives, to look at."""
        return self.shown(output)

    def errors(self, x: Tensor, reconstruction: Tensor) -> Tensor | None:  # -> (n, C, H, W), in [0, 1]
        """Where data came out wrong, to look at; None where the eye can tell."""
        return None

    def legend(self) -> tuple[tuple[str, str], ...]:
        """The names and colours (#rrggbb) of all classes, in order; none where pixels are no classes."""
        return ()

    @property
    def unknown(self) -> tuple[str, str] | None:
        """What pixels are called of which nothing is known, and their colour; None where pixels are no classes."""
        return None

    def classes_in(self, *shown: Tensor) -> tuple[tuple[str, str], ...]:
        """Those that occur in data, as the model takes or predicts it or as :meth:`output` gives it, the most frequent
        first."""
        return ()

    @abstractmethod
    def images(self, output: Tensor) -> Iterator[Image.Image]:
        """What :meth:`output` gives, as files keep it."""
