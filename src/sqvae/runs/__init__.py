"""Training in a folder: experiments with their data, models, priors over their codes, and samples."""

from sqvae.runs.code_sets import CodeSet
from sqvae.runs.data import DataOfRun, data_of_run
from sqvae.runs.diagnosis import diagnose, findings_of
from sqvae.runs.generation import PLACE, Generator, has_prior, load_generator, read_prior
from sqvae.runs.judging import PriorResult, evaluate_prior, is_own_prior
from sqvae.runs.observation import Evaluation
from sqvae.runs.prepared import Announce, Prepared, Trainable, prepare, settled_source, with_passes
from sqvae.runs.priors import PreparedPrior, is_run, prepare_prior
from sqvae.runs.requests import check_length, experiment_for, new_folder, prior_experiment_for, with_threads
from sqvae.runs.run import Forecast, forecast, read_experiment, resume, train
from sqvae.runs.state import check_run, is_prior, is_unfinished, last_temperature, processes_of, steps_of

__all__ = [
    "PLACE",
    "Announce",
    "CodeSet",
    "DataOfRun",
    "Evaluation",
    "Forecast",
    "Generator",
    "Prepared",
    "PreparedPrior",
    "PriorResult",
    "Trainable",
    "check_length",
    "check_run",
    "data_of_run",
    "diagnose",
    "evaluate_prior",
    "experiment_for",
    "findings_of",
    "forecast",
    "has_prior",
    "is_own_prior",
    "is_prior",
    "is_run",
    "is_unfinished",
    "last_temperature",
    "load_generator",
    "new_folder",
    "prepare",
    "prepare_prior",
    "prior_experiment_for",
    "processes_of",
    "read_experiment",
    "read_prior",
    "resume",
    "settled_source",
    "steps_of",
    "train",
    "with_passes",
    "with_threads",
]
