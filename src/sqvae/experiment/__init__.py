"""Experiments: configurations, the models they describe, runs, and what comes of them."""

from sqvae.experiment.assembly import build_model, build_quantizer, build_speech_model, features_of
from sqvae.experiment.codebook import (
    CodeAtlas,
    CodeDistances,
    code_atlas,
    code_distances,
    map_size,
    quantized_pictures,
    quantized_utterances,
)
from sqvae.experiment.configuration import (
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
from sqvae.experiment.evaluation import PictureTask, evaluate
from sqvae.experiment.loading import kind_of, load
from sqvae.experiment.media import Medium, medium_of
from sqvae.experiment.observation import Evaluation
from sqvae.experiment.pictures import PreparedPictures, new_model, prepare_pictures
from sqvae.experiment.prepared import Prepared
from sqvae.experiment.pretrained import Pretrained
from sqvae.experiment.profiles import PROFILES, with_profile
from sqvae.experiment.records import Planned, Record, labels_of_records, load_pictures, load_record, load_records
from sqvae.experiment.run import prepare, read_experiment, resume, train
from sqvae.experiment.settings import override
from sqvae.experiment.speech import PreparedSpeech, prepare_speech
from sqvae.experiment.speech_abx import MODES, REPRESENTATIONS, abx_of, find_items
from sqvae.experiment.speech_evaluation import SpeechTask, evaluate_speech
from sqvae.experiment.speech_tokenizer import SpeechTokenizer, load_speech_tokenizer, untrained_speech_tokenizer
from sqvae.experiment.sweep import Outcome, Sweep, SweepStoppedError
from sqvae.experiment.tokenizer import Tokenizer, load_tokenizer
from sqvae.experiment.units import UnitSpectra, unit_spectra

__all__ = [
    "MODES",
    "PROFILES",
    "REPRESENTATIONS",
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
    "PreparedPictures",
    "PreparedSpeech",
    "Pretrained",
    "QuantizerSettings",
    "Record",
    "SpeechSettings",
    "SpeechTask",
    "SpeechTokenizer",
    "Sweep",
    "SweepStoppedError",
    "Tokenizer",
    "UnitSpectra",
    "abx_of",
    "build_model",
    "build_quantizer",
    "build_speech_model",
    "check_name",
    "code_atlas",
    "code_distances",
    "evaluate",
    "evaluate_speech",
    "features_of",
    "find_items",
    "kind_of",
    "labels_of_records",
    "load",
    "load_pictures",
    "load_record",
    "load_records",
    "load_speech_tokenizer",
    "load_tokenizer",
    "map_size",
    "medium_of",
    "nearest",
    "new_model",
    "override",
    "prepare",
    "prepare_pictures",
    "prepare_speech",
    "quantized_pictures",
    "quantized_utterances",
    "read_experiment",
    "resume",
    "train",
    "unit_spectra",
    "untrained_speech_tokenizer",
    "with_profile",
]
