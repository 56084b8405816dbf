"""Metrics of reconstruction and codebook usage over a dataset."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from sqvae.distributions import layer_perplexities
from sqvae.metrics.comparison import Comparison

OF_CODEBOOK = "perplexity of "
"""How the names of the perplexities of single codebooks begin, of which there is one for each layer of each level."""

KINDS = ("layer", "level")
"""What a codebook may belong to."""


def codebooks_in(measures: Mapping[str, Any]) -> dict[str, float]:
    """The perplexity of each codebook by its name, such as "layer 2" or "level 1", by what was measured; nothing for a
    quantizer with a single one."""
    begins = tuple(OF_CODEBOOK + kind for kind in KINDS)
    return {name.removeprefix(OF_CODEBOOK): value for name, value in measures.items() if name.startswith(begins)}


def layers_in(measures: Mapping[str, Any]) -> list[float]:
    """The perplexity of each layer of each level, likewise."""
    return list(codebooks_in(measures).values())


class ReconstructionTotals:
    """Sums over the batches of a dataset, from which metrics are computed.

    All metrics are of the whole dataset and independent of its division into batches, except one: `batch_perplexity` is
    the mean of the perplexities of single batches, as it is often reported, and is smaller for smaller batches.

    Arguments:
        codebook_sizes: the number of codes of each layer: a single number for most quantizers, none if there are no
            codes. A perplexity is then the geometric mean over the layers.
        comparison: the comparison of data with reconstructions.
        names: the name of each layer, such as "level 1"; by default "layer 1" and so on.
    """

    def __init__(
        self, codebook_sizes: Sequence[int], comparison: Comparison, names: Sequence[str] | None = None
    ) -> None:
        self.comparison = comparison
        self.names = [f"layer {number + 1}" for number in range(len(codebook_sizes))] if names is None else list(names)
        self.codebook_sizes = tuple(codebook_sizes)
        self.counts = torch.zeros(sum(codebook_sizes), dtype=torch.float64)
        self.probabilities = torch.zeros(sum(codebook_sizes), dtype=torch.float64)
        self.sums = torch.zeros(5, dtype=torch.float64)  # values, examples; losses, bound
        self.batches = torch.zeros(2, dtype=torch.float64)  # perplexities, their number

    def add(
        self,
        x: Tensor,
        reconstruction: Tensor,
        *,
        reconstruction_loss: Tensor,
        latent_loss: Tensor,
        bound: Tensor,
        counts: Tensor,
        mean_probabilities: Tensor,
    ) -> None:  # (batch, ...), (batch, ...), (), (), (), (K,), (K,)
        """Add one batch: data and reconstruction, losses and bound per example, and codebook usage."""
        examples = x.shape[0]
        values = self.comparison.add(x, reconstruction)
        means = torch.stack([value.detach().float().cpu() for value in (reconstruction_loss, latent_loss, bound)])
        own = torch.tensor([values, examples], dtype=torch.float64)
        self.sums += torch.cat((own, examples * means.double()))
        if len(self.counts):
            counts = counts.cpu().double()
            self.counts += counts
            self.probabilities += counts.sum() * mean_probabilities.detach().cpu().double()
            self.batches += torch.tensor([self._perplexity(counts), 1.0], dtype=torch.float64)

    def tensors(self) -> list[Tensor]:
        """All sums, to be added up over processes in place."""
        return [self.comparison.sums, self.counts, self.probabilities, self.sums, self.batches]

    def measures(self, *, detailed: bool = False) -> dict[str, float]:
        """The metrics by name."""
        values, examples, reconstruction_loss, latent_loss, bound = self.sums.tolist()
        found = self.comparison.measures(detailed=detailed) | {
            "dimensions": values / examples,
            "reconstruction_loss": reconstruction_loss / examples,
            "latent_loss": latent_loss / examples,
            "bound_nats": bound / examples,
            "bits_per_dimension": -bound / max(values, 1) / math.log(2),
        }
        if len(self.counts):
            perplexities, batches = self.batches.tolist()
            found |= {
                "perplexity": self._perplexity(self.counts),
                "soft_perplexity": self._perplexity(self.probabilities),
                "batch_perplexity": perplexities / batches,
                "codes_used": float((self.counts > 0).sum()),
            }
        if len(self.codebook_sizes) > 1:
            each = layer_perplexities(self.counts, self.codebook_sizes)
            found |= {f"{OF_CODEBOOK}{name}": value for name, value in zip(self.names, each.tolist(), strict=True)}
        return found

    def _perplexity(self, counts: Tensor) -> float:  # (K,)
        """The perplexity, or the geometric mean of those of the layers."""
        return float(layer_perplexities(counts, self.codebook_sizes).log().mean().exp())
