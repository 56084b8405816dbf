"""How long training takes: measured before it begins, and seen while it goes on."""

import statistics
import time
from dataclasses import dataclass
from itertools import islice

import torch

from sqvae.training.loop import Training

WARM_UP, TIMED = 3, 8
"""Steps that are not counted, since the first ones take longer, and steps that are."""

BESIDES = 1.1
"""Validation, checkpoints and pictures make a run so many times as long as its steps."""


def seconds_a_step(training: Training) -> float:
    """What a step takes on this machine, measured on the first few.

    The training is used up: to train, make another. Every process takes part, and all get the same answer.
    """
    times = []
    for indices in islice(training.batches(), WARM_UP + TIMED):
        start = time.monotonic()
        training.step(indices)
        float(training.mean_loss)  # waits until the device is done
        times.append(time.monotonic() - start)
    typical = statistics.median(times[WARM_UP:] or times)
    return float(training.accelerator.reduce(torch.tensor(typical, device=training.accelerator.device), "mean"))


def steps_within(minutes: float, seconds: float) -> int:
    """How many steps of so many seconds a run of so many minutes has."""
    return max(1, round(60 * minutes / (BESIDES * seconds)))


def duration(steps: int, seconds: float) -> float:
    """The seconds that a run of so many steps takes, each of so many seconds."""
    return BESIDES * steps * seconds


@dataclass
class Pace:
    """How fast a run goes, seen from outside; validations and checkpoints count.

    Arguments:
        step: where it stands when the clock is started,
        time: and what the clock says then.
    """

    step: int
    time: float

    def steps_per_second(self, step: int, time: float) -> float:
        """On average so far; 0 before the first."""
        return (step - self.step) / max(time - self.time, 1e-9)

    def seconds_left(self, step: int, steps: int, time: float) -> float:
        """Until all steps are done, as fast as so far."""
        pace = self.steps_per_second(step, time)
        return (steps - step) / pace if pace else float("inf")


def in_words(seconds: float) -> str:
    """A time as people say it: 40 seconds, 7 minutes, 2.5 hours."""
    if seconds < 90:
        return f"{max(1, round(seconds))} second{'s' if round(seconds) > 1 else ''}"
    if seconds < 90 * 60:
        return f"{round(seconds / 60)} minutes"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.1f} hours"
    return f"{seconds / 86400:.1f} days"
