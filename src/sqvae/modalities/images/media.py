"""What a model is about: pictures, label maps, or grey levels. How each is stored, compared and shown."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from PIL import Image
from torch import Tensor

from sqvae.config import LEVELS, Experiment
from sqvae.distributions.checks import check_indices, check_range, check_tensor
from sqvae.metrics import Comparison, Confusion, Levels, SquaredErrors
from sqvae.modalities.images.class_colours import class_colours, unlike
from sqvae.modalities.medium import Medium

WRONG = (230, 0, 126)
"""The colour of what is wrong in a picture of errors, which is otherwise grey: `metrics.meanings.WRONG_LABELS` names
it."""

PALE = (0.75, 0.95)
"""The greys of what is right there, from those of dark classes to those of bright ones."""

UNKNOWN = "nothing known (ignored)"
"""What pixels are called of which nothing is known."""


def _grey_or_colour(pictures: Tensor) -> Iterator[Image.Image]:  # (n, C, H, W), in [0, 1]
    values = (pictures.clamp(0, 1) * 255).round().byte().permute(0, 2, 3, 1).squeeze(-1).cpu().numpy()
    return map(Image.fromarray, values)


def _check_floats(pictures: Tensor) -> None:  # (n, C, H, W)
    # A graph that is traced can't raise on what its tensors hold.
    if not torch.compiler.is_compiling() and (unknown := int(pictures.isnan().sum())):
        where = sorted({int(row) for row in pictures.isnan().nonzero()[:, 0]})
        raise ValueError(
            f"picture {where[0]} holds NaN ({unknown:,} of all {pictures.numel():,} values are): pictures as floats "
            "must lie between 0 and 1; look at what made them"
        )
    check_range(pictures, 0, 1, "pictures as floats", "; pass 0 ... 255 as uint8")


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
        _check_floats(given)
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
            _check_floats(given)
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

    @property
    def unknown(self) -> tuple[str, str]:
        """The colour is unlike that of any class."""
        return UNKNOWN, "#{:02x}{:02x}{:02x}".format(*unlike(self._colours))

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
        """Each class in its colour; ignored places in one that no class has."""
        colours = torch.tensor([*self._colours, unlike(self._colours)], device=x.device) / 255
        rows = x if self.ignore is None else x.where(x != self.ignore, self.classes)
        return colours[rows].permute(0, 3, 1, 2)

    def errors(self, x: Tensor, reconstruction: Tensor) -> Tensor:
        """Magenta where the reconstruction is wrong; elsewhere the data in pale grey, or as it is where none can tell.

        Whatever colours the classes have, what is wrong can be told from what is right.
        """
        known = torch.ones_like(x, dtype=torch.bool) if self.ignore is None else x != self.ignore
        wrong = (x != reconstruction).unsqueeze(1)
        shown = self.shown(x)
        darkest, brightest = PALE
        grey = (darkest + (brightest - darkest) * shown.mean(1, keepdim=True)).expand_as(shown)
        magenta = torch.tensor(WRONG, device=x.device).view(1, 3, 1, 1) / 255
        return magenta.where(wrong, grey).where(known.unsqueeze(1), shown)

    def legend(self) -> tuple[tuple[str, str], ...]:
        """The names and colours of all classes, in order."""
        names = self.names or tuple(f"class {number}" for number in range(self.classes))
        colours = ("#{:02x}{:02x}{:02x}".format(*colour) for colour in self._colours)
        return tuple(zip(names, colours, strict=True))

    def classes_in(self, *shown: Tensor) -> tuple[tuple[str, str], ...]:
        known = (*self.legend(), self.unknown)
        labels = torch.cat([x.flatten().cpu() for x in shown]).long()
        rows = labels if self.ignore is None else labels.where(labels != self.ignore, self.classes)
        counts = torch.bincount(rows, minlength=len(known))
        order = counts.sort(descending=True, stable=True).indices[: int((counts > 0).sum())]
        return tuple(known[row] for row in order.tolist())

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
