"""What a person sees while something runs."""

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor

from sqvae.metrics.measures import MEASURES, is_main
from sqvae.reports.wording import as_typed
from sqvae.training import Pace, Position, Validation, Watcher, in_words

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


def note(text: str) -> None:
    """A sentence beside the results."""
    err.print(f"[dim]-[/] {escape(as_typed(text))}", soft_wrap=True)


def warning(text: str) -> None:
    """A sentence that a person should read."""
    err.print(f"[bold yellow]warning:[/] {escape(as_typed(text))}", soft_wrap=True)


@contextlib.contextmanager
def progress_bar() -> Iterator[Callable[[str, int, int], None]]:
    """A bar that is moved by calls with what is being done, how many are done and how many there are.

    It is there only while something is under way, since two bars can't be shown at once.
    """
    shown: dict[str, Progress] = {}

    def report(what: str, done: int, total: int) -> None:
        if what not in shown:
            columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            hide()
            shown[what] = Progress(*columns, console=err, transient=True, disable=not err.is_terminal)
            shown[what].add_task(what, total=total)
            shown[what].start()
        shown[what].update(shown[what].task_ids[0], completed=done, total=total)
        if done >= total:
            hide()

    def hide() -> None:
        while shown:
            shown.popitem()[1].stop()

    try:
        yield report
    finally:
        hide()


_VALIDATED = {
    "mse_db": "mse {:7.2f} dB²",
    "unexplained": "unexplained {:6.2f}%",
    "mse": "mse x 1000 {:7.3f}",
    "pixel_error": "wrong {:6.2f}%",
    "miou": "mIoU {:5.1f}%",
    "bits_per_code": "bits per code {:7.4f}",
}
"""How errors on the validation set are shown."""


FIRST_WORD = 10.0
"""Seconds of training after which it is said how long it will take."""

BETWEEN_LINES = 30.0
"""Seconds between two lines about the progress where there is no bar to see: in a file, or in a pipe."""

BETWEEN_LOSSES = 1.0
"""Seconds between two looks at the loss: each waits for the device."""


class TrainingBar(Watcher):
    """A bar over all steps with the numbers that matter, and a line for each validation.

    Where no bar can be seen, because the output goes to a file or a pipe, there is a line every half minute instead.

    Arguments:
        clock: tells the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._wide = err.width >= 110
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None if self._wide else 4),
            TextColumn("{task.percentage:.0f}%"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[status]}"),
            console=err,
            transient=True,
            disable=not err.is_terminal,  # a log file wants lines, not bars
        )
        self._task = self._progress.add_task("training", total=None, status="")
        self._clock = clock
        self._pace: Pace | None = None
        self._statistics: Mapping[str, float] = {}
        self._loss = math.nan
        self._looked = self._told = -math.inf

    def started(self, position: Position) -> None:
        self._progress.update(self._task, total=position.steps, completed=position.step)
        self._progress.start()

    def stepped(self, position: Position, rate: float, loss: Tensor) -> None:
        # Rich refreshes ten times a second by itself; setting a number costs little.
        epoch = f"{'epoch ' if self._wide else ''}{position.epoch + 1}/{position.epochs}"
        self._progress.update(self._task, completed=position.step, description=epoch)
        now = self._clock()
        if self._pace is None:
            self._pace, self._told = Pace(position.step, now), now  # the first step takes longer than others
        if now - self._looked >= BETWEEN_LOSSES:
            self._looked, self._loss = now, float(loss)
            self._show(position, self._pace, now)
        if now - self._told >= (BETWEEN_LINES if self._told > self._pace.time else FIRST_WORD):
            self._say(position, self._pace, now)
            self._told = now

    def recorded(self, position: Position, statistics: Mapping[str, float]) -> None:
        self._statistics = statistics

    def _show(self, position: Position, pace: Pace, now: float) -> None:
        """The loss and the speed, and what the last record says."""
        shown = {
            "mse_db": "mse {:.1f} dB²",
            "unexplained": "unexplained {:.1%}",
            "mse": "mse {:.4f}",
            "pixel_error": "wrong {:.1%}",
            "bits_per_code": "bits per code {:.3f}",
            "perplexity": "drawn perplexity {:.0f}",
            "variance": "var {:.3g}",
            "concentration": "conc {:.3g}",
            "temperature": "temp {:.2f}",
        }
        # In a narrow terminal there is room for the bar, the time left, the speed and the loss.
        there = [name for name in shown if self._wide and name in self._statistics]
        parts = [shown[name].format(self._statistics[name]) for name in there if is_main(name, self._statistics)]
        speed = [f"{pace.steps_per_second(position.step, now):.3g} steps/s"] if position.step > pace.step else []
        self._progress.update(self._task, status=" ".join([*speed, f"loss per example {self._loss:.0f}", *parts]))

    def _say(self, position: Position, pace: Pace, now: float) -> None:
        """How far it is and how long it will take: once, and where there is no bar, again and again."""
        first = self._told <= pace.time
        if not first and not self._progress.disable:
            return
        left = pace.seconds_left(position.step, position.steps, now)
        note(
            f"step {position.step:,} of {position.steps:,}, loss per example {self._loss:,.4g}, "
            f"{pace.steps_per_second(position.step, now):.3g} steps a second, about {in_words(left)} left"
        )

    def validated(self, position: Position, validation: Validation, best: bool) -> None:
        measures = validation.metrics
        width = int(math.log10(position.epochs)) + 1
        loss = "nats per code" if "bits_per_code" in measures else "loss per dimension"
        parts = [f"epoch {position.epoch:>{width}}/{position.epochs}", f"{loss} {validation.loss:8.4f}"]
        shown = [name for name in _VALIDATED if name in measures and is_main(name, measures)]
        parts += [_VALIDATED[name].format(MEASURES[name].shown(measures[name])) for name in shown]
        if "perplexity" in measures:
            parts.append(f"perplexity {measures['perplexity']:6.1f}")
            parts.append(f"codes {int(measures['codes_used'])}/{len(validation.counts)}")
        self._progress.console.print("  ".join(parts) + ("  best" if best else ""), soft_wrap=True)

    def warned(self, position: Position, message: str) -> None:
        warning(message)

    def finished(self, position: Position) -> None:
        self._progress.stop()
