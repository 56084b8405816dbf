"""Several quantizers one above the other, as the levels of a hierarchy have them, and what they make of a batch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from sqvae.distributions import layer_perplexities
from sqvae.quantizers.contract import CodebookQuantizer, Quantized, Quantizer


@dataclass(frozen=True)
class QuantizedLevels:
    """The output of all levels of a hierarchy. Scalars are sums over the levels, and otherwise as in
    :class:`~sqvae.quantizers.Quantized`."""

    levels: tuple[Quantized, ...]
    """The output of each level's quantizer, the coarsest first."""

    @property
    def z_q(self) -> tuple[Tensor, ...]:
        """The quantized latents of each level."""
        return tuple(level.z_q for level in self.levels)

    @property
    def codes(self) -> tuple[Tensor, ...]:
        """The codes of each level, (batch, ...)."""
        return tuple(level.codes for level in self.levels)

    @property
    def loss(self) -> Tensor:
        """(): the quantizers' part of the training objective."""
        return torch.stack([level.loss for level in self.levels]).sum()

    @property
    def divergence(self) -> Tensor:
        """(): the latents' part of the bound on the log-likelihood, constants included."""
        return torch.stack([level.divergence for level in self.levels]).sum()

    @property
    def regularizer(self) -> Tensor:
        """(): the part of the loss that pulls encodings and codes together."""
        return torch.stack([level.regularizer for level in self.levels]).sum()

    @property
    def entropy(self) -> Tensor:
        """(): the entropy of the assignment probabilities."""
        return torch.stack([level.entropy for level in self.levels]).sum()

    @property
    def counts(self) -> Tensor:
        """(K,): the number of positions that took each code, level after level."""
        return torch.cat([level.counts for level in self.levels])

    @property
    def mean_probabilities(self) -> Tensor:
        """(K,): the mean assignment probabilities, level after level."""
        return torch.cat([level.mean_probabilities for level in self.levels])

    @property
    def variance(self) -> Tensor | None:
        """(levels,): the mean variance of each level; None if a level has none."""
        means = [level.variance.mean() for level in self.levels if level.variance is not None]
        return torch.stack(means) if len(means) == len(self.levels) else None

    @property
    def concentration(self) -> Tensor | None:
        """(): the mean concentration of the levels; None if a level has none."""
        found = [level.concentration for level in self.levels if level.concentration is not None]
        return torch.stack(found).mean() if len(found) == len(self.levels) else None

    @property
    def layer_sizes(self) -> tuple[int, ...]:
        """The number of codes of each layer of each level."""
        return tuple(size for level in self.levels for size in level.layer_sizes or (len(level.counts),) if size)

    @property
    def perplexity(self) -> Tensor:
        """(B,): the perplexity of the codes in this batch, for each layer of each level."""
        return layer_perplexities(self.counts, self.layer_sizes)

    @property
    def soft_perplexity(self) -> Tensor:
        """(B,): the perplexity of the mean assignment probabilities in this batch, likewise."""
        return layer_perplexities(self.mean_probabilities, self.layer_sizes)


def codebook_names(levels: int, layers: int) -> tuple[str, ...]:
    """The name of each codebook in the order of counts: "layer 2", or in a hierarchy "level 1" or "level 1, layer 2".

    Arguments:
        levels: the number of levels; 1 without a hierarchy.
        layers: the number of layers of each level.
    """
    if levels == 1:
        return tuple(f"layer {layer}" for layer in range(1, layers + 1))
    each = [""] if layers == 1 else [f", layer {layer}" for layer in range(1, layers + 1)]
    return tuple(f"level {level}{layer}" for level in range(1, levels + 1) for layer in each)


class LevelQuantizers(nn.Module):
    """The quantizers of a hierarchy, one for each level, the coarsest first.

    Arguments:
        levels: the quantizers; each may have layers.
    """

    def __init__(self, levels: Sequence[Quantizer]) -> None:
        super().__init__()
        if not levels or not all(isinstance(level, Quantizer) for level in levels):
            kinds = ", ".join(type(level).__name__ for level in levels) or "none"
            raise TypeError(f"a hierarchy needs one quantizer for each level, as in LATENTS; got {kinds}")
        self.parts = nn.ModuleList(levels)

    @property
    def levels(self) -> tuple[Quantizer, ...]:
        """The quantizer of each level."""
        return tuple(cast("Sequence[Quantizer]", self.parts))

    @property
    def codebook_sizes(self) -> tuple[int, ...]:
        """The number of codes of each layer of each level."""
        return tuple(size for level in self.levels for size in level.codebook_sizes)

    @property
    def books(self) -> Sequence[CodebookQuantizer]:
        """The parts that have a codebook: one for each layer of each level."""
        return tuple(book for level in self.levels for book in level.books)

    @property
    def relaxes(self) -> bool:
        """Whether a level's z_q in training is a mixture of codes rather than a single code."""
        return any(level.relaxes for level in self.levels)
