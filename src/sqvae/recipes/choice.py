"""Choose the recipe for your own data, from the settings or from the data itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqvae.config import Experiment
from sqvae.data import DATASETS, TakenAs, recognise
from sqvae.data.detection import DataKind
from sqvae.data.speech import SPEECH_SETS, holds_speech

OF_KINDS: Mapping[DataKind, str] = {
    "pictures": "pictures",
    "labels": "label-maps",
    "levels": "grey-levels",
    "speech": "speech",
}
"""The recipe for each kind of data."""

OF_LABELS = {"data.classes", "data.ignore", "data.class_names", "data.class_colours"}
OF_PICTURES = {"data.channels", "likelihood.variance", "likelihood.initial_variance"}
"""Settings that imply the kind of the data."""


@dataclass(frozen=True)
class Choice:
    """The recipe for some data, and the kind that the data is taken as."""

    recipe: str
    taken_as: TakenAs


def suitable(source: str, settings: Sequence[str] = ()) -> Choice:
    """The recipe for your own data, from the settings or else from the data itself.

    Arguments:
        source: a path, or the name of a data set.
        settings: the settings that were given, each as "key=value".
    """
    taken_as = _told(source, _given(settings)) or _seen(source)
    return Choice(OF_KINDS[taken_as.kind], taken_as)


def as_told(experiment: Experiment, settings: Sequence[str] = ()) -> TakenAs:
    """The kind of an experiment's data, and whether a setting or the recipe decides it."""
    if "data.kind" in _given(settings):
        return TakenAs(experiment.data.kind, f"as data.kind={experiment.data.kind} says")
    return TakenAs(experiment.data.kind, f"as the recipe {experiment.recipe} says")


def _given(settings: Sequence[str]) -> dict[str, str]:
    return {key.strip(): text.strip() for key, _, text in (setting.partition("=") for setting in settings)}


def _told(source: str, given: dict[str, str]) -> TakenAs | None:
    """The kind that follows from the name of a data set, or from settings for one kind of data only."""
    if (said := given.get("data.kind")) is not None:
        # An invalid kind raises an error later, when the setting is applied.
        return TakenAs(next((kind for kind in OF_KINDS if kind == said), "pictures"), f"as data.kind={said} says")
    if source in SPEECH_SETS:
        return TakenAs("speech", f"because {source} is a data set of recordings")
    if speech := [key for key in given if key.startswith("speech.")]:
        return TakenAs("speech", f"because {speech[0]} is set, which is for speech only")
    likelihood = given.get("likelihood.name")
    if likelihood in ("vmf", "categorical"):
        return TakenAs("labels", f"because likelihood.name={likelihood} is set, which is for classes only")
    if labels := [key for key in given if key in OF_LABELS]:
        return TakenAs("labels", f"because {labels[0]} is set, which is for label maps only")
    if likelihood == "gaussian" or not OF_PICTURES.isdisjoint(given):
        setting = next((key for key in given if key in OF_PICTURES), "likelihood.name=gaussian")
        return TakenAs("pictures", f"because {setting} is set, which is for images only")
    return None


def _seen(source: str) -> TakenAs:
    try:
        if source not in DATASETS and Path(source).exists() and holds_speech(source):
            return TakenAs("speech", f"because the {'folder' if Path(source).is_dir() else 'file'} holds recordings")
        return recognise(source)
    except OSError:
        return TakenAs("pictures", "because it cannot be read")  # loading it raises the reason
