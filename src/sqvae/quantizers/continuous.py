"""The continuous latent of a VAE, with the interface of a quantizer."""

import torch
from torch import Tensor

from sqvae.distributions.processes import own_normal_like
from sqvae.quantizers.contract import Positions, Quantized, Quantizer, Stage


class GaussianLatent(Quantizer):
    r"""No quantization: a Gaussian posterior around the encoding, and a standard normal prior.

    .. math:: q(z_i \mid x) = \mathcal N(\hat z_i, \mathrm{diag}(e^{h_i})), \qquad
              D_{KL} = \tfrac12 \sum_{ij} \left(\hat z_{ij}^2 + e^{h_{ij}} - h_{ij} - 1\right)

    Its "codes" are the encodings themselves. A latent of one vector per sample is (batch, dim).

    Arguments:
        dim: the dimension of the latent.
        channel_first: whether latent maps are (batch, dim, ...).
    """

    needs_log_variance = True

    def decode(self, codes: Tensor, *, channel_first: bool | None = None) -> Tensor:
        return codes

    def _quantize(self, positions: Positions, scale: Tensor, stage: Stage, sample: bool) -> Quantized:
        mean = positions.vectors
        noise = own_normal_like(mean) if sample else torch.zeros_like(mean)
        divergence = positions.per_sample((mean.square() + scale.exp() - scale - 1).sum(-1) / 2)
        nothing = divergence.detach().new_zeros(())
        return Quantized(
            z_q=positions.as_map(mean + (scale / 2).exp() * noise),
            codes=positions.as_map(mean.detach()),
            loss=divergence,
            divergence=divergence,
            regularizer=divergence,
            entropy=nothing,
            counts=nothing.new_zeros(0),
            mean_probabilities=nothing.new_zeros(0),
            variance=positions.as_map(scale.detach().exp()),
        )

    def _encode(self, positions: Positions, scale: Tensor) -> Tensor:
        return positions.as_map(positions.vectors)

    def _scale(self, log_variance: Tensor | None, positions: Positions, *, optional: bool = False) -> Tensor:
        if log_variance is None and optional:
            return positions.vectors.new_zeros(())
        expected = positions.as_map(positions.vectors).shape
        if log_variance is None or log_variance.shape != expected:
            got = "none" if log_variance is None else f"shape {tuple(log_variance.shape)}"
            raise ValueError(f"log_variance from the encoder must have the shape {tuple(expected)}; got {got}")
        return positions.rows(log_variance, "log_variance")

    def extra_repr(self) -> str:
        return f"dim={self.dim}"
