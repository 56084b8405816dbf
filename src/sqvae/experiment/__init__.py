"""Experiments: configurations, the models they describe, runs, and what comes of them."""

from sqvae.experiment.assembly import build_model, build_quantizer
from sqvae.experiment.codebook import CodeAtlas, CodeDistances, code_atlas, code_distances, map_size
from sqvae.experiment.configuration import (
    ConfigurationError,
    DataSettings,
    Experiment,
    LikelihoodSettings,
    NetworkSettings,
    QuantizerSettings,
    check_name,
    nearest,
)
from sqvae.experiment.evaluation import Evaluation, PictureTask, evaluate
from sqvae.experiment.media import Medium, medium_of
from sqvae.experiment.profiles import PROFILES, with_profile
from sqvae.experiment.records import Planned, Record, labels_of_records, load_pictures, load_record, load_records
from sqvae.experiment.run import Prepared, new_model, prepare, read_experiment, resume, train
from sqvae.experiment.settings import override
from sqvae.experiment.sweep import Outcome, Sweep, SweepStoppedError
from sqvae.experiment.tokenizer import Tokenizer, load

__all__ = [
    "PROFILES",
    "CodeAtlas",
    "CodeDistances",
    "ConfigurationError",
    "DataSettings",
    "Evaluation",
    "Experiment",
    "LikelihoodSettings",
    "Medium",
    "NetworkSettings",
    "Outcome",
    "PictureTask",
    "Planned",
    "Prepared",
    "QuantizerSettings",
    "Record",
    "Sweep",
    "SweepStoppedError",
    "Tokenizer",
    "build_model",
    "build_quantizer",
    "check_name",
    "code_atlas",
    "code_distances",
    "evaluate",
    "labels_of_records",
    "load",
    "load_pictures",
    "load_record",
    "load_records",
    "map_size",
    "medium_of",
    "nearest",
    "new_model",
    "override",
    "prepare",
    "read_experiment",
    "resume",
    "train",
    "with_profile",
]
