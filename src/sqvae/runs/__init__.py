"""Training in a folder: models, priors over their codes, and what samples come from."""

from sqvae.runs.generation import PLACE, Generator, load_generator, read_prior
from sqvae.runs.priors import PreparedPrior, is_run, prepare_prior
from sqvae.runs.run import forecast, read_experiment, resume, train

__all__ = [
    "PLACE",
    "Generator",
    "PreparedPrior",
    "forecast",
    "is_run",
    "load_generator",
    "prepare_prior",
    "read_experiment",
    "read_prior",
    "resume",
    "train",
]
