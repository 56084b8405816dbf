"""Which recipe suits a person's own data: by what they say of it, or by a look at it."""

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
"""Settings that say what the data is."""


@dataclass(frozen=True)
class Choice:
    """A recipe for some data, and as what it takes it."""

    recipe: str
    taken_as: TakenAs


def suitable(source: str, settings: Sequence[str] = ()) -> Choice:
    """The recipe for a person's own data: as the settings say, or else as the data looks.

    Arguments:
        source: a path, or a name.
        settings: what a person sets, each as "key=value".
    """
    taken_as = _told(source, _given(settings)) or _seen(source)
    return Choice(OF_KINDS[taken_as.kind], taken_as)


def as_told(experiment: Experiment, settings: Sequence[str] = ()) -> TakenAs:
    """As what an experiment takes its data where nobody had to look: as a setting says, or its recipe."""
    if "data.kind" in _given(settings):
        return TakenAs(experiment.data.kind, f"as data.kind={experiment.data.kind} says")
    return TakenAs(experiment.data.kind, f"as the recipe {experiment.recipe} says")


def _given(settings: Sequence[str]) -> dict[str, str]:
    return {key.strip(): text.strip() for key, _, text in (setting.partition("=") for setting in settings)}


def _told(source: str, given: dict[str, str]) -> TakenAs | None:
    """By the name of a set, and by settings that make sense for one kind of data alone."""
    if (said := given.get("data.kind")) is not None:
        # What is no kind is an error where it is set.
        return TakenAs(next((kind for kind in OF_KINDS if kind == said), "pictures"), f"as data.kind={said} says")
    if source in SPEECH_SETS:
        return TakenAs("speech", f"because {source} is a set of recordings")
    if speech := [key for key in given if key.startswith("speech.")]:
        return TakenAs("speech", f"because {speech[0]} is set, which is of speech alone")
    likelihood = given.get("likelihood.name")
    if likelihood in ("vmf", "categorical"):
        return TakenAs("labels", f"because likelihood.name={likelihood} is set, which is of classes alone")
    if labels := [key for key in given if key in OF_LABELS]:
        return TakenAs("labels", f"because {labels[0]} is set, which is of label maps alone")
    if likelihood == "gaussian" or not OF_PICTURES.isdisjoint(given):
        setting = next((key for key in given if key in OF_PICTURES), "likelihood.name=gaussian")
        return TakenAs("pictures", f"because {setting} is set, which is of pictures alone")
    return None


def _seen(source: str) -> TakenAs:
    try:
        if source not in DATASETS and Path(source).exists() and holds_speech(source):
            return TakenAs("speech", f"because the {'folder' if Path(source).is_dir() else 'file'} holds recordings")
        return recognise(source)
    except OSError:
        return TakenAs("pictures", "because it can't be looked at")  # why not is said when it is loaded
