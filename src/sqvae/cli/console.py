"""Messages and progress bars in the terminal."""

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
    """Print a note beside the results."""
    err.print(f"[dim]-[/] {escape(as_typed(text))}", soft_wrap=True)


def warning(text: str) -> None:
    """Print a warning."""
    err.print(f"[bold yellow]warning:[/] {escape(as_typed(text))}", soft_wrap=True)


@contextlib.contextmanager
def progress_bar() -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar. It is updated by calls with the name of the task, the number of finished items, and their total.

    The bar is visible only while a task is in progress, because two bars can't be displayed at once.
    """
    bars: dict[str, Progress] = {}

    def report(task: str, done: int, total: int) -> None:
        if task not in bars:
            columns = (TextColumn(task), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            hide()
            bars[task] = Progress(*columns, console=err, transient=True, disable=not err.is_terminal)
            bars[task].add_task(task, total=total)
            bars[task].start()
        bars[task].update(bars[task].task_ids[0], completed=done, total=total)
        if done >= total:
            hide()

    def hide() -> None:
        while bars:
            bars.popitem()[1].stop()

    try:
        yield report
    finally:
        hide()


_VALIDATION_FORMATS = {
    "mse_db": "mse {:7.2f} dB²",
    "unexplained": "unexplained {:6.2f}%",
    "mse": "mse x 1000 {:7.3f}",
    "pixel_error": "wrong {:6.2f}%",
    "miou": "mIoU {:5.1f}%",
    "bits_per_code": "bits per code {:7.4f}",
}
"""The formats of the errors on the validation set."""

_RECORD_FORMATS = {
    "mse_db": "mse {:.1f} dB²",
    "unexplained": "unexplained {:.1%}",
    "mse": "mse {:.4f}",
    "pixel_error": "wrong {:.1%}",
    "bits_per_code": "bits per code {:.3f}",
    "perplexity": "sampled perplexity {:.0f}",
    "variance": "var {:.3g}",
    "concentration": "conc {:.3g}",
    "temperature": "temp {:.2f}",
}
"""The formats of the values beside the progress bar."""

FIRST_ESTIMATE = 10.0
"""The time in seconds after which the first estimate of the duration is printed."""

LINE_INTERVAL = 30.0
"""The time in seconds between lines about the progress if the output is not a terminal."""

LOSS_INTERVAL = 1.0
"""The time in seconds between updates of the loss. Each update waits for the device."""


class TrainingBar(Watcher):
    """A progress bar over all steps with the loss and the main measures, and a line for each validation.

    If the output is a file or a pipe, there is a line every half minute instead of the bar.

    Arguments:
        clock: a function that returns the time in seconds.
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
            disable=not err.is_terminal,  # a log file should contain lines, not bars
        )
        self._task = self._progress.add_task("training", total=None, status="")
        self._clock = clock
        self._pace: Pace | None = None
        self._statistics: Mapping[str, float] = {}
        self._loss = math.nan
        self._loss_time = self._line_time = -math.inf

    def started(self, position: Position) -> None:
        self._progress.update(self._task, total=position.steps, completed=position.step)
        self._progress.start()

    def stepped(self, position: Position, rate: float, loss: Tensor) -> None:
        # Rich redraws the bar ten times per second by itself, so that this update is cheap.
        epoch = f"{'epoch ' if self._wide else ''}{position.epoch + 1}/{position.epochs}"
        self._progress.update(self._task, completed=position.step, description=epoch)
        now = self._clock()
        if self._pace is None:
            self._pace, self._line_time = Pace(position.step, now), now  # the first step takes longer than others
        if now - self._loss_time >= LOSS_INTERVAL:
            self._loss_time, self._loss = now, float(loss)
            self._update_status(position, self._pace, now)
        if now - self._line_time >= (LINE_INTERVAL if self._line_time > self._pace.time else FIRST_ESTIMATE):
            self._print_line(position, self._pace, now)
            self._line_time = now

    def recorded(self, position: Position, statistics: Mapping[str, float]) -> None:
        self._statistics = statistics

    def _update_status(self, position: Position, pace: Pace, now: float) -> None:
        """Update the speed, the loss, and the values of the last record beside the bar."""
        # In a narrow terminal there is room for the bar, the time left, the speed and the loss.
        known = [name for name in _RECORD_FORMATS if self._wide and name in self._statistics]
        names = [name for name in known if is_main(name, self._statistics)]
        parts = [_RECORD_FORMATS[name].format(self._statistics[name]) for name in names]
        speed = [f"{pace.steps_per_second(position.step, now):.3g} steps/s"] if position.step > pace.step else []
        self._progress.update(self._task, status=" ".join([*speed, f"loss per example {self._loss:.0f}", *parts]))

    def _print_line(self, position: Position, pace: Pace, now: float) -> None:
        """Print the progress and the remaining time: once, and repeatedly if there is no bar."""
        first = self._line_time <= pace.time
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
        names = [name for name in _VALIDATION_FORMATS if name in measures and is_main(name, measures)]
        parts += [_VALIDATION_FORMATS[name].format(MEASURES[name].shown(measures[name])) for name in names]
        if "perplexity" in measures:
            parts.append(f"perplexity {measures['perplexity']:6.1f}")
            parts.append(f"codes {int(measures['codes_used'])}/{len(validation.counts)}")
        self._progress.console.print("  ".join(parts) + ("  best" if best else ""), soft_wrap=True)

    def warned(self, position: Position, message: str) -> None:
        warning(message)

    def finished(self, position: Position) -> None:
        self._progress.stop()
