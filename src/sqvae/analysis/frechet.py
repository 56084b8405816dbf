"""How far what a model makes is from real pictures: Fréchet distances of whole sets."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from sqvae.config import check_name
from sqvae.data import Pictures, Progress
from sqvae.metrics import FeatureNetwork, FeatureStatistics, distance_name, frechet_distance, frechet_notes
from sqvae.runs import Generator
from sqvae.tokenizers.manipulation import interpolated, neighbour_table
from sqvae.training import stream_seed

TOGETHER = 64
"""Pictures that are made and looked at together."""

if TYPE_CHECKING:
    from sqvae.modalities.images.tokenizer import ImageTokenizer


@dataclass(frozen=True)
class Makers:
    """All that pictures are made from."""

    tokenizer: "ImageTokenizer"
    pictures: Pictures
    """Real ones, of which as many are made."""
    generator: Generator | None = None
    counts: Tensor | None = None
    """(K,): how often each code occurs in training."""
    seed: int = 0

    def __len__(self) -> int:
        return len(self.pictures)

    def batches(self) -> Iterator[range]:
        """Indices of the real pictures."""
        return (range(start, min(start + TOGETHER, len(self))) for start in range(0, len(self), TOGETHER))

    def latents(self, indices: range) -> Tensor:  # -> (n, h, w), or (n, dim, ...)
        """Of real pictures: codes, or the means of a continuous latent."""
        return self.tokenizer.latents(self.pictures.take(indices))

    def random(self, *path: int | str) -> torch.Generator:
        """A source of random numbers of one's own."""
        return torch.Generator().manual_seed(stream_seed(self.seed, *path))


def _reconstructions(made: Makers) -> Iterator[Tensor]:
    return (made.latents(indices) for indices in made.batches())


def _neighbours(k: int) -> Callable[[Makers], Iterator[Tensor]]:
    def replaced(made: Makers) -> Iterator[Tensor]:
        table = neighbour_table(made.tokenizer, k)
        return (table[made.latents(indices)] for indices in made.batches())

    return replaced


def _interpolations(made: Makers) -> Iterator[Tensor]:
    """Between each picture and another, at a place of its own."""
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
    """From the prior, of classes as often as they occur; that of a continuous latent is the normal distribution."""
    if not made.tokenizer.is_discrete:
        random = made.random("samples")
        shape = made.latents(range(1)).shape[1:]
        return (torch.randn(len(indices), *shape, generator=random) for indices in made.batches())
    if made.generator is None:
        raise ValueError("samples need a prior: train one with `sqvae train-prior RUN`")
    sample = partial(made.generator.sample, seed=made.seed, batch=TOGETHER, classes=_drawn_classes(made))
    return (sample(len(indices), first=indices.start) for indices in made.batches())


def _drawn_classes(made: Makers) -> list[str] | None:
    """One for each picture, where the prior knows classes and how often they occur."""
    assert made.generator is not None
    names, counts = made.generator.class_names, made.generator.class_counts
    if not counts:
        return None
    weights = torch.tensor(counts, dtype=torch.float64)
    drawn = torch.multinomial(weights, len(made), replacement=True, generator=made.random("classes"))
    return [names[index] for index in drawn.tolist()]


def _independent(weights: Callable[[Makers], Tensor], name: str) -> Callable[[Makers], Iterator[Tensor]]:
    """Codes drawn one by one, whatever the others are."""

    def drawn(made: Makers) -> Iterator[Tensor]:
        random = made.random(name)
        shape = made.latents(range(1)).shape[1:]
        for indices in made.batches():
            codes = torch.multinomial(weights(made), len(indices) * shape.numel(), replacement=True, generator=random)
            yield codes.view(len(indices), *shape)

    return drawn


def _counted(made: Makers) -> Tensor:
    if made.counts is None:
        raise ValueError("samples by the histogram need the codes of the training set")
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
"""What is compared with real pictures, by name: the codes that it is decoded from, batch by batch."""

BASELINES = ("samples-histogram", "samples-uniform")
"""What samples are to be better than."""

OF_CONTINUOUS = ("reconstruction", "samples", "interpolation")
"""Those that a model without codes has, too."""


def sets_of(tokenizer: "ImageTokenizer") -> list[str]:
    """Those that a model has."""
    if not tokenizer.is_discrete:
        return list(OF_CONTINUOUS)
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
    """The distance of each set from the real pictures, under its own name; and what is to be said beside them.

    Arguments:
        made: what pictures are made from, and the real ones.
        network: makes features.
        sets: names of :data:`SETS`.
        key: of the set that the real pictures are of, which is equal only for equal ones.
        cache: where the statistics of real pictures are kept; None: nowhere.
        progress: called with what is being done, how many pictures are done and how many there are.
    """
    for name in sets:
        check_name(name, SETS, "the set")
        if name not in sets_of(made.tokenizer):
            there = ", ".join(sets_of(made.tokenizer))
            raise ValueError(f"this model has too few codes for {name}, or none; it has {there}")
    real = _real(made, network, key, cache, progress)
    found, notes = {}, []
    for name in sets:
        statistics = FeatureStatistics(network.name, network.dim)
        for pictures in made_by(made, name):
            statistics.update(network(_as_bytes(pictures)))
            if progress is not None:
                progress(f"looking at {name}", statistics.n, len(made))
        found[f"{distance_name(network.name)} {name}"] = frechet_distance(real, statistics)
        notes = frechet_notes(real, statistics)
    return found, notes


def made_by(made: Makers, name: str) -> Iterator[Tensor]:  # -> (n, C, H, W), in [0, 1]
    """One of the sets, to look at, batch by batch."""
    tokenizer = made.tokenizer
    return (tokenizer.medium.shown_output(tokenizer.decode(latents)) for latents in SETS[name](made))


def _real(
    made: Makers, network: FeatureNetwork, key: str, cache: Path | None, progress: Progress | None
) -> FeatureStatistics:
    path = None if cache is None else cache / "statistics" / f"{key}-{len(made)}-{network.name}.safetensors"
    if path is not None:
        with suppress(ValueError, FileNotFoundError):  # a damaged file is made again
            return FeatureStatistics.load(path)
    statistics = FeatureStatistics(network.name, network.dim)
    medium = made.tokenizer.medium
    for indices in made.batches():
        x = medium.model_input(made.pictures.take(indices), made.tokenizer.device)
        statistics.update(network(_as_bytes(medium.shown(x))))
        if progress is not None:
            progress("looking at real pictures", statistics.n, len(made))
    if path is not None:
        with suppress(OSError):  # a cache that can't be written to costs time, and nothing else
            path.parent.mkdir(parents=True, exist_ok=True)
            statistics.save(path)
    return statistics


def _as_bytes(pictures: Tensor) -> Tensor:  # (n, C, H, W), in [0, 1] -> uint8
    return (pictures.clamp(0, 1) * 255).round().byte()
