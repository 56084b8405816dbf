"""Training: one loop for all models, and checkpoints that survive a kill at any time."""

from sqvae.training.annealing import ANY_BUDGET, Annealing, any_budget
from sqvae.training.checkpoints import (
    Checkpoint,
    CheckpointError,
    fingerprint,
    read_checkpoint,
    read_json,
    write_checkpoint,
    write_json,
)
from sqvae.training.folder import RunFolder, no_such_folder
from sqvae.training.launch import is_first_process, is_launched, launch
from sqvae.training.loop import (
    Examples,
    Task,
    Training,
    TrainingDivergedError,
    TrainingStoppedError,
    first_process_first,
    leave_other_processes,
    make_accelerator,
    this_process,
)
from sqvae.training.order import Order, stream_seed
from sqvae.training.plan import Plan
from sqvae.training.schedules import SCHEDULES, Schedule, temperature
from sqvae.training.signals import StopSignals
from sqvae.training.speed import Pace, duration, in_words, seconds_a_step, steps_within
from sqvae.training.watchers import JsonLines, Position, TensorBoard, Validation, Watcher, read_records

__all__ = [
    "ANY_BUDGET",
    "SCHEDULES",
    "Annealing",
    "Checkpoint",
    "CheckpointError",
    "Examples",
    "JsonLines",
    "Order",
    "Pace",
    "Plan",
    "Position",
    "RunFolder",
    "Schedule",
    "StopSignals",
    "Task",
    "TensorBoard",
    "Training",
    "TrainingDivergedError",
    "TrainingStoppedError",
    "Validation",
    "Watcher",
    "any_budget",
    "duration",
    "fingerprint",
    "first_process_first",
    "in_words",
    "is_first_process",
    "is_launched",
    "launch",
    "leave_other_processes",
    "make_accelerator",
    "no_such_folder",
    "read_checkpoint",
    "read_json",
    "read_records",
    "seconds_a_step",
    "steps_within",
    "stream_seed",
    "temperature",
    "this_process",
    "write_checkpoint",
    "write_json",
]
