"""The settings of an experiment. A file can store them, and each can be changed by name."""

from sqvae.config.experiment import (
    LEVELS,
    WITH_HEAD,
    ConfigurationError,
    DataSettings,
    Experiment,
    LikelihoodSettings,
    NetworkSettings,
    QuantizerSettings,
    SpeechSettings,
    check_name,
    nearest,
)
from sqvae.config.priors import PriorExperiment, PriorSettings, prior_plan
from sqvae.config.profiles import with_profile
from sqvae.config.settings import from_json, override, to_json

__all__ = [
    "LEVELS",
    "WITH_HEAD",
    "ConfigurationError",
    "DataSettings",
    "Experiment",
    "LikelihoodSettings",
    "NetworkSettings",
    "PriorExperiment",
    "PriorSettings",
    "QuantizerSettings",
    "SpeechSettings",
    "check_name",
    "from_json",
    "nearest",
    "override",
    "prior_plan",
    "to_json",
    "with_profile",
]
