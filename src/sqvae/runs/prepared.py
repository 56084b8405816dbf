"""An experiment with its data, of whatever kind: what a run needs, and what judges it."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Container
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from torch import nn

from sqvae.config import Experiment
from sqvae.data import Progress
from sqvae.modality import modality_of
from sqvae.runs.observation import Evaluation
from sqvae.tokenizers import describe
from sqvae.training import Examples, Plan, Task

EPOCH_STEPS = 200
"""An epoch has at least so many steps where the plan leaves the passes through the data open."""

Announce: TypeAlias = Callable[[str], None]
"""Takes sentences about the data."""


class Trainable(ABC):
    """What a run needs: nothing left open."""

    experiment: Any
    """An :class:`Experiment`, or whatever else has a `seed`, a plan for `training`, and the name of its `entry`."""

    drawn = False
    """Whether training examples are drawn anew each time, so that there is no saying how often one is met."""

    @property
    @abstractmethod
    def example(self) -> str:
        """What one of the training examples is called."""

    @property
    def becomes(self) -> str:
        """What is made of an example, in words; nothing where there is no more to say."""
        return ""

    @property
    @abstractmethod
    def key(self) -> str:
        """Of the data: equal only for equal data."""

    @property
    @abstractmethod
    def examples(self) -> Examples:
        """What is trained on."""

    @abstractmethod
    def new_model(self) -> nn.Module:
        """The untrained model, with the weights that the experiment's seed gives."""

    @abstractmethod
    def task(self, model: Any) -> Task:
        """What the training loop leaves to the kind of data."""

    @property
    def config(self) -> dict[str, Any]:
        """What is stored with every checkpoint."""
        return {**describe(self.experiment), "data_key": self.key}


class Prepared(Trainable):
    """An experiment with its data. Every kind of data has a class of this: see `sqvae.modality`."""

    experiment: Experiment
    data: Any
    """With `train`, `validation` and `test`, and a `key` that is equal only for equal data."""

    @property
    @abstractmethod
    def noun(self) -> str:
        """What one example is called."""

    @abstractmethod
    def evaluate(
        self,
        model: Any,
        split: str,
        *,
        batch_size: int,
        temperature: float | None = None,
        progress: Progress | None = None,
    ) -> Evaluation:
        """Measure a model on one of the sets, in every detail.

        Arguments:
            temperature: that of training, to compare single codes with the mixtures that training decodes.
        """

    @property
    def example(self) -> str:
        return self.noun

    @property
    def key(self) -> str:
        return str(self.data.key)

    def key_of(self, split: str) -> str:
        """Of one of the sets: equal only for equal examples in the same order."""
        names = "\0".join(self.part(split).names)
        return f"{self.key}-{split}-{hashlib.sha256(names.encode('utf-8', 'surrogateescape')).hexdigest()[:12]}"

    @property
    def key_of_sets(self) -> str:
        """Of all of them: equal only if each has the same examples in the same order."""
        return hashlib.sha256("".join(map(self.key_of, self.sizes)).encode()).hexdigest()

    def part(self, split: str) -> Any:
        """One of the sets by name."""
        return {"train": self.data.train, "validation": self.data.validation, "test": self.data.test}[split]

    @property
    def sizes(self) -> dict[str, int]:
        """How many examples there are in each set."""
        return {split: len(self.part(split)) for split in ("train", "validation", "test")}


def prepare(experiment: Experiment, *, announce: Announce = print, progress: Progress | None = None) -> Prepared:
    """Load the data, and decide from it what the experiment leaves open."""
    return modality_of(experiment.kind).prepare(experiment, announce=announce, progress=progress)


def settled_source(source: str, names: Container[str] = ()) -> str:
    """A source as a run remembers it: a name as it is, a path in full."""
    return source if source in names or not Path(source).exists() else str(Path(source).resolve())


def with_passes(plan: Plan, examples: int) -> Plan:
    """A plan that says how often an epoch goes through so many examples."""
    if plan.passes_per_epoch is not None:
        return plan
    steps = max(1, examples // min(plan.batch_size, examples))
    return replace(plan, passes_per_epoch=-(-EPOCH_STEPS // steps) if steps < EPOCH_STEPS else 1)
