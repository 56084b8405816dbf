"""Experiments: configurations, the models they describe, runs, and what comes of them."""

from sqvae.experiment.assembly import (
    build_model,
    build_quantizer,
    build_speech_model,
    features_of,
    quantizer_settings,
)
from sqvae.experiment.code_space import code_colours, code_positions
from sqvae.experiment.codebook import (
    CodeAtlas,
    CodeDistances,
    code_atlas,
    code_distances,
    decoded_alone,
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
from sqvae.experiment.diagnosis import diagnose, findings_of
from sqvae.experiment.evaluation import PictureTask, evaluate
from sqvae.experiment.frechet import BASELINES, SETS, Makers, frechet_distances, sets_of
from sqvae.experiment.generation import PLACE, Generator, load_generator, read_prior
from sqvae.experiment.history import taken_as_of
from sqvae.experiment.loading import kind_of, load
from sqvae.experiment.manipulation import interpolated, nearest_codes, neighbour_table, neighbours
from sqvae.experiment.media import Medium, medium_of
from sqvae.experiment.observation import Evaluation
from sqvae.experiment.pictures import PreparedPictures, new_model, prepare_pictures
from sqvae.experiment.preparation import prepare
from sqvae.experiment.prepared import Prepared
from sqvae.experiment.pretrained import Pretrained, check_there
from sqvae.experiment.prior_settings import PriorExperiment, PriorSettings, prior_plan
from sqvae.experiment.priors import PreparedPrior, is_run, prepare_prior
from sqvae.experiment.profiles import PROFILES, SPEECH_RATE, with_profile
from sqvae.experiment.records import (
    STAGE,
    Planned,
    Record,
    Sequel,
    labels_of_records,
    load_pictures,
    load_record,
    load_records,
    record_path,
)
from sqvae.experiment.run import Forecast, forecast, read_experiment, resume, train
from sqvae.experiment.settings import override
from sqvae.experiment.speech import PreparedSpeech, prepare_speech
from sqvae.experiment.speech_abx import MODES, REPRESENTATIONS, abx_of, find_items
from sqvae.experiment.speech_evaluation import SpeechTask, evaluate_speech
from sqvae.experiment.speech_tokenizer import SpeechTokenizer, load_speech_tokenizer, untrained_speech_tokenizer
from sqvae.experiment.speech_views import see_speech, see_units, spoken_alone
from sqvae.experiment.sweep import Outcome, Sweep, SweepStoppedError
from sqvae.experiment.tokenizer import Tokenizer, load_tokenizer
from sqvae.experiment.units import UnitSpectra, unit_spectra
from sqvae.experiment.views import (
    Curve,
    Seen,
    drawn_alone,
    drawn_at,
    recorded_use,
    see,
    see_codes,
    training_views,
    use_of,
)

__all__ = [
    "BASELINES",
    "MODES",
    "PLACE",
    "PROFILES",
    "REPRESENTATIONS",
    "SETS",
    "SPEECH_RATE",
    "STAGE",
    "CodeAtlas",
    "CodeDistances",
    "ConfigurationError",
    "Curve",
    "DataSettings",
    "Evaluation",
    "Experiment",
    "Forecast",
    "Generator",
    "LikelihoodSettings",
    "Makers",
    "Medium",
    "NetworkSettings",
    "Outcome",
    "PictureTask",
    "Planned",
    "Prepared",
    "PreparedPictures",
    "PreparedPrior",
    "PreparedSpeech",
    "Pretrained",
    "PriorExperiment",
    "PriorSettings",
    "QuantizerSettings",
    "Record",
    "Seen",
    "Sequel",
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
    "check_there",
    "code_atlas",
    "code_colours",
    "code_distances",
    "code_positions",
    "decoded_alone",
    "diagnose",
    "drawn_alone",
    "drawn_at",
    "evaluate",
    "evaluate_speech",
    "features_of",
    "find_items",
    "findings_of",
    "forecast",
    "frechet_distances",
    "interpolated",
    "is_run",
    "kind_of",
    "labels_of_records",
    "load",
    "load_generator",
    "load_pictures",
    "load_record",
    "load_records",
    "load_speech_tokenizer",
    "load_tokenizer",
    "map_size",
    "medium_of",
    "nearest",
    "nearest_codes",
    "neighbour_table",
    "neighbours",
    "new_model",
    "override",
    "prepare",
    "prepare_pictures",
    "prepare_prior",
    "prepare_speech",
    "prior_plan",
    "quantized_pictures",
    "quantized_utterances",
    "quantizer_settings",
    "read_experiment",
    "read_prior",
    "record_path",
    "recorded_use",
    "resume",
    "see",
    "see_codes",
    "see_speech",
    "see_units",
    "sets_of",
    "spoken_alone",
    "taken_as_of",
    "train",
    "training_views",
    "unit_spectra",
    "untrained_speech_tokenizer",
    "use_of",
    "with_profile",
]
