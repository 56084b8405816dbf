"""Models from configurations."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from sqvae.config import WITH_HEAD, ConfigurationError, Experiment, QuantizerSettings
from sqvae.data.speech import FEATURES, LogMel
from sqvae.likelihoods import (
    CategoricalLikelihood,
    GaussianLikelihood,
    Likelihood,
    VonMisesFisherLikelihood,
    half_circle_directions,
    one_hot_directions,
)
from sqvae.models import SQVAE, LatentModel, SpeechModel
from sqvae.networks import SpeechDecoder, SpeechEncoder, conv_decoder, conv_encoder, from_vector, to_vector
from sqvae.quantizers import QUANTIZERS, Quantizer

LARGE = 128
"""Pictures of this side and more are halved three times, as the paper does at 256; smaller ones twice."""


def build_model(experiment: Experiment, shape: tuple[int, int, int]) -> LatentModel:  # shape: (C, H, W)
    """An untrained model for pictures of a shape."""
    quantizer = build_quantizer(quantizer_settings(experiment))
    likelihood = build_likelihood(experiment)
    encoder, decoder = _networks(experiment, shape, likelihood, log_variance=quantizer.needs_log_variance)
    return SQVAE(encoder, quantizer, decoder, likelihood, latent_terms=experiment.likelihood.latent_terms)


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


def build_speech_model(
    experiment: Experiment, *, offset: Tensor | None = None, scale: Tensor | None = None
) -> SpeechModel:
    """An untrained model for speech, whose speakers are known.

    Arguments:
        offset, scale: (mels,), in dB: what frames are normalised by. They come with the weights of a trained model.
    """
    speech, quantizer = experiment.speech, build_quantizer(quantizer_settings(experiment))
    if not speech.speakers:
        raise ConfigurationError("the speakers are not known before the data is loaded; set speech.speakers")
    mels, dim, size = features_of(experiment).mels, experiment.quantizer.dim, len(speech.speakers)
    return SpeechModel(
        SpeechEncoder(mels, dim, channels=speech.channels, log_variance=quantizer.needs_log_variance),
        quantizer,
        SpeechDecoder(mels, dim, size, speaker_dim=speech.speaker_dim, hidden=speech.hidden, jitter=speech.jitter),
        build_likelihood(experiment),
        offset=torch.zeros(mels) if offset is None else offset,
        scale=torch.ones(mels) if scale is None else scale,
    )


def features_of(experiment: Experiment) -> LogMel:
    """How an experiment's recordings become frames."""
    return FEATURES[experiment.speech.features]


def build_likelihood(experiment: Experiment) -> Likelihood:
    """The likelihood of an experiment's data."""
    settings, data = experiment.likelihood, experiment.data
    options: dict[str, Any] = {}
    if experiment.likelihood_name == "gaussian":
        if settings.initial_variance is not None:
            options["initial_variance"] = settings.initial_variance
        return GaussianLikelihood(settings.variance, **options)
    classes = data.number_of_classes
    if not classes:
        raise ConfigurationError("the number of classes is not known before the data is loaded; set data.classes")
    directions = half_circle_directions(classes) if data.kind == "levels" else one_hot_directions(classes)
    seen = one_hot_directions(classes) if settings.inputs == "one-hot" else directions
    if experiment.likelihood_name == "categorical":
        return CategoricalLikelihood(classes, inputs=seen, ignore=data.ignore)
    if settings.initial_concentration is not None:
        options["initial_concentration"] = settings.initial_concentration
    return VonMisesFisherLikelihood(
        directions,
        concentration=settings.concentration,
        concentration_offset=settings.concentration_offset,
        inputs=seen,
        ignore=data.ignore,
        **options,
    )


def stride_of(experiment: Experiment, shape: tuple[int, int, int]) -> int:  # shape: (C, H, W)
    """How many pixels of a side become one position of the latent map."""
    widths = experiment.network.widths or default_widths(map_dim_of(experiment), *shape[1:])
    return int(2 ** len(widths))


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


def quantizer_settings(experiment: Experiment) -> QuantizerSettings:
    """Those of an experiment's quantizer, with what depends on its schedule.

    At the rate of one that anneals, an encoder's own variance would run away, so that it is bounded. Codes on a sphere
    begin with the length 1, so that they turn as fast as others move; by the paper's schedule, as its authors draw
    them.
    """
    settings, anneals = experiment.quantizer, experiment.training.anneals
    if settings.name in WITH_HEAD and settings.heads is None and anneals:
        return replace(settings, heads="bounded")
    if settings.name == "vmf" and settings.codebook_scale is None and not anneals:
        return replace(settings, codebook_scale=1.0)
    return settings


def build_quantizer(settings: QuantizerSettings) -> Quantizer:
    """A quantizer by name."""
    return QUANTIZERS[settings.name](**settings.options, channel_first=True)
