"""What a run's folder tells of its training."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqvae.config import PriorExperiment
from sqvae.runs.run import read_experiment
from sqvae.training import CheckpointError, RunFolder, read_json, read_records


def processes_of(run: str | Path) -> int:
    """The number of processes that a run was trained in on this machine; 1 where it does not say."""
    return int(_training_state(Path(run)).get("processes", 1))


def is_unfinished(run: str | Path) -> bool:
    """Whether a run has not come to the end of its plan."""
    state, folder = _training_state(Path(run)), RunFolder(run)
    if not state or not folder.config.exists():
        return False
    best = float("inf") if state["best"] is None else state["best"]
    plan = read_experiment(folder)[0].training
    return state["batch"] > 0 or not plan.is_over(state["epoch"], state["step"], best)


def is_prior(run: str | Path) -> bool:
    """Whether a folder is that of a prior, rather than of a model."""
    with suppress(CheckpointError):
        return PriorExperiment.entry in read_json(RunFolder(run).config)
    return False


def steps_of(run: str | Path) -> int:
    """How many steps the newest checkpoint has trained for, or before the first checkpoint, the records."""
    folder = RunFolder(run)
    state = folder.last / "training.json"
    if state.exists():
        return int(read_json(state)["step"])
    return max((record["step"] for record in read_records(folder.log)), default=0)


def last_temperature(run: str | Path) -> float | None:
    """The temperature of the relaxation when a run was last recorded; None where nothing is recorded."""
    recorded = [record for record in read_records(RunFolder(run).log) if "temperature" in record]
    return recorded[-1]["temperature"] if recorded else None


def check_run(run: str | Path) -> RunFolder:
    """The folder of a run. It raises if it is that of something else, such as an exported model."""
    folder = RunFolder(run)
    if not folder.config.exists() or (folder.path / "model.safetensors").exists():
        raise CheckpointError(f"{run} is no run: give the folder that `sqvae train` has written")
    return folder


def _training_state(run: Path) -> dict[str, Any]:
    """What a run's newest checkpoint says about its training; nothing where there is none."""
    try:
        state = json.loads((run / "last" / "training.json").read_text())
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}
