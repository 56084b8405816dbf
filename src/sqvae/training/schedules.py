"""Schedules of the learning rate, and of what a quantizer needs at each step: temperature, weights and shares."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping

from sqvae.quantizers import Stage
from sqvae.training.plan import Plan

State = dict[str, float | int | None]


def temperature(plan: Plan, step: int, steps: int) -> float:
    r"""The temperature of the relaxation, :math:`\tau = \max(e^{-\lambda \max(t - t_0, 0)}, \tau_{min})`.

    :math:`\lambda` is the plan's decay or, if the plan has a final temperature, :math:`-\log \tau_{end} / (T - t_0)`.

    Arguments:
        plan: the plan; it contains the share of the run in which the temperature stays at 1, up to :math:`t_0`.
        step: the current step, t.
        steps: the number of steps of the whole run, T.
    """
    start = plan.temperature_hold * steps
    decay = plan.temperature_decay
    if plan.temperature_end is not None:
        decay = -math.log(plan.temperature_end) / (steps - start)
    return max(math.exp(-decay * max(step - start, 0)), plan.temperature_minimum)


def stage(plan: Plan, step: int, steps: int) -> Stage:
    r"""The stage of a quantizer at a step: :math:`\tau`, :math:`\beta = \beta_{end}^{t/T}`,
    :math:`\lambda = \lambda_{end}\, t/T`, how strongly codebook usage is pulled towards uniform, and the price of
    codes once assignments are certain."""
    share = step / steps
    return Stage(
        temperature(plan, step, steps),
        plan.latent_weight_end**share,
        plan.straight_through_end * share,
        plan.evenness,
        plan.price_at(step, steps),
    )


class Schedule(ABC):
    """A learning rate that depends on the step or on the validation loss."""

    @abstractmethod
    def rate(self, step: int) -> float:
        """The learning rate of a step."""

    def validated(self, loss: float) -> None:  # noqa: B027  most ignore it
        """Update the schedule with a validation loss."""

    def state(self) -> State:
        """The state to save in a checkpoint."""
        return {}

    def restore(self, state: State) -> None:  # noqa: B027  most have none
        """Restore the state from a checkpoint."""


class Constant(Schedule):
    """A constant learning rate."""

    def __init__(self, learning_rate: float) -> None:
        self.learning_rate = learning_rate

    def rate(self, step: int) -> float:
        return self.learning_rate


class Cosine(Schedule):
    r"""A learning rate that falls to 0 by a cosine: the initial rate times :math:`\tfrac12 (1 + \cos(\pi t / T))`."""

    def __init__(self, learning_rate: float, steps: int) -> None:
        self.learning_rate = learning_rate
        self.steps = steps

    def rate(self, step: int) -> float:
        return self.learning_rate * (1 + math.cos(math.pi * min(step / self.steps, 1))) / 2


class Halved(Schedule):
    """A learning rate that is halved after certain shares of the run.

    Arguments:
        learning_rate: the initial learning rate.
        steps: number of steps of the whole run.
        shares: the shares of the run after which it is halved; by default those of the paper's runs on speech, 300,000
            and 400,000 of 500,000 steps.
    """

    def __init__(self, learning_rate: float, steps: int, shares: tuple[float, ...] = (0.6, 0.8)) -> None:
        self.learning_rate = learning_rate
        self.milestones = [share * steps for share in shares]

    def rate(self, step: int) -> float:
        passed = sum(step >= milestone for milestone in self.milestones)
        return self.learning_rate * math.pow(0.5, passed)


class Plateau(Schedule):
    """The paper's schedule: halve the learning rate when the validation loss has not improved for some epochs.

    Improvement is measured in absolute terms, because the loss of a continuous model passes through 0.

    Arguments:
        learning_rate: the initial learning rate.
        patience: number of consecutive epochs without improvement after which it is halved.
        tolerance: the smallest decrease of the loss per dimension that counts as improvement.
    """

    def __init__(self, learning_rate: float, patience: int, tolerance: float = 1e-4) -> None:
        self.learning_rate = learning_rate
        self.patience = patience
        self.tolerance = tolerance
        self._best: float | None = None
        self._waited = 0

    def rate(self, step: int) -> float:
        return self.learning_rate

    def validated(self, loss: float) -> None:
        if self._best is None or loss < self._best - self.tolerance:
            self._best, self._waited = loss, 0
            return
        self._waited += 1
        if self._waited >= self.patience:
            self.learning_rate /= 2
            self._waited = 0

    def state(self) -> State:
        return {"learning_rate": self.learning_rate, "best": self._best, "waited": self._waited}

    def restore(self, state: State) -> None:
        self.learning_rate = float(state["learning_rate"] or 0)
        self._best = state["best"]
        self._waited = int(state["waited"] or 0)


SCHEDULES: Mapping[str, Callable[[Plan, int], Schedule]] = {
    "plateau": lambda plan, steps: Plateau(plan.learning_rate, plan.patience, plan.tolerance),
    "cosine": lambda plan, steps: Cosine(plan.learning_rate, steps),
    "halved": lambda plan, steps: Halved(plan.learning_rate, steps),
    "constant": lambda plan, steps: Constant(plan.learning_rate),
}
"""All schedules by name. Each takes the plan and the number of steps of the whole run."""
