"""Experiments with their data, whatever its kind."""

from collections.abc import Callable, Mapping

from sqvae.config import Experiment
from sqvae.data import Progress
from sqvae.modalities.images.data import prepare_pictures
from sqvae.modalities.prepared import Announce, Prepared
from sqvae.modalities.speech.data import prepare_speech

PREPARERS: Mapping[str, Callable[..., Prepared]] = {
    "pictures": prepare_pictures,
    "labels": prepare_pictures,
    "levels": prepare_pictures,
    "speech": prepare_speech,
}
"""Who loads data, by its kind."""


def prepare(experiment: Experiment, *, announce: Announce = print, progress: Progress | None = None) -> Prepared:
    """Load the data, and decide from it what the experiment leaves open."""
    return PREPARERS[experiment.kind](experiment, announce=announce, progress=progress)
