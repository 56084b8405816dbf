"""Watchers, which are notified of the events of training: logs, progress bars, images."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from sqvae.files import write_text


@dataclass(frozen=True)
class Position:
    """The current position of a run."""

    epoch: int
    """Number of finished epochs."""
    batch: int
    """Number of finished batches of the current epoch."""
    step: int
    """Number of steps since the beginning."""
    steps: int
    """Number of steps of the whole run."""
    batches: int
    """Number of batches in an epoch."""

    @property
    def epochs(self) -> int:
        """Number of epochs of the whole run; the last may be incomplete."""
        begun = self.step - self.batch
        return self.epoch + max(0, -(-(self.steps - begun) // self.batches))

    def __str__(self) -> str:
        epoch = self.epoch if self.epoch == self.epochs else self.epoch + 1
        return f"epoch {epoch} of {self.epochs}, step {self.step:,} of {self.steps:,}"


@dataclass(frozen=True)
class Validation:
    """The results of a validation."""

    loss: float
    """The loss per dimension, which the plateau schedule and the choice of the best checkpoint use."""
    metrics: Mapping[str, float]
    warnings: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()
    """The number of uses of each code."""
    originals: Tensor | None = field(default=None, repr=False)
    """A few examples, (n, ...)."""
    reconstructions: Tensor | None = field(default=None, repr=False)
    """The reconstructions of these examples."""
    errors: Tensor | None = field(default=None, repr=False)
    """The errors of these reconstructions."""
    classes: tuple[tuple[str, str], ...] = ()
    """The names and colours (#rrggbb) of the classes in these examples, for label maps, the most frequent first."""
    examples: int | None = None
    """The total number of examples, if it is to be recorded."""


class Watcher:
    """Base class whose methods do nothing; subclasses override them. Only the first process has watchers."""

    def started(self, position: Position) -> None:
        """Training starts or resumes at this position."""

    def stepped(self, position: Position, rate: float, loss: Tensor) -> None:
        """A step is done. This is called after each step, so it should be fast.

        Arguments:
            position: the position after the step.
            rate: the learning rate.
            loss: (), the mean loss of the last steps. Reading it waits for the device.
        """

    def recorded(self, position: Position, statistics: Mapping[str, float]) -> None:
        """Statistics of the last steps are available."""

    def validated(self, position: Position, validation: Validation, best: bool) -> None:
        """An epoch is done and validated."""

    def warned(self, position: Position, message: str) -> None:
        """A warning."""

    def finished(self, position: Position) -> None:
        """The run is finished or interrupted."""


class JsonLines(Watcher):
    """A log with one JSON object per line: {"kind": "step" | "validation" | "warning", "epoch": ..., "step": ..., ...}.

    A resumed run first removes the records of steps after its checkpoint.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def started(self, position: Position) -> None:
        if self.path.exists():
            kept = [
                record
                for record in read_records(self.path)
                if record["step"] <= position.step and record["epoch"] <= position.epoch
            ]
            write_text(self.path, "".join(json.dumps(record) + "\n" for record in kept))

    def recorded(self, position: Position, statistics: Mapping[str, float]) -> None:
        self._write("step", position, statistics)

    def validated(self, position: Position, validation: Validation, best: bool) -> None:
        extra: dict[str, Any] = {"best": best}
        if validation.examples is not None:
            extra["examples"] = validation.examples
        if validation.counts:
            extra["counts"] = list(validation.counts)
        self._write("validation", position, {"loss_per_dimension": validation.loss, **validation.metrics, **extra})

    def warned(self, position: Position, message: str) -> None:
        self._write("warning", position, {"message": message})

    def _write(self, kind: str, position: Position, content: Mapping[str, Any]) -> None:
        record = {"kind": kind, "epoch": position.epoch, "step": position.step, **content}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


def read_records(path: Path) -> list[dict[str, Any]]:
    """The records of a run. A last line that was truncated by a kill is ignored."""
    records = []
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                records.append(json.loads(line))
            except ValueError:
                break
    return records


class TensorBoard(Watcher):
    """The same values as curves for TensorBoard."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._writer: Any = None

    def started(self, position: Position) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(self.folder), purge_step=position.step + 1)

    def recorded(self, position: Position, statistics: Mapping[str, float]) -> None:
        self._write("train", position, statistics)

    def validated(self, position: Position, validation: Validation, best: bool) -> None:
        self._write("validation", position, {"loss_per_dimension": validation.loss, **validation.metrics})

    def finished(self, position: Position) -> None:
        if self._writer is not None:
            self._writer.close()

    def _write(self, kind: str, position: Position, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._writer.add_scalar(f"{kind}/{name}", value, position.step)
