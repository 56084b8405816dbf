"""Fréchet distances between real images and those that a model generates or reconstructs."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from sqvae.config import check_name
from sqvae.data import Pictures, Progress
from sqvae.metrics import FeatureNetwork, FeatureStatistics, distance_name, frechet_distance, frechet_notes
from sqvae.runs import Generator
from sqvae.tokenizers.manipulation import interpolated, neighbour_table
from sqvae.training import stream_seed

TOGETHER = 64
"""The number of images in a batch."""

if TYPE_CHECKING:
    from sqvae.modalities.images.tokenizer import ImageTokenizer


@dataclass(frozen=True)
class Makers:
    """The model, the real images and all else that the compared sets of images are made from."""

    tokenizer: "ImageTokenizer"
    pictures: Pictures
    """The real images. Each compared set has as many."""
    generator: Generator | None = None
    counts: Tensor | None = None
    """The number of times that each code occurs in the training set, (K,); with layers that of each, (layers, K)."""
    seed: int = 0

    def __len__(self) -> int:
        return len(self.pictures)

    def batches(self) -> Iterator[range]:
        """The indices of the real images, in batches."""
        return (range(start, min(start + TOGETHER, len(self))) for start in range(0, len(self), TOGETHER))

    def latents(self, indices: range) -> Any:  # -> (n, h, w), (n, h, w, layers), or (n, dim, ...)
        """The latents of real images: codes, one tensor for each level if there are several, or the means of a
        continuous latent."""
        return self.tokenizer.latents(self.pictures.take(indices))

    def random(self, *path: int | str) -> torch.Generator:
        """A random generator for one purpose, seeded by the seed and a path."""
        return torch.Generator().manual_seed(stream_seed(self.seed, *path))


def _reconstructions(made: Makers) -> Iterator[Tensor]:
    return (made.latents(indices) for indices in made.batches())


def _neighbours(k: int) -> Callable[[Makers], Iterator[Tensor]]:
    def replaced(made: Makers) -> Iterator[Tensor]:
        table = neighbour_table(made.tokenizer, k)
        return (table[made.latents(indices)] for indices in made.batches())

    return replaced


def _interpolations(made: Makers) -> Iterator[Tensor]:
    """Interpolations between each image and another, each with its own ratio."""
    random = made.random("interpolation")
    others = torch.randperm(len(made), generator=random)
    ratios = torch.rand(len(made), generator=random)
    for indices in made.batches():
        own = slice(indices.start, indices.stop)
        first, second = made.pictures.take(indices), made.pictures.take(others[own])
        yield _between(made.tokenizer, first, second, ratios[own])


def _between(tokenizer: "ImageTokenizer", first: Tensor, second: Tensor, ratios: Tensor) -> Tensor:
    if tokenizer.is_discrete:
        return interpolated(tokenizer, first, second, ratios)
    a, b = tokenizer.latents(first), tokenizer.latents(second)
    return torch.lerp(a, b, ratios.to(a).view(-1, *[1] * (a.ndim - 1)))


def _samples(made: Makers) -> Iterator[Tensor]:
    """Samples from the prior, with classes as frequent as in training. The prior of a continuous latent is the
    standard normal distribution."""
    if not made.tokenizer.is_discrete:
        random = made.random("samples")
        shape = made.latents(range(1)).shape[1:]
        return (torch.randn(len(indices), *shape, generator=random) for indices in made.batches())
    if made.generator is None:
        raise ValueError("samples need a prior: train one with `sqvae train-prior RUN`")
    sample = partial(made.generator.sample, seed=made.seed, batch=TOGETHER, classes=_drawn_classes(made))
    return (sample(len(indices), first=indices.start) for indices in made.batches())


def _drawn_classes(made: Makers) -> list[str] | None:
    """A class for each image, if the prior has classes and their frequencies."""
    assert made.generator is not None
    names, counts = made.generator.class_names, made.generator.class_counts
    if not counts:
        return None
    weights = torch.tensor(counts, dtype=torch.float64)
    drawn = torch.multinomial(weights, len(made), replacement=True, generator=made.random("classes"))
    return [names[index] for index in drawn.tolist()]


def _independent(weights: Callable[[Makers], Tensor], name: str) -> Callable[[Makers], Iterator[Tensor]]:
    """Codes drawn independently of each other, by weights (K,), or (layers, K) if each layer has its own."""

    def drawn(made: Makers) -> Iterator[Tensor]:
        random = made.random(name)
        shape = made.latents(range(1)).shape[1:]
        own = weights(made)
        for indices in made.batches():
            number = len(indices) * shape.numel() // own.shape[:-1].numel()
            codes = torch.multinomial(own, number, replacement=True, generator=random)
            yield codes.movedim(0, -1).reshape(len(indices), *shape)

    return drawn


def _counted(made: Makers) -> Tensor:
    if made.counts is None:
        raise ValueError("samples-histogram needs the codes of the training set")
    return made.counts.double()


NEIGHBOURS = {f"neighbor-{k}": k for k in (3, 5, 10)}

SETS: Mapping[str, Callable[[Makers], Iterator[Tensor]]] = {
    "reconstruction": _reconstructions,
    "samples": _samples,
    "samples-histogram": _independent(_counted, "histogram"),
    "samples-uniform": _independent(lambda made: torch.ones(made.tokenizer.codebook_size), "uniform"),
    **{name: _neighbours(k) for name, k in NEIGHBOURS.items()},
    "interpolation": _interpolations,
}
"""The sets that are compared with real images, by name. Each function yields the codes to decode, batch by batch."""

BASELINES = ("samples-histogram", "samples-uniform")
"""Baselines for the samples."""

OF_CONTINUOUS = ("reconstruction", "samples", "interpolation")
"""The sets that exist for a model without codes, too."""

OF_LEVELS = ("reconstruction",)
"""The sets that exist for a model with several levels of codes."""


OF_LAYERS = ("reconstruction", "samples", *BASELINES)
"""The sets that exist for a model with layers, too: neighbours and interpolations take one code for each position."""


def sets_of(tokenizer: "ImageTokenizer") -> list[str]:
    """The names of the sets that exist for a model."""
    if not tokenizer.is_discrete:
        return list(OF_CONTINUOUS)
    if tokenizer.levels > 1:
        return list(OF_LEVELS)
    if tokenizer.layers is not None:
        return list(OF_LAYERS)
    return [name for name in SETS if NEIGHBOURS.get(name, 0) < tokenizer.codebook_size]


def frechet_distances(
    made: Makers,
    network: FeatureNetwork,
    sets: list[str],
    *,
    key: str,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> tuple[dict[str, float], list[str]]:
    """The Fréchet distance of each set from the real images, by name, and notes about them.

    Arguments:
        made: the model and the real images.
        network: computes the features.
        sets: names of :data:`SETS`.
        key: identifies the real images; it is equal only for equal images.
        cache: a folder to keep the statistics of real images in; None keeps them nowhere.
        progress: a function that is called with the current task, the number of images that are done and their total.
    """
    for name in sets:
        check_name(name, SETS, "the set")
        if name not in sets_of(made.tokenizer):
            there = ", ".join(sets_of(made.tokenizer))
            raise ValueError(
                f"this model has no codes, or too few of them, or several at each position, for {name}; choose from "
                f"{there}"
            )
    real = _real(made, network, key, cache, progress)
    found, notes = {}, []
    for name in sets:
        statistics = FeatureStatistics(network.name, network.dim)
        for pictures in made_by(made, name):
            statistics.update(network(_as_bytes(pictures)))
            if progress is not None:
                progress(f"computing features of {name}", statistics.n, len(made))
        found[f"{distance_name(network.name)} {name}"] = frechet_distance(real, statistics)
        notes = frechet_notes(real, statistics)
    return found, notes


def made_by(made: Makers, name: str) -> Iterator[Tensor]:  # -> (n, C, H, W), in [0, 1]
    """The images of a set, batch by batch."""
    tokenizer = made.tokenizer
    return (tokenizer.medium.shown_output(tokenizer.decode(latents)) for latents in SETS[name](made))


def _real(
    made: Makers, network: FeatureNetwork, key: str, cache: Path | None, progress: Progress | None
) -> FeatureStatistics:
    path = None if cache is None else cache / "statistics" / f"{key}-{len(made)}-{network.name}.safetensors"
    if path is not None:
        with suppress(ValueError, FileNotFoundError):  # a damaged file is computed again
            return FeatureStatistics.load(path)
    statistics = FeatureStatistics(network.name, network.dim)
    medium = made.tokenizer.medium
    for indices in made.batches():
        x = medium.model_input(made.pictures.take(indices), made.tokenizer.device)
        statistics.update(network(_as_bytes(medium.shown(x))))
        if progress is not None:
            progress("computing features of real images", statistics.n, len(made))
    if path is not None:
        with suppress(OSError):  # an unwritable cache only costs time
            path.parent.mkdir(parents=True, exist_ok=True)
            statistics.save(path)
    return statistics


def _as_bytes(pictures: Tensor) -> Tensor:  # (n, C, H, W), in [0, 1] -> uint8
    return (pictures.clamp(0, 1) * 255).round().byte()
