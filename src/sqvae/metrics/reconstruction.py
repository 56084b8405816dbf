"""Metrics of reconstruction and codebook usage over a dataset."""

import math

import torch
from torch import Tensor

from sqvae.distributions import perplexity
from sqvae.metrics.comparison import Comparison


class ReconstructionTotals:
    """Sums over the batches of a dataset, from which metrics are computed.

    All metrics are of the whole dataset and independent of its division into batches, except one: `batch_perplexity` is
    the mean of the perplexities of single batches, as it is often reported, and is smaller for smaller batches.

    Arguments:
        codebook_size: the number of codes, 0 if there are none.
        comparison: the comparison of data with reconstructions.
    """

    def __init__(self, codebook_size: int, comparison: Comparison) -> None:
        self.comparison = comparison
        self.counts = torch.zeros(codebook_size, dtype=torch.float64)
        self.probabilities = torch.zeros(codebook_size, dtype=torch.float64)
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
            self.batches += torch.tensor([float(perplexity(counts)), 1.0], dtype=torch.float64)

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
                "perplexity": float(perplexity(self.counts)),
                "soft_perplexity": float(perplexity(self.probabilities)),
                "batch_perplexity": perplexities / batches,
                "codes_used": float((self.counts > 0).sum()),
            }
        return found
