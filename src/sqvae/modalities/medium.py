"""The interface for data of one fixed shape: how examples are converted, compared and displayed."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

import torch
from PIL import Image
from torch import Tensor

from sqvae.metrics import Comparison


class Medium(ABC):
    """How examples of one kind become the input of a model, are compared with reconstructions, and are displayed."""

    noun: str
    """The word for one example."""

    @abstractmethod
    def model_input(self, given: Tensor, device: torch.device) -> Tensor:
        """The input of the model, from stored data, (batch, C, H, W), or from data that a user passes."""

    @abstractmethod
    def output(self, x: Tensor) -> Tensor:
        """The prediction of the model in the form that users get."""

    @abstractmethod
    def comparison(self) -> Comparison:
        """A new accumulator of the measures that compare inputs of the model with its predictions."""

    @abstractmethod
    def shown(self, x: Tensor) -> Tensor:  # -> (n, C, H, W), in [0, 1]
        """Inputs or predictions of the model as images."""

    def shown_output(self, output: Tensor) -> Tensor:  # -> (n, C, H, W), in [0, 1]
        """The result of :meth:`output` as images."""
        return self.shown(output)

    def errors(self, x: Tensor, reconstruction: Tensor) -> Tensor | None:  # -> (n, C, H, W), in [0, 1]
        """Images that mark the errors of reconstructions; None where a signed difference is shown in their place."""
        return None

    def legend(self) -> tuple[tuple[str, str], ...]:
        """The names and colours (#rrggbb) of all classes, in order; empty where pixels are not classes."""
        return ()

    @property
    def unknown(self) -> tuple[str, str] | None:
        """The name and colour of pixels without a known class; None where pixels are not classes."""
        return None

    def classes_in(self, *shown: Tensor) -> tuple[tuple[str, str], ...]:
        """The classes that occur in inputs, predictions or results of :meth:`output`, the most frequent first."""
        return ()

    @abstractmethod
    def images(self, output: Tensor) -> Iterator[Image.Image]:
        """The result of :meth:`output` as images to save."""
