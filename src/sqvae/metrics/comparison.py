"""Comparisons of data with their reconstructions: sums over batches, from which metrics are computed."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor


class Comparison(ABC):
    """Sums over the batches of a dataset. The metrics do not depend on the division into batches."""

    sums: Tensor
    error: str
    """The name of the metric that best describes the reconstruction error."""

    @abstractmethod
    def add(self, x: Tensor, reconstruction: Tensor) -> int:  # (batch, ...), (batch, ...)
        """Add one batch; returns the number of values compared."""

    @abstractmethod
    def measures(self, *, detailed: bool = False) -> dict[str, float]:
        """The metrics by name; with `detailed`, also those of each class."""


class SquaredErrors(Comparison):
    """The mean squared error over all values.

    Arguments:
        unit: the divisor of all values; 255 scales grey levels to [0, 1].
    """

    error = "mse"

    def __init__(self, unit: float = 1.0) -> None:
        self.unit = unit
        self.sums = torch.zeros(2, dtype=torch.float64)  # squared error, values

    def add(self, x: Tensor, reconstruction: Tensor) -> int:
        # Summed in float64 on the CPU, because not every device supports it.
        errors = (reconstruction.float() - x.float()).square().flatten(1).sum(1).cpu().double()
        self.sums += torch.tensor([float(errors.sum()) / self.unit**2, x.numel()], dtype=torch.float64)
        return x.numel()

    def measures(self, *, detailed: bool = False) -> dict[str, float]:
        error, values = self.sums.tolist()
        return {"mse": error / values}


class Confusion(Comparison):
    r"""Pixel error and intersection over union, from the confusion matrix.

    .. math:: \mathrm{IoU}_c = \frac{|x = c \wedge \hat x = c|}{|x = c \vee \hat x = c|}, \qquad
              \mathrm{mIoU} = \mathrm{mean}_c\, \mathrm{IoU}_c

    over the classes that occur in the dataset. Ignored pixels are not counted.

    Arguments:
        classes: the number of classes.
        ignore: the label of unknown pixels.
        names: the names of the classes; by default their numbers.
    """

    error = "pixel_error"

    def __init__(self, classes: int, ignore: int | None = None, names: tuple[str, ...] = ()) -> None:
        self.classes = classes
        self.ignore = ignore
        self.names = names or tuple(map(str, range(classes)))
        self.sums = torch.zeros(classes, classes, dtype=torch.float64)  # true class, reconstructed class

    def add(self, x: Tensor, reconstruction: Tensor) -> int:
        labels, became = x.flatten().long(), reconstruction.flatten().long()
        if self.ignore is not None:
            known = labels != self.ignore
            labels, became = labels[known], became[known]
        pairs = torch.bincount(labels * self.classes + became, minlength=self.classes**2)
        self.sums += pairs.view(self.classes, self.classes).cpu()
        return len(labels)

    def measures(self, *, detailed: bool = False) -> dict[str, float]:
        right = self.sums.diagonal()
        there, given = self.sums.sum(1), self.sums.sum(0)
        present = there > 0
        shares = (right / (there + given - right))[present]
        total = float(there.sum())
        found = {
            "pixel_error": 1 - float(right.sum()) / total if total else 0.0,
            "miou": float(shares.mean()) if total else 0.0,
            "classes_present": float(present.sum()),
        }
        if detailed:
            labels = present.nonzero().flatten().tolist()
            found |= {f"iou of {self.names[label]}": float(share) for label, share in zip(labels, shares, strict=True)}
        return found


class Levels(Comparison):
    """Grey levels as ordered categories: the squared error of their values in [0, 1], and the share of wrong ones.

    Arguments:
        levels: the number of levels, 0 ... levels - 1.
    """

    error = "mse"

    def __init__(self, levels: int) -> None:
        self.levels = levels
        self.sums = torch.zeros(3, dtype=torch.float64)  # squared error, wrong values, values

    def add(self, x: Tensor, reconstruction: Tensor) -> int:
        distances = (reconstruction.long() - x.long()).flatten()
        squares = float(distances.square().sum()) / (self.levels - 1) ** 2
        self.sums += torch.tensor([squares, float((distances != 0).sum()), x.numel()], dtype=torch.float64)
        return x.numel()

    def measures(self, *, detailed: bool = False) -> dict[str, float]:
        error, wrong, values = self.sums.tolist()
        return {"mse": error / values, "pixel_error": wrong / values}


class Decibels(Comparison):
    """Frames of a spectrogram on the model's scale: the squared error on this scale, and in dB.

    Arguments:
        scale: (mels,), the unit of the model's scale in dB in each dimension.
    """

    error = "mse_db"

    def __init__(self, scale: Tensor) -> None:
        self.scale = scale.cpu().double()
        self.sums = torch.zeros(3, dtype=torch.float64)  # squared error, squared error in dB, values

    def add(self, x: Tensor, reconstruction: Tensor) -> int:  # (frames, mels), (frames, mels)
        by_dimension = (reconstruction.float() - x.float()).square().sum(0).cpu().double()
        in_decibels = float((by_dimension * self.scale.square()).sum())
        self.sums += torch.tensor([float(by_dimension.sum()), in_decibels, x.numel()], dtype=torch.float64)
        return x.numel()

    def measures(self, *, detailed: bool = False) -> dict[str, float]:
        error, in_decibels, values = self.sums.tolist()
        return {"mse": error / values, "mse_db": in_decibels / values}
