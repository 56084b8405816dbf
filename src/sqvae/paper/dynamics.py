"""Training curves for the figures on self-annealing."""

import statistics
from collections.abc import Sequence

from sqvae.sweeps import Record


def epochs_of(record: Record) -> list[float]:
    """The epoch of each point of a run's curves."""
    per_epoch = record.steps / max(1, record.experiment["training"]["epochs"])
    return [step / per_epoch for step in record.training["step"]]


def ends_of(records: Sequence[Record], name: str) -> tuple[float, float]:
    """The first and last value of a curve, averaged over runs and over a twentieth of the points, because batches
    are noisy."""
    ends = [_ends(record.training[name]) for record in records]
    return statistics.fmean(first for first, _ in ends), statistics.fmean(last for _, last in ends)


def _ends(values: Sequence[float]) -> tuple[float, float]:
    some = max(1, len(values) // 20)
    return statistics.fmean(values[:some]), statistics.fmean(values[-some:])
