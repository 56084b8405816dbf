"""What a person sees while something runs."""

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from sqvae.training import Position, Validation, Watcher

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


def note(text: str) -> None:
    """A sentence beside the results."""
    err.print(f"[dim]-[/] {_escaped(text)}", soft_wrap=True)


def warning(text: str) -> None:
    """A sentence that a person should read."""
    err.print(f"[bold yellow]warning:[/] {_escaped(text)}", soft_wrap=True)


def counted(number: int, noun: str) -> str:
    """So many of something: "1 picture", "2,000 pictures"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)


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
    "mse": "mse x 1000 {:7.3f}",
    "pixel_error": "wrong {:6.2f}%",
    "miou": "mIoU {:5.1f}%",
    "bits_per_code": "bits per code {:7.4f}",
}
_FACTORS = {"mse_db": 1, "mse": 1000, "pixel_error": 100, "miou": 100, "bits_per_code": 1}
"""How errors on the validation set are shown."""


class TrainingBar(Watcher):
    """A bar over all steps with the numbers that matter, and a line for each validation."""

    def __init__(self) -> None:
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

    def started(self, position: Position) -> None:
        self._progress.update(self._task, total=position.steps, completed=position.step)
        self._progress.start()

    def stepped(self, position: Position, rate: float) -> None:
        # Rich refreshes ten times a second by itself; setting a number costs little.
        epoch = f"{'epoch ' if self._wide else ''}{position.epoch + 1}/{position.epochs}"
        self._progress.update(self._task, completed=position.step, description=epoch)

    def recorded(self, position: Position, statistics: Mapping[str, float]) -> None:
        shown = {
            "loss": "loss {:.0f}",
            "mse": "mse {:.4f}",
            "pixel_error": "wrong {:.1%}",
            "bits_per_code": "bits per code {:.3f}",
            "perplexity": "perplexity {:.0f}",
            "variance": "var {:.3g}",
            "concentration": "conc {:.3g}",
            "temperature": "temp {:.2f}",
        }
        parts = [text.format(statistics[name]) for name, text in shown.items() if name in statistics]
        self._progress.update(self._task, status=" ".join(parts))

    def validated(self, position: Position, validation: Validation, best: bool) -> None:
        measures = validation.metrics
        width = int(math.log10(position.epochs)) + 1
        loss = "nats per code" if "bits_per_code" in measures else "loss per dimension"
        parts = [f"epoch {position.epoch:>{width}}/{position.epochs}", f"{loss} {validation.loss:8.4f}"]
        shown = [name for name in _VALIDATED if name in measures and not (name == "mse" and "mse_db" in measures)]
        parts += [_VALIDATED[name].format(_FACTORS[name] * measures[name]) for name in shown]
        if "perplexity" in measures:
            parts.append(f"perplexity {measures['perplexity']:6.1f}")
            parts.append(f"codes {int(measures['codes_used'])}/{len(validation.counts)}")
        self._progress.console.print("  ".join(parts) + ("  best" if best else ""), soft_wrap=True)

    def warned(self, position: Position, message: str) -> None:
        warning(message)

    def finished(self, position: Position) -> None:
        self._progress.stop()
