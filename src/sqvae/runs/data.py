"""The data that a trained run is judged and shown on."""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from sqvae.data import Progress
from sqvae.data.named import is_named
from sqvae.runs.prepared import Announce, Prepared, prepare
from sqvae.tokenizers import Tokenizer
from sqvae.training import RunFolder, read_json


class DataOfRun(NamedTuple):
    """Data as a run's model takes it."""

    source: str
    """Its path, or its name."""
    prepared: Prepared
    """Its training, validation and test sets."""


def data_of_run(
    run: str | Path,
    tokenizer: Tokenizer,
    data: str | None = None,
    *,
    progress: Progress | None = None,
    announce: Announce = print,
) -> DataOfRun:
    """Load what a run was trained on, or other data as its model takes it.

    Arguments:
        run: the run's folder.
        tokenizer: its model, as `sqvae.load` gives it.
        data: a path, or the name of a set; None: what the run was trained on.
        progress: called with what is being done, how many are done and how many there are.
        announce: takes sentences about the data, such as that it has changed since the run was trained.
    """
    experiment = tokenizer.experiment
    settings = experiment.data
    if data is None or (Path(data).exists() and str(Path(data).resolve()) == settings.source):
        data = settings.source
    if data == settings.source and not is_named(data) and not Path(data).exists():
        raise FileNotFoundError(f"{data}, which {run} was trained on, is not here: say where the data is with `data=`")
    asked = replace(experiment, data=replace(settings, source=data))
    prepared = prepare(asked, announce=announce, progress=progress)
    config = RunFolder(run).config
    before = read_json(config).get("data_key") if data == settings.source and config.exists() else None
    if before not in (None, prepared.key):
        announce(f"the {prepared.noun}s have changed since this run was trained: it may have trained on some of these")
    return DataOfRun(data, prepared)
