"""Models with codes on several resolutions, trained together."""

from collections.abc import Callable, Sequence
from typing import get_args

import torch
from torch import Tensor, nn

from sqvae.distributions.checks import check_choice
from sqvae.likelihoods import Likelihood
from sqvae.models.autoencoder import Bound, LatentTerms, Objective, check_likelihood, encodings_of, mean_bound
from sqvae.networks.modes import evaluating
from sqvae.quantizers import LevelQuantizers, QuantizedLevels, Quantizer, Stage


class HierarchicalModel(nn.Module):
    r"""A latent variable model with several levels of codes, each of which sees the levels above it (SQ-VAE-2).

    The encoder gives features :math:`h_1(x) \dots h_L(x)`, the coarsest first. From the top down, each level quantizes
    what its block makes of its features and of all coarser codes, and the decoder sees the codes of all levels:

    .. math:: \hat z_l = G_l(h_l(x), z_1 \dots z_{l-1}), \qquad z_l = Q_l(\hat z_l), \qquad
              \log p_\theta(x) \ge \mathbb E\left[\log p_\theta(x \mid z_1 \dots z_L)
              - \sum_l \mathcal D_l\right],

    where :math:`\mathcal D_l` is the divergence of level l. With Gaussian quantizers and a Gaussian likelihood the loss
    is, up to constants,

    .. math:: \mathcal L = \frac D2 \log \sigma^2 + \mathbb E\left[
              \frac{\lVert x - f(z_1 \dots z_L) \rVert^2}{2 \sigma^2} + \sum_l \left(
              \frac{\lVert \tilde z_l - z_l \rVert^2}{2 s_l^2} - H(\hat P_l) \right)\right],

    with a codebook and a variance :math:`s_l^2` for each level. A level whose quantizer has layers is a residual one,
    and a single level is a :class:`LatentModel`.

    Codes are one tensor for each level, the coarsest first, because levels differ in the number of positions.

    Arguments:
        encoder: maps data (channels first) to the features of all levels, the coarsest first.
        blocks: :math:`G_l` for each level: called with its features and a tuple of the coarser quantized latents, which
            is empty for the first; returns z, or (z, log_variance) for a quantizer that needs the latter.
        quantizers: one for each level, of :data:`sqvae.quantizers.LATENTS`.
        decoder: maps a tuple of the quantized latents of all levels to the likelihood's parameters.
        likelihood: one of :data:`sqvae.likelihoods.LIKELIHOODS`.
        latent_terms: see :class:`LatentModel`; a mean is over the values of all levels.
    """

    def __init__(
        self,
        encoder: nn.Module,
        blocks: Sequence[nn.Module],
        quantizers: Sequence[Quantizer],
        decoder: nn.Module,
        likelihood: Likelihood,
        *,
        latent_terms: LatentTerms = "sum",
    ) -> None:
        super().__init__()
        check_choice(latent_terms, get_args(LatentTerms), "latent_terms")
        check_likelihood(likelihood)
        if len(blocks) != len(quantizers):
            raise ValueError(
                f"each level needs one block and one quantizer; got {len(blocks)} blocks and {len(quantizers)} "
                "quantizers"
            )
        self.encoder = encoder
        self.blocks = nn.ModuleList(blocks)
        self.quantizer = LevelQuantizers(quantizers)
        self.decoder = decoder
        self.likelihood = likelihood
        self.latent_terms: LatentTerms = latent_terms

    @property
    def levels(self) -> int:
        """The number of levels, L."""
        return len(self.blocks)

    def forward(self, x: Tensor, temperature: float | Tensor | Stage = 1.0, *, sample: bool = False) -> Objective:
        """Encode, quantize level by level, decode, and compute the objective.

        Arguments:
            x: (batch, ...), data as the likelihood describes it.
            temperature: the temperature of the relaxation, or the stage of a schedule; it holds for all levels.
            sample: in ``eval()``, sample from the posterior instead of taking the likeliest codes.
        """
        made: list[Tensor] = []
        results = []
        for block, quantizer, features in self._levels(x):
            z, log_variance = encodings_of(block(features, tuple(made)), quantizer)
            results.append(quantizer(z, temperature, log_variance=log_variance, sample=sample))
            made.append(results[-1].z_q)
        output = self.decoder(tuple(made))
        values = sum(z_q[0].numel() for z_q in made)
        weight = 1.0 if self.latent_terms == "sum" else x[0].numel() / (2 * values)
        quantized = QuantizedLevels(tuple(results))
        return Objective(output, self.likelihood(output, x), quantized, self.likelihood.dimensions(x), weight)

    @torch.no_grad()
    def bound(self, x: Tensor, *, samples: int = 1) -> Bound:
        """The bound to report: its mean over exact samples from the posterior, as in ``eval()``."""
        return mean_bound(self, x, samples)

    @torch.no_grad()
    def encode(self, x: Tensor) -> tuple[Tensor, ...]:
        """The likeliest codes of a batch of data, level by level, (batch, ...) each, as in ``eval()``.

        Each level is encoded given the likeliest codes of the coarser ones.
        """
        return tuple(codes for codes, _ in self._encoded(x))

    @torch.no_grad()
    def encodings(self, x: Tensor) -> tuple[Tensor, ...]:  # (batch, ...) -> (batch, ..., dim) for each level
        """The continuous encodings of each level before quantization, as in ``eval()``."""
        return tuple(encodings for _, encodings in self._encoded(x))

    @torch.no_grad()
    def decode(self, codes: Sequence[Tensor], *, levels: int | None = None) -> Tensor:
        r"""The most probable data for the codes of a batch, as in ``eval()``.

        With fewer levels, the latents of the finer ones are what the model expects of them without looking at the data,
        :math:`\mathbb E_{p(z_l)}[z_l]`, which for its uniform prior is the mean of the level's code vectors. A vector
        of zeros may lie far from all codes that the decoder has seen, and a code drawn at random adds noise.

        Arguments:
            codes: the codes of each level, (batch, ...), the coarsest first.
            levels: use the codes of so many levels only; those of the others say only how many positions they have.
                None: all.
        """
        used = self._number(levels)
        if len(codes) != self.levels:
            raise ValueError(f"codes must be one tensor for each of {self.levels} levels, got {len(codes)}")
        with evaluating(self):
            latents = [quantizer.decode(own) for quantizer, own in zip(self.quantizer.levels, codes, strict=True)]
            for level in range(used, self.levels):
                latents[level] = expected(self.quantizer.levels[level], latents[level])
            return self.likelihood.predict(self.decoder(tuple(latents)))

    @torch.no_grad()
    def reconstruct(self, x: Tensor, *, levels: int | None = None) -> Tensor:
        """The reconstruction of data from its codes, or from those of the first levels only."""
        return self.decode(self.encode(x), levels=levels)

    def with_networks(self, change: Callable[[nn.Module], nn.Module]) -> "HierarchicalModel":
        """The same model with other networks: what `change` makes of the encoder, of each block and of the decoder."""
        blocks = [change(block) for block in self.blocks]
        return HierarchicalModel(
            change(self.encoder), blocks, self.quantizer.levels, change(self.decoder), self.likelihood
        )

    def _encoded(self, x: Tensor) -> list[tuple[Tensor, Tensor]]:
        """The codes and the continuous encodings of each level."""
        made: list[Tensor] = []
        found = []
        with evaluating(self):
            for block, quantizer, features in self._levels(x):
                z, log_variance = encodings_of(block(features, tuple(made)), quantizer)
                codes = quantizer.encode(z, log_variance=log_variance)
                made.append(quantizer.decode(codes))
                found.append((codes, quantizer.project(z.movedim(1, -1) if quantizer.channel_first else z)))
        return found

    def _levels(self, x: Tensor) -> list[tuple[nn.Module, Quantizer, Tensor]]:
        """The block, the quantizer and the features of each level."""
        features = self.encoder(self.likelihood.embed(x))
        if isinstance(features, Tensor) or len(features) != self.levels:
            got = "one tensor" if isinstance(features, Tensor) else f"{len(features)} of them"
            raise ValueError(f"the encoder must return features for each of {self.levels} levels in a tuple, got {got}")
        return list(zip(self.blocks, self.quantizer.levels, features, strict=True))

    def _number(self, levels: int | None) -> int:
        if levels is None:
            return self.levels
        if not 1 <= levels <= self.levels:
            raise ValueError(f"levels must be between 1 and {self.levels} for this model; got {levels}")
        return levels


def expected(quantizer: Quantizer, latent: Tensor) -> Tensor:  # (batch, ..., d) or (batch, d, ...)
    r"""The expectation of a latent under the prior, :math:`\sum_k b_k / K`, at each position of a latent map.

    With layers it is the sum over them, and for a continuous latent, whose prior is standard normal, it is 0.
    """
    mean = latent.new_zeros(quantizer.dim)
    for book in quantizer.books:
        mean = mean + book.vectors().mean(0).to(mean.dtype)
    axes = [1] * (latent.ndim - 2)
    return mean.view(-1, *axes).expand_as(latent) if quantizer.channel_first else mean.expand_as(latent)
