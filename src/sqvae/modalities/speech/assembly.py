"""Models of speech from configurations."""

import torch
from torch import Tensor

from sqvae.config import ConfigurationError, Experiment
from sqvae.data.speech import FEATURES, LogMel
from sqvae.models import SpeechModel
from sqvae.networks import SpeechDecoder, SpeechEncoder
from sqvae.tokenizers import build_likelihood, build_quantizer, quantizer_settings


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
