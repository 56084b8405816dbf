"""Models of an encoder, a quantizer, a decoder and a likelihood, and their evidence lower bound."""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from sqvae.distributions.checks import check_choice, check_size
from sqvae.likelihoods import Fit, Likelihood
from sqvae.networks.modes import evaluating
from sqvae.quantizers import GaussianLatent, Quantized, QuantizedLevels, Quantizer, Stage

LatentTerms = Literal["sum", "mean"]


@dataclass(frozen=True)
class Bound:
    """A lower bound on the log-likelihood of the data, including all constants."""

    nats: Tensor
    """(): the bound per sample, averaged over the batch."""
    dimensions: float | Tensor
    """D: the number of values, or labels, of a sample; the average number if some of them are unknown."""

    @property
    def bits_per_dimension(self) -> Tensor:
        """(): the negative bound in bits per value of a sample; lower is better.

        For continuous data it depends on the unit of the data: for images with 256 levels scaled to [0, 1], add 8 bits.
        """
        return -self.nats / (self.dimensions * math.log(2))


@dataclass(frozen=True)
class Objective:
    """One evaluation of the objective, with its terms."""

    output: Tensor = field(repr=False)
    """The decoder's output."""
    fit: Fit
    """How well it explains the data."""
    quantized: Quantized | QuantizedLevels
    """The quantizer's result, or those of all levels of a hierarchy."""
    dimensions: float | Tensor
    latent_weight: float = 1.0
    """The weight of the quantizer's terms in the loss."""

    @property
    def loss(self) -> Tensor:
        """(): the loss to minimise, per sample."""
        return self.fit.loss + self.latent_weight * self.quantized.loss

    @property
    def bound(self) -> Bound:
        """The bound for the decoded latent: an estimate if that was a sample of the posterior."""
        return Bound(self.fit.log_likelihood - self.quantized.divergence, self.dimensions)

    @property
    def terms(self) -> dict[str, Tensor]:
        """The terms by name: those of the loss, and those of the bound."""
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
    r"""A latent variable model of data.

    .. math:: \log p_\theta(x) \ge \mathbb E[\log p_\theta(x \mid Z_q)] - \mathcal D,

    where :math:`\mathcal D`, the quantizer's divergence, is the cost of the latent in the bound. Which model it is
    depends on the quantizer: an SQ-VAE, a VQ-VAE, or a VAE with a continuous latent.

    Arguments:
        encoder: maps data (channels first) to encodings; returns (z, log_variance) for quantizers that need the latter.
        quantizer: one of :data:`sqvae.quantizers.LATENTS`, with ``channel_first=True`` after convolutions.
        decoder: maps quantized encodings to the likelihood's parameters.
        likelihood: one of :data:`sqvae.likelihoods.LIKELIHOODS`.
        latent_terms: how the quantizer's terms enter the loss: as a ``"sum"`` over the values of a latent map, as in
            the bound, or as their ``"mean"`` beside a mean over the values of the data, as in the first implementations
            of VQ-VAE. The mean equals the sum with a weight of :math:`D / (2 d_z d_b)`: with a Gaussian likelihood
            whose variance is fixed at :math:`\sigma^2`,

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
            raise TypeError(f"the second part must be a quantizer, as in LATENTS; got {_describe(quantizer)}")
        check_likelihood(likelihood)
        self.encoder = encoder
        self.quantizer = quantizer
        self.decoder = decoder
        self.likelihood = likelihood
        self.latent_terms: LatentTerms = latent_terms

    def forward(self, x: Tensor, temperature: float | Tensor | Stage = 1.0, *, sample: bool = False) -> Objective:
        """Encode, quantize, decode, and compute the objective.

        Arguments:
            x: (batch, ...), data as the likelihood describes it.
            temperature: the temperature of the relaxation, or the stage of a schedule.
            sample: in ``eval()``, sample from the posterior instead of taking its mode.
        """
        z, log_variance = self._encodings(x)
        quantized = self.quantizer(z, temperature, log_variance=log_variance, sample=sample)
        output = self.decoder(quantized.z_q)
        weight = 1.0 if self.latent_terms == "sum" else x[0].numel() / (2 * z[0].numel())
        fit = self.likelihood(output, x, quantized.groups)
        return Objective(output, fit, quantized, self.likelihood.dimensions(x), weight)

    @torch.no_grad()
    def bound(self, x: Tensor, *, samples: int = 1) -> Bound:
        """The bound to report: its mean over exact samples from the posterior, as in ``eval()``."""
        return mean_bound(self, x, samples)

    @torch.no_grad()
    def encode(self, x: Tensor) -> Tensor:
        """The most probable codes of a batch of data, (batch, ...), as in ``eval()``."""
        with evaluating(self):
            z, log_variance = self._encodings(x)
            return self.quantizer.encode(z, log_variance=log_variance)

    @torch.no_grad()
    def encodings(self, x: Tensor) -> Tensor:  # (batch, ...) -> (batch, ..., dim)
        """The continuous encodings before quantization, as in ``eval()``."""
        with evaluating(self):
            z = self._encodings(x)[0]
            return self.quantizer.project(z.movedim(1, -1) if self.quantizer.channel_first else z)

    @torch.no_grad()
    def decode(self, codes: Tensor) -> Tensor:
        """The most probable data for a batch of codes, as in ``eval()``."""
        with evaluating(self):
            return self.likelihood.predict(self.decoder(self.quantizer.decode(codes)))

    @torch.no_grad()
    def reconstruct(self, x: Tensor) -> Tensor:
        """The reconstruction of data from its codes."""
        return self.decode(self.encode(x))

    def with_networks(self, change: Callable[[nn.Module], nn.Module]) -> "LatentModel":
        """The same model with other networks: what `change` makes of the encoder and of the decoder."""
        return LatentModel(change(self.encoder), self.quantizer, change(self.decoder), self.likelihood)

    def _encodings(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        return encodings_of(self.encoder(self.likelihood.embed(x)), self.quantizer)


def mean_bound(model: nn.Module, x: Tensor, samples: int) -> Bound:
    """The mean of a model's bound over a number of exact samples from the posterior."""
    check_size(samples, "samples")
    with evaluating(model):
        bounds = [model(x, sample=True).bound for _ in range(samples)]
    return Bound(torch.stack([bound.nats for bound in bounds]).mean(), bounds[0].dimensions)


def check_likelihood(likelihood: object) -> None:
    """Raise if something else is given for a likelihood."""
    if not isinstance(likelihood, Likelihood):
        raise TypeError(f"the last part must be a likelihood, as in LIKELIHOODS; got {_describe(likelihood)}")


def encodings_of(encoded: Any, quantizer: Quantizer) -> tuple[Tensor, Tensor | None]:
    """Split the output of an encoder into z and the log-variance, if the quantizer needs one."""
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
    r"""A stochastically quantized VAE: a :class:`LatentModel` whose quantizer draws codes.

    .. math:: \mathcal L = -\log p_\theta(x \mid Z_q) + \mathcal R_\varphi(Z, Z_q) - H(\hat P_\varphi(Z_q \mid Z))

    Arguments:
        encoder: maps data (channels first) to encodings; returns (z, log_variance) for quantizers that need the latter.
        quantizer: a Gaussian or von Mises-Fisher quantizer, with ``channel_first=True`` after convolutions.
        decoder: maps quantized encodings to the likelihood's parameters.
        likelihood: one of :data:`sqvae.likelihoods.LIKELIHOODS`.
        latent_terms: see :class:`LatentModel`.
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
        super().__init__(encoder, quantizer, decoder, likelihood, latent_terms=latent_terms)
        if not quantizer.relaxes:
            warnings.warn(
                f"an SQVAE with {type(quantizer).__name__}, which draws no codes, is deprecated: write "
                "LatentModel(encoder, quantizer, decoder, likelihood)",
                DeprecationWarning,
                stacklevel=2,
            )


class VAE(LatentModel):
    r"""A VAE with the same parts, and a continuous Gaussian latent in place of the quantizer.

    .. math:: \mathcal L = -\log p_\theta(x \mid z) + D_{KL}(q_\phi(z \mid x) \parallel \mathcal N(0, I))

    Arguments:
        encoder: maps data (channels first) to (z, log_variance).
        dim: the dimension of z.
        decoder: maps latents to the likelihood's parameters.
        likelihood: one of :data:`sqvae.likelihoods.LIKELIHOODS`.
        channel_first: z is (batch, dim, ...) instead of (batch, ..., dim).
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
