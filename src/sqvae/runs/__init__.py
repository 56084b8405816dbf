"""Training in a folder: experiments with their data, models, priors over their codes, and samples."""

from sqvae.runs.code_sets import CodeSet
from sqvae.runs.diagnosis import diagnose, findings_of
from sqvae.runs.generation import PLACE, Generator, load_generator, read_prior
from sqvae.runs.observation import Evaluation
from sqvae.runs.prepared import Announce, Prepared, Trainable, prepare, settled_source, with_passes
from sqvae.runs.priors import PreparedPrior, is_run, prepare_prior
from sqvae.runs.run import forecast, read_experiment, resume, train

__all__ = [
    "PLACE",
    "Announce",
    "CodeSet",
    "Evaluation",
    "Generator",
    "Prepared",
    "PreparedPrior",
    "Trainable",
    "diagnose",
    "findings_of",
    "forecast",
    "is_run",
    "load_generator",
    "prepare",
    "prepare_prior",
    "read_experiment",
    "read_prior",
    "resume",
    "settled_source",
    "train",
    "with_passes",
]
