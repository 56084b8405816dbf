"""How vectors become the input of a model, are compared with reconstructions, and are displayed."""

import math
from collections.abc import Iterator

import torch
from PIL import Image
from torch import Tensor

from sqvae.distributions.checks import check_tensor
from sqvae.metrics import Comparison
from sqvae.modalities.medium import Medium

HALF = 2.0
"""The number of standard deviations between the mean, which is grey, and black or white."""


class VectorErrors(Comparison):
    r"""The squared error of vectors, the share of their variance that this is, and the cosine similarity.

    .. math:: \mathrm{unexplained} = \frac{\mathrm{MSE}}{a^2}

    Arguments:
        scale: the standard deviation of the values in the training set, a.
    """

    error = "unexplained"

    def __init__(self, scale: float) -> None:
        self.scale = scale
        self.sums = torch.zeros(4, dtype=torch.float64)  # squared error, values, cosines, vectors

    def add(self, x: Tensor, reconstruction: Tensor) -> int:
        x, reconstruction = x.float(), reconstruction.float()
        errors = (reconstruction - x).square().sum(1).cpu().double()
        cosines = torch.nn.functional.cosine_similarity(x, reconstruction, dim=1).cpu().double()
        self.sums += torch.tensor([errors.sum(), x.numel(), cosines.sum(), len(x)], dtype=torch.float64)
        return x.numel()

    def measures(self, *, detailed: bool = False) -> dict[str, float]:
        error, values, cosines, vectors = self.sums.tolist()
        mse = error / values
        return {"mse": mse, "unexplained": mse / self.scale**2, "cosine": cosines / vectors}


class VectorMedium(Medium):
    """Vectors of real numbers of any scale.

    Arguments:
        offset: (values,), the mean of each value in the training set.
        scale: the standard deviation of all values around their means.
    """

    noun = "vector"

    def __init__(self, offset: Tensor, scale: float) -> None:
        self.offset = offset
        self.scale = scale

    def model_input(self, given: Tensor, device: torch.device) -> Tensor:
        """The vectors as float32."""
        check_tensor(given, "vectors")
        values = len(self.offset)
        if given.ndim != 2 or given.shape[1] != values:
            raise ValueError(f"vectors must be (batch, {values}) for this model, got shape {tuple(given.shape)}")
        vectors = given.to(device, non_blocking=True).float()
        if not torch.compiler.is_compiling() and not bool(vectors.isfinite().all()):
            row = int((~vectors.isfinite().all(1)).nonzero()[0])
            raise ValueError(f"vectors must be finite, and row {row} is not: leave it out")
        return vectors

    def output(self, x: Tensor) -> Tensor:
        return x.float()

    def comparison(self) -> VectorErrors:
        return VectorErrors(self.scale)

    def shown(self, x: Tensor) -> Tensor:  # (n, values) -> (n, 1, H, W), in [0, 1]
        """Each vector as a grid of grey cells, row by row. Values above their mean are bright, values below it dark."""
        relative = (x.float() - self.offset.to(x.device)) / (HALF * self.scale)
        rows = max(1, math.isqrt(x.shape[1]))
        columns = -(-x.shape[1] // rows)
        filled = torch.nn.functional.pad(
            (0.5 + 0.5 * relative).clamp(0, 1), (0, rows * columns - x.shape[1]), value=0.5
        )
        return filled.view(-1, 1, rows, columns)

    def images(self, output: Tensor) -> Iterator[Image.Image]:
        cells = (self.shown(output)[:, 0] * 255).round().byte().cpu().numpy()
        return map(Image.fromarray, cells)
