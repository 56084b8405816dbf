"""Encoder, quantizer, decoder and likelihood, and the bound that they make."""

import math
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from sqvae.distributions.checks import check_choice, check_size
from sqvae.likelihoods import Fit, Likelihood
from sqvae.networks.modes import evaluating
from sqvae.quantizers import GaussianLatent, Quantized, Quantizer, Stage

LatentTerms = Literal["sum", "mean"]


@dataclass(frozen=True)
class Bound:
    """A lower bound on the log-likelihood of the data, all constants included."""

    nats: Tensor
    """(): per sample, averaged over the batch."""
    dimensions: float | Tensor
    """D: the numbers, or labels, that make up a sample; on average, where not all of them are known."""

    @property
    def bits_per_dimension(self) -> Tensor:
        """(): the same as a cost, in bits for each number of a sample; lower is better.

        For continuous data it refers to the data's own unit: pictures of 256 levels scaled to [0, 1] have 8 bits more.
        """
        return -self.nats / (self.dimensions * math.log(2))


@dataclass(frozen=True)
class Objective:
    """One evaluation of the objective, with its parts."""

    output: Tensor = field(repr=False)
    """The decoder's output."""
    fit: Fit
    """How it explains the data."""
    quantized: Quantized
    """What the quantizer gave."""
    dimensions: float | Tensor
    latent_weight: float = 1.0
    """What the quantizer's terms count in the loss."""

    @property
    def loss(self) -> Tensor:
        """(): what training minimises, per sample."""
        return self.fit.loss + self.latent_weight * self.quantized.loss

    @property
    def bound(self) -> Bound:
        """The bound at what was decoded: an estimate of it where that was a sample of the posterior."""
        return Bound(self.fit.log_likelihood - self.quantized.divergence, self.dimensions)

    @property
    def terms(self) -> dict[str, Tensor]:
        """The parts by name: what adds up to the loss, and what adds up to the bound."""
        return {
            "loss": self.loss,
            "reconstruction": self.fit.loss,
            "latent": self.quantized.loss,
            "regularizer": self.quantized.regularizer,
            "entropy": self.quantized.entropy,
            "log_likelihood": self.fit.log_likelihood,
            "divergence": self.quantized.divergence,
            "bound": self.bound.nats,
        }


class LatentModel(nn.Module):
    r"""A model of data through a latent map.

    .. math:: \log p_\theta(x) \ge \mathbb E[\log p_\theta(x \mid Z_q)] - \mathcal D,

    where :math:`\mathcal D`, the quantizer's divergence, is what the bound pays for the latent. Use :class:`SQVAE` or
    :class:`VAE`.

    Arguments:
        latent_terms: how the quantizer's terms enter the loss. As a ``"sum"`` over the numbers of a latent map, as the
            bound has it; or as their ``"mean"`` beside a mean over the data's numbers, as the first implementations of
            VQ-VAE have it. In the unit of the sum that is a weight of :math:`D / (2 d_z d_b)`: with a Gaussian
            likelihood whose variance is fixed at :math:`\sigma^2`,

            .. math:: \mathcal L = \frac D2 \left( \frac{\mathrm{MSE}}{\sigma^2}
                      + \frac{1}{d_z d_b} \mathcal L_{latent} \right) + \mathrm{const}.
    """

    def __init__(
        self,
        encoder: nn.Module,
        quantizer: Quantizer,
        decoder: nn.Module,
        likelihood: Likelihood,
        *,
        latent_terms: LatentTerms = "sum",
    ) -> None:
        super().__init__()
        check_choice(latent_terms, get_args(LatentTerms), "latent_terms")
        if not isinstance(quantizer, Quantizer):
            raise TypeError(f"the second part must be a quantizer, as in QUANTIZERS; got {_describe(quantizer)}")
        if not isinstance(likelihood, Likelihood):
            raise TypeError(f"the last part must be a likelihood, as in LIKELIHOODS; got {_describe(likelihood)}")
        self.encoder = encoder
        self.quantizer = quantizer
        self.decoder = decoder
        self.likelihood = likelihood
        self.latent_terms: LatentTerms = latent_terms

    def forward(self, x: Tensor, temperature: float | Tensor | Stage = 1.0, *, sample: bool = False) -> Objective:
        """Encode, quantize, decode, and compare with the data.

        Arguments:
            x: (batch, ...), data as the likelihood describes it.
            temperature: of the quantizer's relaxation, or all that a schedule says of a step.
            sample: in ``eval()``, draw from the posterior rather than take its mode.
        """
        z, log_variance = self._encodings(x)
        quantized = self.quantizer(z, temperature, log_variance=log_variance, sample=sample)
        output = self.decoder(quantized.z_q)
        weight = 1.0 if self.latent_terms == "sum" else x[0].numel() / (2 * z[0].numel())
        return Objective(output, self.likelihood(output, x), quantized, self.likelihood.dimensions(x), weight)

    @torch.no_grad()
    def bound(self, x: Tensor, *, samples: int = 1) -> Bound:
        """The reported bound: its mean over draws of exact samples from the posterior, as in ``eval()``."""
        check_size(samples, "samples")
        with evaluating(self):
            draws = [self(x, sample=True).bound.nats for _ in range(samples)]
        return Bound(torch.stack(draws).mean(), self.likelihood.dimensions(x))

    @torch.no_grad()
    def encode(self, x: Tensor) -> Tensor:
        """The likeliest codes of a batch of data, (batch, ...), as in ``eval()``."""
        with evaluating(self):
            z, log_variance = self._encodings(x)
            return self.quantizer.encode(z, log_variance=log_variance)

    @torch.no_grad()
    def encodings(self, x: Tensor) -> Tensor:  # (batch, ...) -> (batch, ..., dim)
        """What the codes are chosen by: continuous, before quantization, as in ``eval()``."""
        with evaluating(self):
            z = self._encodings(x)[0]
            return self.quantizer.project(z.movedim(1, -1) if self.quantizer.channel_first else z)

    @torch.no_grad()
    def decode(self, codes: Tensor) -> Tensor:
        """The likeliest data for a batch of codes, as in ``eval()``."""
        with evaluating(self):
            return self.likelihood.predict(self.decoder(self.quantizer.decode(codes)))

    @torch.no_grad()
    def reconstruct(self, x: Tensor) -> Tensor:
        """Data after a round trip through its codes."""
        return self.decode(self.encode(x))

    def _encodings(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        return encodings_of(self.encoder(self.likelihood.embed(x)), self.quantizer)


def encodings_of(encoded: Any, quantizer: Quantizer) -> tuple[Tensor, Tensor | None]:
    """What an encoder has returned, as z and the log-variance that the quantizer needs, if it does."""
    if not quantizer.needs_log_variance:
        if not isinstance(encoded, Tensor):
            raise ValueError(
                f"{quantizer} takes no log_variance, so the encoder must return z alone, got {_describe(encoded)}"
            )
        return encoded, None
    if isinstance(encoded, Tensor) or len(encoded) != 2:
        raise ValueError(f"{quantizer} needs an encoder that returns (z, log_variance), got {_describe(encoded)}")
    z, log_variance = encoded
    return z, log_variance


def _describe(value: object) -> str:
    return f"the class {value.__name__} itself" if isinstance(value, type) else type(value).__name__


class SQVAE(LatentModel):
    r"""A stochastically quantized VAE, or any other discrete autoencoder: the quantizer makes the difference.

    .. math:: \mathcal L = -\log p_\theta(x \mid Z_q) + \mathcal R_\varphi(Z, Z_q) - H(\hat P_\varphi(Z_q \mid Z))

    Arguments:
        encoder: data (channels first) to encodings; it returns (z, log_variance) for quantizers that need the latter.
        quantizer: one of :data:`sqvae.quantizers.QUANTIZERS`, with ``channel_first=True`` after convolutions.
        decoder: quantized encodings to the likelihood's parameters.
        likelihood: one of :data:`sqvae.likelihoods.LIKELIHOODS`.
        latent_terms: see :class:`LatentModel`.
    """


class VAE(LatentModel):
    r"""A VAE by the same parts: the continuous Gaussian latent stands where the quantizer does.

    .. math:: \mathcal L = -\log p_\theta(x \mid z) + D_{KL}(q_\phi(z \mid x) \parallel \mathcal N(0, I))

    Arguments:
        encoder: data (channels first) to (z, log_variance).
        dim: the dimension of z.
        decoder: latents to the likelihood's parameters.
        likelihood: one of :data:`sqvae.likelihoods.LIKELIHOODS`.
        channel_first: z is (batch, dim, ...) rather than (batch, ..., dim).
    """

    def __init__(
        self,
        encoder: nn.Module,
        dim: int,
        decoder: nn.Module,
        likelihood: Likelihood,
        *,
        channel_first: bool = False,
    ) -> None:
        super().__init__(encoder, GaussianLatent(dim, channel_first=channel_first), decoder, likelihood)
