"""Load a run with its prior and its held-out data, as far as they are available."""

from pathlib import Path
from typing import Any

from sqvae.data import Progress
from sqvae.explore.explorer import Explorer, explorer_of
from sqvae.reports.wording import as_typed
from sqvae.runs import Announce, Generator, data_of_run, has_prior, load_generator
from sqvae.tokenizers import Tokenizer, load
from sqvae.training import CheckpointError


def open_run(
    run: str | Path,
    *,
    data: str | None = None,
    prior: str | Path | None = None,
    progress: Progress | None = None,
    announce: Announce = print,
    warn: Announce = print,
) -> Explorer:
    """Load a run with its prior and its validation data for the page of `sqvae explore`.

    Arguments:
        run: the folder of a run or of a checkpoint, or ``hf:OWNER/NAME``.
        data: a path, or the name of a data set; None: the data of the run.
        prior: the folder of the prior; None: the prior of the run.
        progress: called with the name of the current task, the number of finished items, and their total.
        announce: called with sentences about the data.
        warn: called with a sentence if the prior of the run can't be used.
    """
    tokenizer: Tokenizer = load(run)
    held_out, missing = None, ""
    if tokenizer.is_discrete:
        held_out, missing = _held_out(run, tokenizer, data, progress, announce)
    return explorer_of(run, tokenizer, _prior(run, prior, warn), held_out, missing)


def _prior(run: str | Path, folder: str | Path | None, warn: Announce) -> Generator | None:
    if not has_prior(run, folder):
        return None
    try:
        return load_generator(run, folder)
    except CheckpointError as failure:
        if folder is not None:
            raise
        warn(f"the prior is not used: {failure}")
        return None


def _held_out(
    run: str | Path, tokenizer: Tokenizer, data: str | None, progress: Progress | None, announce: Announce
) -> tuple[Any, str]:
    """The validation set, or None and the reason why it is not available."""
    try:
        prepared = data_of_run(run, tokenizer, data, progress=progress, announce=announce).prepared
    except (OSError, ValueError, ImportError) as failure:
        if data is not None:
            raise
        return None, as_typed(str(failure))
    return prepared.part("validation"), ""
