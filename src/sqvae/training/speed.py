"""The duration of training: measured before it starts, and estimated while it runs."""

import statistics
import time
from dataclasses import dataclass
from itertools import islice

import torch

from sqvae.training.loop import Training

WARM_UP, TIMED = 3, 8
"""Number of steps that are not timed, because the first ones take longer, and number of steps that are."""

BESIDES = 1.1
"""Duration of a run relative to that of its steps, including validation, checkpoints and images."""


def seconds_a_step(training: Training) -> float:
    """The duration of a step on this machine in seconds, measured on the first few.

    The training object can't be used afterwards. Every process takes part, and all get the same result.
    """
    times = []
    for indices in islice(training.batches(), WARM_UP + TIMED):
        start = time.monotonic()
        training.step(indices)
        float(training.mean_loss)  # waits for the device
        times.append(time.monotonic() - start)
    typical = statistics.median(times[WARM_UP:] or times)
    return float(training.accelerator.reduce(torch.tensor(typical, device=training.accelerator.device), "mean"))


def steps_within(minutes: float, seconds: float) -> int:
    """The number of steps in a run of a given number of minutes, for a duration of a step in seconds."""
    return max(1, round(60 * minutes / (BESIDES * seconds)))


def duration(steps: int, seconds: float) -> float:
    """The duration in seconds of a run with a given number of steps, for a duration of a step in seconds."""
    return BESIDES * steps * seconds


@dataclass
class Pace:
    """The measured speed of a run, including validation and checkpoints.

    Arguments:
        step: the step at which the measurement starts.
        time: the time at which the measurement starts.
    """

    step: int
    time: float

    def steps_per_second(self, step: int, time: float) -> float:
        """The average number of steps per second so far; 0 before the first step."""
        return (step - self.step) / max(time - self.time, 1e-9)

    def seconds_left(self, step: int, steps: int, time: float) -> float:
        """The remaining time in seconds at the average speed so far."""
        pace = self.steps_per_second(step, time)
        return (steps - step) / pace if pace else float("inf")


def in_words(seconds: float) -> str:
    """A duration in words: 40 seconds, 7 minutes, 2.5 hours."""
    if seconds < 90:
        return f"{max(1, round(seconds))} second{'s' if round(seconds) > 1 else ''}"
    if seconds < 90 * 60:
        return f"{round(seconds / 60)} minutes"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.1f} hours"
    return f"{seconds / 86400:.1f} days"
