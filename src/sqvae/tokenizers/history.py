"""Where a model comes from: how long it was trained, and what was measured of it."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from sqvae.config import Experiment
from sqvae.data import TakenAs
from sqvae.modality import MODALITIES
from sqvae.training import CheckpointError, RunFolder, read_json, read_records, write_json

FILE = "history.json"
"""Beside a model that has left its run."""

TAKEN_AS = "data_taken_as"
"""The entry of a `config.json` that says as what the data was taken, and why."""

NOUNS = ("pictures", "label_maps", "utterances")
"""Under which of these the results of an evaluation say how many there were."""


@dataclass(frozen=True)
class Measured:
    """What was measured on one set of data."""

    data: str
    """Its name: never where it lies."""
    split: str
    measures: Mapping[str, float]
    examples: int | None = None
    """How many there were; None where that was not written down."""

    @property
    def use(self) -> tuple[float, int] | None:
        """The perplexity of the codes, and how many were used; None for a continuous latent."""
        if "perplexity" not in self.measures or "codes_used" not in self.measures:
            return None
        return self.measures["perplexity"], int(self.measures["codes_used"])


@dataclass(frozen=True)
class History:
    """What is known of how a model came about. Nothing, for one that was not trained by `sqvae train`."""

    sqvae: str | None = None
    """The version that trained it."""
    epochs: int | None = None
    """After which its weights were kept,"""
    steps: int | None = None
    """and after how many steps."""
    measured: tuple[Measured, ...] = field(default=())
    taken_as: TakenAs | None = None
    """As what its data was taken, and why; None where that was not written down."""

    def on(self, data: str, split: str) -> Measured | None:
        """What was measured on a part of some data, by its public name."""
        return next((one for one in self.measured if (one.data, one.split) == (data, split)), None)

    def save(self, folder: Path) -> None:
        """Keep it beside a model."""
        write_json(folder / FILE, asdict(self))


def kept(taken_as: TakenAs) -> dict[str, Any]:
    """The entry of a `config.json` about what data was taken as."""
    return {TAKEN_AS: asdict(taken_as)}


def taken_as_of(experiment: Experiment, config: Mapping[str, Any]) -> TakenAs:
    """As what an experiment takes its data, and why: as its `config.json` has it, or else by its settings alone."""
    return _taken_as(config.get(TAKEN_AS)) or as_set(experiment)


def as_set(experiment: Experiment) -> TakenAs:
    """As what an experiment takes its data, where nothing is known of who has decided it."""
    return TakenAs(experiment.data.kind, f"as data.kind={experiment.data.kind} says")


def _taken_as(stored: Any) -> TakenAs | None:
    try:
        return TakenAs(**stored) if stored["kind"] in MODALITIES else None
    except (KeyError, TypeError):
        return None


def public_name(source: str) -> str:
    """The name of data without where it lies: a data set of a hub has it in full, a folder its last part."""
    return source if source.startswith("hf:") else Path(source).name or "data"


def history_of(folder: Path, config: Mapping[str, Any], fingerprint: str, source: str) -> History:
    """The history of the model in a checkpoint's folder: kept beside it, or from the run that the folder is part of.

    Arguments:
        config: of the checkpoint.
        fingerprint: of its weights. Results of others don't count.
        source: what it was trained on.
    """
    if (folder / FILE).exists():
        return _kept(folder / FILE)
    run, known = RunFolder(folder.parent), History(sqvae=config.get("sqvae"), taken_as=_taken_as(config.get(TAKEN_AS)))
    if folder.name != run.best.name or not run.log.exists():
        return known
    best = [record for record in read_records(run.log) if record.get("kind") == "validation" and record.get("best")]
    if best:
        validated = Measured(public_name(source), "validation", _validated(best[-1]), best[-1].get("examples"))
        known = replace(known, epochs=best[-1]["epoch"], steps=best[-1]["step"], measured=(validated,))
    return replace(known, measured=(*_results(run.path, fingerprint), *known.measured))


def _results(run: Path, fingerprint: str) -> Iterator[Measured]:
    """What `sqvae evaluate` has found, of these weights."""
    for path in sorted(run.glob("results-*.json")):
        with contextlib.suppress(CheckpointError, KeyError):  # a file of someone's own
            found = read_json(path)
            if found["fingerprint"] == fingerprint:
                number = next((found[noun] for noun in NOUNS if noun in found), None)
                yield Measured(public_name(found["data"]), found["split"], _numbers(found["measures"]), number)


def _kept(path: Path) -> History:
    """A history from its file; none from a file that is no longer whole, which is no reason not to use the model."""
    try:
        content = read_json(path)
        measured = tuple(Measured(**{**one, "measures": _numbers(one["measures"])}) for one in content.pop("measured"))
        taken_as = _taken_as(content.pop("taken_as", None))
        return History(**content, measured=measured, taken_as=taken_as)
    except (CheckpointError, KeyError, TypeError, AttributeError):
        return History()


PLACES = ("epoch", "step", "examples")
"""What a record of a validation has besides measures."""

AT_LIKELIEST = ("bound_nats", "bits_per_dimension")
"""Measures that validation takes at the likeliest codes, and `sqvae evaluate` at drawn ones: not to be compared."""


def _validated(record: Mapping[str, Any]) -> dict[str, float]:
    """What a validation has measured in the same way as `sqvae evaluate` does."""
    return {name: value for name, value in _numbers(record).items() if name not in AT_LIKELIEST}


def _numbers(record: Mapping[str, Any]) -> dict[str, float]:
    return {
        name: value
        for name, value in record.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and name not in PLACES
    }
