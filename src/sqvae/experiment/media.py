"""What a model is about: pictures, label maps, or grey levels. How each is stored, compared and shown."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from PIL import Image
from torch import Tensor

from sqvae.distributions.checks import check_indices, check_range, check_tensor
from sqvae.experiment.class_colours import class_colours
from sqvae.experiment.configuration import LEVELS, Experiment
from sqvae.metrics import Comparison, Confusion, Levels, SquaredErrors

FADED = 0.25
"""How much is left of a label's colour where it came through right, in a picture of errors."""


class Medium(ABC):
    """One kind of data. To add one: a class here, and a line in :func:`medium_of`."""

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

    @abstractmethod
    def images(self, output: Tensor) -> Iterator[Image.Image]:
        """What :meth:`output` gives, as files keep it."""


def _grey_or_colour(pictures: Tensor) -> Iterator[Image.Image]:  # (n, C, H, W), in [0, 1]
    values = (pictures.clamp(0, 1) * 255).round().byte().permute(0, 2, 3, 1).squeeze(-1).cpu().numpy()
    return map(Image.fromarray, values)


class PictureMedium(Medium):
    """Pictures of real numbers in [0, 1]."""

    noun = "picture"

    def model_input(self, given: Tensor, device: torch.device) -> Tensor:
        """From uint8, or floats in [0, 1]. Channels come last in memory, where convolutions are fastest."""
        if given.dtype == torch.uint8:
            pictures = given.to(device, non_blocking=True).float().div_(255)
            return pictures.contiguous(memory_format=torch.channels_last)
        if not given.is_floating_point():
            raise ValueError(f"pictures must be uint8, or floats in [0, 1]; got {given.dtype}")
        check_range(given, 0, 1, "pictures as floats", "; pass 0 ... 255 as uint8")
        return given.to(device).float()

    def output(self, x: Tensor) -> Tensor:
        return x.float()

    def comparison(self) -> Comparison:
        return SquaredErrors()

    def shown(self, x: Tensor) -> Tensor:
        return x.float()

    def images(self, output: Tensor) -> Iterator[Image.Image]:
        return _grey_or_colour(output)


class LevelMedium(Medium):
    """Grey pictures whose levels are ordered categories, (batch, H, W)."""

    noun = "picture"

    def model_input(self, given: Tensor, device: torch.device) -> Tensor:
        """From uint8, or floats in [0, 1], (batch, 1, H, W)."""
        if given.is_floating_point():
            check_range(given, 0, 1, "pictures as floats", "; pass 0 ... 255 as uint8")
            given = (given * (LEVELS - 1)).round()
        return given.to(device, non_blocking=True).long().squeeze(1)

    def output(self, x: Tensor) -> Tensor:
        return self.shown(x)

    def shown_output(self, output: Tensor) -> Tensor:
        return output

    def comparison(self) -> Comparison:
        return Levels(LEVELS)

    def shown(self, x: Tensor) -> Tensor:
        return x.unsqueeze(1) / (LEVELS - 1)

    def images(self, output: Tensor) -> Iterator[Image.Image]:
        return _grey_or_colour(output)


@dataclass(frozen=True)
class LabelMedium(Medium):
    """Label maps, (batch, H, W): the number of a class at each place."""

    classes: int
    ignore: int | None = None
    names: tuple[str, ...] = ()
    colours: tuple[str, ...] = ()
    """#rrggbb each; where there are none, some that are easy to tell apart."""
    noun = "label map"

    @property
    def _colours(self) -> tuple[tuple[int, int, int], ...]:
        given = tuple((int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16)) for text in self.colours)
        return given or class_colours(self.classes)

    def model_input(self, given: Tensor, device: torch.device) -> Tensor:
        """From integers, (batch, H, W) or (batch, 1, H, W)."""
        check_tensor(given, "label maps")
        labels = given.squeeze(1) if given.ndim == 4 else given
        if labels.is_floating_point() or labels.is_complex():
            raise ValueError(f"label maps must be whole numbers, the classes of pixels; got {given.dtype}")
        labels = labels.to(device, non_blocking=True).long()
        known = labels if self.ignore is None else labels[labels != self.ignore]
        check_indices(known, self.classes, "labels", self._hint())
        return labels

    def _hint(self) -> str:
        void = "" if self.ignore is None else f", and {self.ignore} where nothing is known"
        return f"; this model knows {self.classes} classes{void}"

    def output(self, x: Tensor) -> Tensor:
        return x

    def comparison(self) -> Comparison:
        return Confusion(self.classes, self.ignore, self.names)

    def shown(self, x: Tensor) -> Tensor:
        """Each class in its colour; ignored places black."""
        colours = torch.tensor([*self._colours, (0, 0, 0)], device=x.device) / 255
        rows = x if self.ignore is None else x.where(x != self.ignore, self.classes)
        return colours[rows].permute(0, 3, 1, 2)

    def errors(self, x: Tensor, reconstruction: Tensor) -> Tensor:
        """The reconstruction in full colour where it is wrong, faded where it is right, black where none can tell."""
        known = torch.ones_like(x, dtype=torch.bool) if self.ignore is None else x != self.ignore
        wrong = (x != reconstruction).unsqueeze(1)
        colours = self.shown(reconstruction)
        faded = 1 - FADED * (1 - colours)
        return colours.where(wrong, faded) * known.unsqueeze(1)

    def images(self, output: Tensor) -> Iterator[Image.Image]:
        """Palette pictures, whose numbers are the classes; 16-bit grey ones for more classes than a palette has."""
        for labels in output.cpu():
            if self.classes > 256:
                yield Image.fromarray(labels.to(torch.uint16).numpy())
                continue
            image = Image.fromarray(labels.byte().numpy(), mode="P")
            image.putpalette([channel for colour in self._colours for channel in colour])
            yield image


PICTURES = PictureMedium()


def medium_of(experiment: Experiment) -> Medium:
    """What an experiment whose data is known is about."""
    data = experiment.data
    if data.kind == "labels":
        if data.classes is None:
            raise ValueError("the number of classes is not known before the data is loaded; set data.classes")
        return LabelMedium(data.classes, data.ignore, data.class_names or (), data.class_colours or ())
    return LevelMedium() if data.kind == "levels" else PICTURES
