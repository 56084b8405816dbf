"""Sweeps of many runs, and the records of their results."""

from sqvae.sweeps.records import (
    STAGE,
    Planned,
    Record,
    Sequel,
    labels_of_records,
    load_pictures,
    load_record,
    load_records,
    record_path,
)
from sqvae.sweeps.sweep import Outcome, Sweep, SweepStoppedError

__all__ = [
    "STAGE",
    "Outcome",
    "Planned",
    "Record",
    "Sequel",
    "Sweep",
    "SweepStoppedError",
    "labels_of_records",
    "load_pictures",
    "load_record",
    "load_records",
    "record_path",
]
