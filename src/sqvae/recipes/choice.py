"""Choose the recipe for your own data, from the settings or from the data itself."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqvae.config import Experiment
from sqvae.data import TakenAs
from sqvae.modality import MODALITIES, modality_of

IMAGES = ("labels", "pictures")
"""Kinds of data that are told apart by what the images of a source look like: where both could be, they are images."""


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
    return Choice(modality_of(taken_as.kind).recipe, taken_as)


def as_told(experiment: Experiment, settings: Sequence[str] = ()) -> TakenAs:
    """The kind of an experiment's data, and whether a setting or the recipe decides it."""
    if "data.kind" in _given(settings):
        return TakenAs(experiment.data.kind, f"as data.kind={experiment.data.kind} says")
    return TakenAs(experiment.data.kind, f"as the recipe {experiment.recipe} says")


def _given(settings: Sequence[str]) -> dict[str, str]:
    return {key.strip(): text.strip() for key, _, text in (setting.partition("=") for setting in settings)}


def _told(source: str, given: dict[str, str]) -> TakenAs | None:
    """By `data.kind`, by the name of a data set, or by a setting that makes sense for one kind of data alone."""
    if (said := given.get("data.kind")) is not None:
        # What is no kind is an error where it is set.
        return TakenAs(said if said in MODALITIES else "pictures", f"as data.kind={said} says")
    for kind in sorted(MODALITIES, key=lambda kind: kind == "pictures"):  # which any setting of a Gaussian may mean
        if (reason := modality_of(kind).told(source, given)) is not None:
            return TakenAs(kind, reason)
    return None


def _seen(source: str) -> TakenAs:
    """By a look at the data. Images come last: whatever is there, they are what is complained about."""
    try:
        for kind in sorted(MODALITIES, key=lambda kind: kind in IMAGES):
            if (found := modality_of(kind).recognised(source)) is not None:
                return found
    except OSError:
        pass
    return TakenAs("pictures", "because it cannot be read")  # loading it raises the reason
