"""A run with all that can be found of it, for the page about it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqvae.config import Experiment
from sqvae.data import Progress
from sqvae.modalities.page import PageView
from sqvae.modality import modality_of
from sqvae.reports.page import absent
from sqvae.reports.run_page import without_places
from sqvae.reports.wording import as_typed
from sqvae.runs import Announce, Generator, check_run, data_of_run, has_prior, load_generator, read_experiment
from sqvae.tokenizers import Tokenizer, check_there, load
from sqvae.training import CheckpointError, RunFolder

SPLIT = "test"
"""What examples are taken from."""

NOTHING_YET = "there is no checkpoint yet"
CONTINUOUS = "this model has a continuous latent, and no codes"


@dataclass(frozen=True)
class Wanted:
    """What is to be shown."""

    source: str | None
    """The data; None for the run's own."""
    prior: Path | None
    examples: int
    progress: Progress
    announce: Announce


@dataclass(frozen=True)
class Shown:
    """A run with all that could be found of it."""

    run: Path
    folder: RunFolder
    experiment: Experiment
    config: Mapping[str, Any]
    tokenizer: Any
    """None before the first checkpoint."""
    held_out: Any
    """Examples; None where they can't be had,"""
    data: str
    """the name of the set that they are from,"""
    no_data: str
    """and why they can't."""
    generator: Generator | None
    no_prior: str
    missing: list[str] = field(default_factory=list)
    """What can't be shown, in sentences; filled as the page is made."""

    @property
    def view(self) -> PageView:
        """How its kind of data is shown."""
        view: PageView = modality_of(self.experiment.kind).page
        return view

    def clean(self, text: str) -> str:
        """A sentence without the places of files on this machine."""
        return without_places(text, self.places)

    @property
    def places(self) -> list[str]:
        """Folders that sentences may name."""
        return [self.experiment.data.source, str(self.run.resolve()), str(self.run)]

    def absent(self, what: str, reason: str) -> str:
        """HTML for what can't be shown, which is remembered."""
        self.missing.append(f"{what}: {reason}")
        return absent(f"{what} can't be shown", self.clean(reason))


def found(run: Path, wanted: Wanted) -> Shown:
    """The run with its data and its prior, as far as they can be had."""
    check_there(run)
    folder = check_run(run)
    experiment, config = read_experiment(folder)
    tokenizer = load(run) if folder.holds_something() else None
    held_out, data, no_data = None, "", NOTHING_YET
    generator, no_prior = None, NOTHING_YET
    if tokenizer is not None:
        held_out, data, no_data = _held_out(run, tokenizer, wanted)
        generator, no_prior = _prior(run, tokenizer, wanted)
    return Shown(run, folder, experiment, config, tokenizer, held_out, data, no_data, generator, no_prior)


def _held_out(run: Path, tokenizer: Tokenizer, wanted: Wanted) -> tuple[Any, str, str]:
    """Examples that were not trained on, with the name of their set; or none, and why."""
    try:
        source, prepared = data_of_run(
            run, tokenizer, wanted.source, progress=wanted.progress, announce=wanted.announce
        )
    except (OSError, ValueError, ImportError) as failure:
        if wanted.source is not None:
            raise
        return None, "", as_typed(str(failure))
    where, held_out = f"{SPLIT} {prepared.noun}s of {Path(source).name}", prepared.part(SPLIT)
    return (held_out, where, "") if len(held_out) else (None, "", f"there are no {where}")


def _prior(run: Path, tokenizer: Tokenizer, wanted: Wanted) -> tuple[Generator | None, str]:
    """A prior over the codes; or none, and why."""
    if not tokenizer.is_discrete:
        return None, CONTINUOUS
    if not has_prior(run, wanted.prior):
        return None, "it has no prior yet: train one with `sqvae train-prior`"
    try:
        return load_generator(run, wanted.prior), ""
    except CheckpointError as failure:
        if wanted.prior is not None:
            raise
        return None, str(failure)
