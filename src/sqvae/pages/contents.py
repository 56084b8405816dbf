"""The contents of a run's page: the run with its model, data and prior, as far as they are available."""

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
"""The part of the data from which examples are taken."""

NO_CHECKPOINT = "there is no checkpoint yet"
CONTINUOUS = "this model has a continuous latent, and no codes"
LEVELS = "this model has several levels of codes, and this shows codes of one resolution"
"""Reasons why parts of a page are missing."""


@dataclass(frozen=True)
class PageOptions:
    """The options for a page."""

    source: str | None
    """A path or the name of a data set; None: the data of the run."""
    prior: Path | None
    """The folder of the prior; None: the prior of the run."""
    examples: int
    """The number of held-out examples."""
    progress: Progress
    announce: Announce


@dataclass(frozen=True)
class RunContents:
    """A run with its model, data and prior, as far as they are available."""

    run: Path
    folder: RunFolder
    experiment: Experiment
    config: Mapping[str, Any]
    tokenizer: Any
    """The model; None before the first checkpoint."""
    held_out: Any
    """The held-out examples; None if they are not available."""
    data: str
    """The name of the set of these examples."""
    no_data: str
    """The reason why there are no held-out examples."""
    generator: Generator | None
    """The prior; None if it is not available."""
    no_prior: str
    """The reason why there is no prior."""
    missing: list[str] = field(default_factory=list)
    """Sentences about everything that is missing on the page. They are added while the page is written."""

    @property
    def page_view(self) -> PageView:
        """The parts of the page that depend on the kind of data."""
        view: PageView = modality_of(self.experiment.kind).page
        return view

    def clean(self, text: str) -> str:
        """A text without the paths of files on this machine."""
        return without_places(text, self.places)

    @property
    def places(self) -> list[str]:
        """Paths that texts may contain."""
        return [self.experiment.data.source, str(self.run.resolve()), str(self.run)]

    def absent(self, part: str, reason: str) -> str:
        """A placeholder as HTML for a missing part of the page, which is also added to :attr:`missing`."""
        self.missing.append(f"{part}: {reason}")
        return absent(f"{part} can't be shown", self.clean(reason))


def load_contents(run: Path, options: PageOptions) -> RunContents:
    """Load a run with its data and its prior, as far as they are available."""
    check_there(run)
    folder = check_run(run)
    experiment, config = read_experiment(folder)
    tokenizer = load(run) if folder.holds_something() else None
    held_out, data, no_data = None, "", NO_CHECKPOINT
    generator, no_prior = None, NO_CHECKPOINT
    if tokenizer is not None:
        held_out, data, no_data = _held_out(run, tokenizer, options)
        generator, no_prior = _prior(run, tokenizer, options)
    return RunContents(run, folder, experiment, config, tokenizer, held_out, data, no_data, generator, no_prior)


def _held_out(run: Path, tokenizer: Tokenizer, options: PageOptions) -> tuple[Any, str, str]:
    """The held-out examples and the name of their set, or None and the reason why there are none."""
    try:
        source, prepared = data_of_run(
            run, tokenizer, options.source, progress=options.progress, announce=options.announce
        )
    except (OSError, ValueError, ImportError) as failure:
        if options.source is not None:
            raise
        return None, "", as_typed(str(failure))
    name, held_out = f"{SPLIT} {prepared.noun}s of {Path(source).name}", prepared.part(SPLIT)
    return (held_out, name, "") if len(held_out) else (None, "", f"there are no {name}")


def _prior(run: Path, tokenizer: Tokenizer, options: PageOptions) -> tuple[Generator | None, str]:
    """The prior over the codes, or None and the reason why there is none."""
    if not tokenizer.is_discrete:
        return None, CONTINUOUS
    if tokenizer.levels > 1:
        return None, LEVELS
    if not has_prior(run, options.prior):
        return None, "the run has no prior yet: train one with `sqvae train-prior`"
    try:
        return load_generator(run, options.prior), ""
    except CheckpointError as failure:
        if options.prior is not None:
            raise
        return None, str(failure)
