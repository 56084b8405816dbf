"""What a trained prior is worth: what codes of the test set cost under it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqvae.config import PriorExperiment
from sqvae.data import Progress
from sqvae.runs.generation import PLACE, read_prior
from sqvae.runs.priors import prepare_prior
from sqvae.training import RunFolder, read_records, write_json

SPLIT = "test"
"""What a prior is judged on in the end."""


@dataclass(frozen=True)
class PriorResult:
    """What was measured of a prior."""

    experiment: PriorExperiment
    setting: str
    """Which prior, of which model, on how many examples."""
    fingerprint: str
    """Of the prior: equal only for equal weights."""
    examples: int
    measures: Mapping[str, float]
    """Bits and nats per code: under the prior, by the histogram of training codes, and with all codes as likely."""
    findings: tuple[str, ...]
    """Sentences about what is wrong with it, and what to do."""

    @property
    def record(self) -> dict[str, Any]:
        """The values that are kept in the prior's folder."""
        return {
            "setting": self.setting,
            "fingerprint": self.fingerprint,
            "examples": self.examples,
            "measures": self.measures,
        }


def evaluate_prior(prior: str | Path, *, progress: Progress | None = None) -> PriorResult:
    """Measure what the test set costs under a prior, and keep it in the prior's folder (results-test.json).

    Arguments:
        prior: the folder of the prior.
        progress: called with what is being done, how many are done and how many there are.
    """
    folder = RunFolder(prior)
    model, experiment, mark = read_prior(folder.path)
    prepared = prepare_prior(experiment, announce=lambda text: None, progress=progress)
    measures = prepared.evaluate(model, SPLIT, progress)
    number = len(prepared.test)
    setting = f"{experiment.prior.name}, seed {experiment.seed}, of {experiment.tokenizer}; {number:,} {SPLIT} examples"
    findings = (*_missed(folder, experiment), *_worse(folder, experiment, measures))
    result = PriorResult(experiment, setting, mark, number, measures, findings)
    write_json(folder.path / f"results-{SPLIT}.json", result.record)
    return result


def is_own_prior(run: str | Path, prior: str | Path) -> bool:
    """Whether a prior lies where its run looks for one."""
    return Path(prior).resolve() == (Path(run) / PLACE).resolve()


def _missed(folder: RunFolder, experiment: PriorExperiment) -> tuple[str, ...]:
    """That it has ended before its likelihood was as wanted."""
    until = experiment.training.until
    losses = [one["loss_per_dimension"] for one in read_records(folder.log) if one["kind"] == "validation"]
    if until is None or min(losses, default=math.inf) <= until:
        return ()
    return (f"{until:g} nats per code on the validation set were not reached",)


def _worse(folder: RunFolder, experiment: PriorExperiment, measures: Mapping[str, float]) -> tuple[str, ...]:
    """That a prior is of no use, and what to do."""
    cost, known = measures["bits_per_code"], measures["histogram_bits_per_code"]
    if cost < known:
        return ()
    plan = experiment.training
    longer = f"--epochs {2 * plan.epochs}" if plan.steps is None else f"--steps {2 * plan.steps}"
    return (
        f"the prior is worse than the histogram of codes, {cost:.3f} bits per code against {known:.3f}: files that are "
        f"compressed with it become larger, and its samples tell little. Train it longer (sqvae resume {folder} "
        f"{longer}), or make it larger, or smaller if its cost on validation rose again (prior.channels, prior.layers)",
    )
