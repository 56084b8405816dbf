"""Those who are told what happens in training: logs, progress bars, pictures."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from sqvae.files import write_text


@dataclass(frozen=True)
class Position:
    """Where a run stands."""

    epoch: int
    """Epochs finished."""
    batch: int
    """Batches of the present epoch that are done."""
    step: int
    """Steps since the beginning."""
    steps: int
    """Of the whole run."""
    batches: int
    """Of an epoch."""

    @property
    def epochs(self) -> int:
        """Of the whole run, the last of which may be cut short."""
        begun = self.step - self.batch
        return self.epoch + max(0, -(-(self.steps - begun) // self.batches))

    def __str__(self) -> str:
        epoch = self.epoch if self.epoch == self.epochs else self.epoch + 1
        return f"epoch {epoch} of {self.epochs}, step {self.step:,} of {self.steps:,}"


@dataclass(frozen=True)
class Validation:
    """What validation found."""

    loss: float
    """Per dimension: what the plateau rule and the choice of the best checkpoint go by."""
    metrics: Mapping[str, float]
    warnings: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()
    """How often each code was used."""
    originals: Tensor | None = field(default=None, repr=False)
    """A few examples, (n, ...),"""
    reconstructions: Tensor | None = field(default=None, repr=False)
    """what became of them,"""
    errors: Tensor | None = field(default=None, repr=False)
    """and where that is wrong;"""
    classes: tuple[tuple[str, str], ...] = ()
    """of label maps, the names and colours (#rrggbb) of the classes that occur in them, the most frequent first."""
    examples: int | None = None
    """How many there were in all, where that is to be written down."""


class Watcher:
    """Does nothing; those who watch override what they want to hear of. Only the first process has watchers."""

    def started(self, position: Position) -> None:
        """Training begins, or goes on, from here."""

    def stepped(self, position: Position, rate: float, loss: Tensor) -> None:
        """A step is done. Called after each, so it had better be quick.

        Arguments:
            rate: the learning rate.
            loss: (), the mean of the last steps. To read it is to wait for the device.
        """

    def recorded(self, position: Position, statistics: Mapping[str, float]) -> None:
        """Statistics of the last steps."""

    def validated(self, position: Position, validation: Validation, best: bool) -> None:
        """An epoch is done and validated."""

    def warned(self, position: Position, message: str) -> None:
        """Something is not as it should be."""

    def finished(self, position: Position) -> None:
        """The run is over, or interrupted."""


class JsonLines(Watcher):
    """One JSON object a line: {"kind": "step" | "validation" | "warning", "epoch": ..., "step": ..., ...}.

    A resumed run first cuts off what the lost steps had written.
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
    """The records of a run. A last line that a kill has cut short is left out."""
    records = []
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                records.append(json.loads(line))
            except ValueError:
                break
    return records


class TensorBoard(Watcher):
    """The same numbers as curves for TensorBoard."""

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
