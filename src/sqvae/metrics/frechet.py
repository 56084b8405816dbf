r"""The Fréchet distance of two sets of images: that of Gaussians with the mean and covariance of their features.

.. math:: d^2 = \|\mu_1 - \mu_2\|^2 + \mathrm{tr}\bigl(\Sigma_1 + \Sigma_2 - 2 (\Sigma_1 \Sigma_2)^{1/2}\bigr)

With the features of the Inception network of 2015-12-05 it is the Fréchet inception distance, FID (Heusel et al.,
2017), and it is called FID only then.
"""

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.nn.functional import avg_pool2d, conv2d, interpolate

from sqvae.files import written
from sqvae.metrics.inception import Inception, check_pictures
from sqvae.metrics.inception_weights import INCEPTION, Announce, find_inception

_FORMAT = "sqvae feature statistics 1"


class FeatureNetwork(Protocol):
    """A network from images to features."""

    @property
    def name(self) -> str:
        """The name of the features: equal names mean equal features of equal images."""

    @property
    def dim(self) -> int:
        """The number of features of an image, d."""

    def __call__(self, pictures: Tensor) -> Tensor:  # uint8 (n, 1 or 3, H, W) -> (n, d)
        """The features of images of any size."""


class FeatureStatistics:
    r"""Number, mean and covariance of the features of a set of images, which are added in batches.

    Two parts of a set, a and b, are combined without loss of precision (Chan et al., 1979):

    .. math:: \mu = \mu_a + \frac{n_b}{n}\,\delta, \qquad M = M_a + M_b + \frac{n_a n_b}{n}\,\delta\delta^\top, \qquad
              \delta = \mu_b - \mu_a, \quad n = n_a + n_b, \quad \Sigma = \frac{M}{n - 1}

    Arguments:
        features: the name of the features, which is that of the network.
        dim: the number of features of an image, d.
    """

    def __init__(self, features: str, dim: int) -> None:
        self.features = features
        self.dim = dim
        self.n = 0
        self.mean = torch.zeros(dim, dtype=torch.float64)
        self.scatter = torch.zeros(dim, dim, dtype=torch.float64)
        """M, the sum of the products of deviations from the mean: (d, d)"""

    @property
    def covariance(self) -> Tensor:  # (d, d)
        """The unbiased covariance, divided by n - 1."""
        if self.n < 2:
            raise ValueError(f"a covariance needs at least 2 images, got {self.n}; add more")
        return self.scatter / (self.n - 1)

    def update(self, features: Tensor) -> None:  # (n, d)
        """Add the features of more images."""
        if features.dim() != 2 or features.shape[1] != self.dim:
            raise ValueError(f"features are of shape {tuple(features.shape)}, expected (n, {self.dim})")
        x = features.detach().cpu().double()  # on the CPU, because not every device supports float64
        if not x.isfinite().all():
            raise ValueError("features contain values that are not finite; check the images")
        if len(x):
            mean = x.mean(0)
            centred = x - mean
            self._join(len(x), mean, centred.T @ centred)

    def merge(self, other: "FeatureStatistics") -> None:
        """Add the statistics of another set."""
        _check_alike(self, other)
        if other.n:
            self._join(other.n, other.mean, other.scatter)

    def _join(self, n: int, mean: Tensor, scatter: Tensor) -> None:  # (d,), (d, d)
        share = n / (self.n + n)
        delta = mean - self.mean
        self.scatter += scatter
        self.scatter.addr_(delta, delta, alpha=self.n * share)
        self.mean += share * delta
        self.n += n

    def save(self, path: str | Path) -> None:
        """Write n, mean and scatter to a safetensors file."""
        tensors = {"n": torch.tensor(self.n), "mean": self.mean, "scatter": self.scatter}
        try:
            with written(Path(path)) as temporary:
                save_file(tensors, temporary, {"format": _FORMAT, "features": self.features})
                temporary.chmod(0o644)  # safetensors makes files readable by the owner only
        except SafetensorError as failure:  # raised if the disk is full
            raise OSError(f"can't write {path}: {failure}") from failure

    @classmethod
    def load(cls, path: str | Path) -> "FeatureStatistics":
        """Read statistics from a file."""
        if not os.path.isfile(path):
            raise FileNotFoundError(f"there is no file {path}, expected saved feature statistics")
        try:
            with safe_open(path, framework="pt") as file:
                metadata = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
        except SafetensorError as failure:
            raise ValueError(f"{path} can't be read as feature statistics: {failure}; save them again") from failure
        shapes = {name: (tensor.dtype, tuple(tensor.shape)) for name, tensor in tensors.items()}
        d = len(tensors["mean"]) if shapes.get("mean", (None, ()))[1] else 0
        expected = {"n": (torch.int64, ()), "mean": (torch.float64, (d,)), "scatter": (torch.float64, (d, d))}
        if metadata.get("format") != _FORMAT or "features" not in metadata or shapes != expected:
            raise ValueError(
                f"{path} holds {', '.join(shapes) or 'nothing'} in the format {metadata.get('format')!r}, expected n, "
                f"mean (d,) and scatter (d, d) in the format {_FORMAT!r}; save them again"
            )
        found = cls(metadata["features"], d)
        found.n, found.mean, found.scatter = int(tensors["n"]), tensors["mean"], tensors["scatter"]
        return found


def frechet_distance(a: FeatureStatistics, b: FeatureStatistics) -> float:
    r"""The squared Fréchet distance, as it is usually reported.

    .. math:: \|\mu_1 - \mu_2\|^2 + \mathrm{tr}\,\Sigma_1 + \mathrm{tr}\,\Sigma_2 - 2 \sum_i \sigma_i

    with the singular values of :math:`\Lambda_1^{1/2} U_1^\top U_2 \Lambda_2^{1/2}`, where
    :math:`\Sigma = U \Lambda U^\top`: their squares are the eigenvalues of :math:`\Sigma_1 \Sigma_2`. They are as
    accurate as the covariances, even if those are singular, unlike roots of the product's own eigenvalues near 0.
    """
    _check_alike(a, b)
    first, second = a.covariance, b.covariance
    singular = torch.linalg.svdvals(_root(first).T @ _root(second))
    distance = (a.mean - b.mean).square().sum() + first.trace() + second.trace() - 2 * singular.sum()
    return max(float(distance), 0.0)  # for equal sets it may be slightly negative due to rounding


def _root(covariance: Tensor) -> Tensor:  # (d, d) -> (d, r)
    r""":math:`U \Lambda^{1/2}`, without the directions that contain only rounding errors."""
    values, vectors = torch.linalg.eigh(covariance)
    kept = values > len(values) * torch.finfo(values.dtype).eps * values[-1]
    root: Tensor = vectors[:, kept] * values[kept].sqrt()
    return root


def _check_alike(a: FeatureStatistics, b: FeatureStatistics) -> None:
    if (a.features, a.dim) != (b.features, b.dim):
        raise ValueError(
            f"the features are {a.features} of {a.dim} dimensions and {b.features} of {b.dim}, expected the same; "
            f"use the same network for both sets"
        )


def frechet_notes(a: FeatureStatistics, b: FeatureStatistics) -> list[str]:
    """Notes about a distance: a warning if there were too few images."""
    fewest = min(a.n, b.n)
    if fewest > a.dim:
        return []
    return [
        f"{fewest} images are too few for covariances of {a.dim} features, which are singular: the distance is too "
        f"large, and comparable only with distances of the same number of images; use more than {a.dim}, or better "
        f"ten times as many"
    ]


def distance_name(features: str) -> str:
    """The name of the distance: fid for the Inception features, fd-FEATURES for others."""
    return "fid" if features == INCEPTION else f"fd-{features}"


class RandomConvolutions:
    r"""Features from three convolutions with fixed random weights: fast, even for small grey images on a CPU.

    Images are resized to 32 x 32. Each layer halves the resolution and applies a ReLU; means over the quarters of the
    last one give 4 x 64 features. They describe textures and coarse shape and are not trained, so distances order sets
    that differ by blur, noise or missing detail, but say little about the content of images.

    Arguments:
        device: the device for the computation.
    """

    name = "random-convolutions"
    dim = 256

    def __init__(self, device: torch.device | str = "cpu") -> None:
        self.device = torch.device(device)
        # This generator is frozen: NumPy guarantees the same numbers in all versions, and so the same features.
        random = np.random.RandomState(20151205)
        self.layers = []
        for width, channels, side in ((3, 16, 5), (16, 32, 3), (32, 64, 3)):
            scale = (2 / (width * side * side)) ** 0.5
            weight = random.standard_normal((channels, width, side, side)) * scale
            self.layers.append(torch.from_numpy(weight).float().to(self.device))

    @torch.no_grad()
    def __call__(self, pictures: Tensor) -> Tensor:  # uint8 (n, 1 or 3, H, W) -> (n, 256)
        check_pictures(pictures)
        x = (pictures.to(self.device).float() - 128) / 128
        x = interpolate(x, (32, 32), mode="bilinear", antialias=True).expand(-1, 3, -1, -1)
        with torch.autocast(self.device.type, enabled=False):
            for weight in self.layers:
                x = conv2d(x, weight, stride=2, padding=weight.shape[-1] // 2).relu()
        return avg_pool2d(x, 2).flatten(1)


FEATURES: Mapping[str, Callable[[Callable[[], Path], torch.device | str], FeatureNetwork]] = {
    Inception.name: lambda find_weights, device: Inception(find_weights(), device),
    RandomConvolutions.name: lambda _, device: RandomConvolutions(device),
}
"""Feature networks by name: made from a function that finds the file of Inception's weights, and the device."""


def feature_network(
    name: str,
    *,
    cache: str | Path,
    weights: str | Path | None = None,
    device: torch.device | str = "cpu",
    download: bool = False,
    announce: Announce = print,
) -> FeatureNetwork:
    """A feature network by name.

    Arguments:
        name: one of `FEATURES`.
        cache, weights, download, announce: as for `find_inception`; only the Inception network needs them.
        device: the device for the computation.
    """
    if name not in FEATURES:
        raise ValueError(f"there are no features {name!r}, expected one of {', '.join(FEATURES)}")
    return FEATURES[name](partial(find_inception, weights, cache, download=download, announce=announce), device)
