"""Models from configurations."""

from sqvae.experiment.configuration import ConfigurationError, Experiment, LikelihoodSettings, QuantizerSettings
from sqvae.likelihoods import GaussianLikelihood
from sqvae.models import SQVAE, LatentModel
from sqvae.networks import conv_decoder, conv_encoder
from sqvae.quantizers import QUANTIZERS, Quantizer

LARGE = 128
"""Pictures of this side and more are halved three times, as the paper does at 256; smaller ones twice."""


def build_model(experiment: Experiment, shape: tuple[int, int, int]) -> LatentModel:  # shape: (C, H, W)
    """An untrained model for pictures of a shape."""
    channels, height, width = shape
    network, dim = experiment.network, experiment.quantizer.dim
    widths = network.widths or default_widths(dim, height, width)
    check_divisible(height, width, stride_of(experiment, shape))
    quantizer = build_quantizer(experiment.quantizer)
    layers = {"widths": widths, "mix": network.mix, "blocks": network.blocks}
    return SQVAE(
        conv_encoder(channels, dim, log_variance=quantizer.needs_log_variance, **layers),  # type: ignore[arg-type]
        quantizer,
        conv_decoder(channels, dim, **layers),  # type: ignore[arg-type]
        _likelihood(experiment.likelihood),
        latent_terms=experiment.likelihood.latent_terms,
    )


def _likelihood(settings: LikelihoodSettings) -> GaussianLikelihood:
    if settings.initial_variance is None:
        return GaussianLikelihood(settings.variance)
    return GaussianLikelihood(settings.variance, initial_variance=settings.initial_variance)


def stride_of(experiment: Experiment, shape: tuple[int, int, int]) -> int:  # shape: (C, H, W)
    """How many pixels of a side become one position of the latent map."""
    widths = experiment.network.widths or default_widths(experiment.quantizer.dim, *shape[1:])
    return int(2 ** len(widths))


def default_widths(dim: int, height: int, width: int) -> tuple[int, ...]:
    """The channels after each halving: doubling towards `dim`."""
    large = min(height, width) >= LARGE and height % 8 == 0 and width % 8 == 0
    halvings = 3 if large else 2
    return tuple(max(1, dim >> (halvings - 1 - depth)) for depth in range(halvings))


def check_divisible(height: int, width: int, stride: int) -> None:
    """Raise if the network could not give a picture its size back."""
    if height % stride or width % stride:
        larger = tuple(-(-side // stride) * stride for side in (height, width))
        raise ConfigurationError(
            f"pictures of {height}x{width} can't be halved {stride.bit_length() - 1} times: the sides must be "
            f"multiples of {stride}. The next size up is {larger[0]}x{larger[1]}: "
            f"--set data.size={larger[0]},{larger[1]}"
        )


def build_quantizer(settings: QuantizerSettings) -> Quantizer:
    """A quantizer by name."""
    return QUANTIZERS[settings.name](**settings.options, channel_first=True)
