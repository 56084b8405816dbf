"""Models of images, label maps and grey levels from configurations."""

from torch import nn

from sqvae.config import ConfigurationError, Experiment
from sqvae.likelihoods import Likelihood
from sqvae.models import HierarchicalModel, LatentModel
from sqvae.networks import (
    LevelBlock,
    LevelDecoder,
    LevelEncoder,
    conv_decoder,
    conv_encoder,
    from_vector,
    to_vector,
)
from sqvae.tokenizers import build_likelihood, build_quantizer, quantizer_settings

LARGE = 128
"""Images of this side and more are halved three times, as the paper does at 256; smaller ones twice."""


def build_model(
    experiment: Experiment, shape: tuple[int, int, int]
) -> LatentModel | HierarchicalModel:  # shape: (C, H, W)
    """An untrained model for pictures of a shape."""
    if experiment.network.levels > 1:
        return _build_hierarchy(experiment, shape)
    quantizer = build_quantizer(quantizer_settings(experiment))
    likelihood = build_likelihood(experiment)
    encoder, decoder = _networks(experiment, shape, likelihood, log_variance=quantizer.needs_log_variance)
    return LatentModel(encoder, quantizer, decoder, likelihood, latent_terms=experiment.likelihood.latent_terms)


def _build_hierarchy(experiment: Experiment, shape: tuple[int, int, int]) -> HierarchicalModel:
    """A model with several levels of codes, around the networks of a single one."""
    network, dim, levels = experiment.network, experiment.quantizer.dim, experiment.network.levels
    check_divisible(*shape[1:], sides_of(experiment, shape))
    quantizers = [build_quantizer(quantizer_settings(experiment)) for _ in range(levels)]
    likelihood = build_likelihood(experiment)
    encoder, decoder = _networks(experiment, shape, likelihood, log_variance=False)
    blocks = [
        LevelBlock(dim, level, blocks=network.blocks, log_variance=quantizer.needs_log_variance)
        for level, quantizer in enumerate(quantizers)
    ]
    return HierarchicalModel(
        LevelEncoder(encoder, dim, levels, blocks=network.blocks),
        blocks,
        quantizers,
        LevelDecoder(decoder, dim, levels),
        likelihood,
        latent_terms=experiment.likelihood.latent_terms,
    )


def _networks(
    experiment: Experiment, shape: tuple[int, int, int], likelihood: Likelihood, *, log_variance: bool
) -> tuple[nn.Module, nn.Module]:
    """Encoder and decoder: the convolutional ones, and linear layers between them where the latent is a vector."""
    channels, height, width = shape
    sees, gives = likelihood.channels(channels)
    network, dim = experiment.network, experiment.quantizer.dim
    map_dim, stride = map_dim_of(experiment), stride_of(experiment, shape)
    check_divisible(height, width, stride)
    widths = network.widths or default_widths(map_dim, height, width)
    decoder_blocks = network.blocks if network.decoder_blocks is None else network.decoder_blocks
    is_map = network.map_dim is None
    encoder = conv_encoder(
        sees, map_dim, widths=widths, mix=network.mix, blocks=network.blocks, log_variance=log_variance and is_map
    )
    bounded = experiment.data.kind == "pictures"
    decoder = conv_decoder(gives, map_dim, widths=widths, mix=network.mix, blocks=decoder_blocks, bounded=bounded)
    if is_map:
        return encoder, decoder
    map_shape = (map_dim, height // stride, width // stride)
    return to_vector(encoder, map_shape, dim, log_variance=log_variance), from_vector(decoder, map_shape, dim)


def stride_of(experiment: Experiment, shape: tuple[int, int, int]) -> int:  # shape: (C, H, W)
    """How many pixels of a side become one position of the latent map, or of that of the finest level."""
    widths = experiment.network.widths or default_widths(map_dim_of(experiment), *shape[1:])
    return int(2 ** len(widths))


def sides_of(experiment: Experiment, shape: tuple[int, int, int]) -> int:  # shape: (C, H, W)
    """What the sides of images must be multiples of: the pixels of one position of the coarsest level."""
    return stride_of(experiment, shape) << (experiment.network.levels - 1)


def map_sizes_of(experiment: Experiment, shape: tuple[int, int, int]) -> list[tuple[int, int]]:  # shape: (C, H, W)
    """(h, w) of the latent map of each level, the coarsest first."""
    strides = [stride_of(experiment, shape) << above for above in reversed(range(experiment.network.levels))]
    return [(shape[1] // stride, shape[2] // stride) for stride in strides]


def map_dim_of(experiment: Experiment) -> int:
    """The channels of the map between the convolutional networks: the latent's own, unless that is a vector."""
    return experiment.network.map_dim or experiment.quantizer.dim


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
            f"pass `data.size={larger[0]},{larger[1]}`"
        )
