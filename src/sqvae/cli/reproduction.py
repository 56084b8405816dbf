"""Progress and results of `sqvae reproduce` in the terminal."""

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.table import Table

from sqvae.cli import console
from sqvae.data.wording import counted
from sqvae.paper import Reproduction, failures
from sqvae.reports import Report
from sqvae.sweeps import Outcome, Planned, Sweep, SweepStoppedError


def show_plan(asked: Reproduction) -> None:
    """Print the runs, the number of epochs of each, and which are done."""
    planned = asked.planned_runs()
    done = 0
    for one in planned:
        finished = asked.is_done(one)
        done += finished
        state = "done" if finished else f"{one.experiment.training.epochs} epochs"
        console.out.print(f"{one.title}: {state}, {one.experiment.data.source}", soft_wrap=True)
    console.note(f"{counted(len(planned), 'run')}, {done} done; each line ends with the data of the run")


def carry_out(asked: Reproduction, *, download: bool) -> None:
    """Run the missing experiments, and print the results. The exit code is 1 if a run has failed."""
    planned, sweep = asked.planned_runs(), asked.sweep()
    display = _RunDisplay(sweep, len(planned))
    try:
        with display.progress:
            failed = asked.carry_out(
                sweep,
                planned,
                download=download,
                announce=console.note,
                on_start=display.started,
                on_outcome=display.ended,
                on_look=display.update,
            )
    except SweepStoppedError as stop:
        console.err.print(f"Stopped: {stop}. The same command resumes.", soft_wrap=True)
        raise typer.Exit(128 + stop.signal_number) from None
    for sentence in (*failures(sweep, failed), *asked.left_open(planned)):
        console.warning(sentence)
    if len(failed) < len(planned):
        show_reports(asked)
    if failed:
        raise typer.Exit(1)


def show_reports(asked: Reproduction) -> None:
    """Write the reports of all records, and print the requested ones."""
    for report in asked.write_reports(warn=console.warning):
        _show(report)
    index, page = asked.pages
    console.out.print(f"All results on one page: {index} and {page}", soft_wrap=True)


class _RunDisplay:
    """A progress bar over all runs, one for each active run, and a line for each finished run."""

    def __init__(self, sweep: Sweep, total: int) -> None:
        self.sweep = sweep
        self.total = total
        self.done = 0
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            console=console.err,
            transient=True,
            disable=not console.err.is_terminal,
        )
        self._all = self.progress.add_task("runs", total=total)
        self._running: dict[str, tuple[Planned, TaskID]] = {}
        self._updates = 0

    def started(self, planned: Planned) -> None:
        epochs = planned.experiment.training.epochs
        self._running[planned.name] = (planned, self.progress.add_task(f"  {escape(planned.title)}", total=epochs))

    def ended(self, outcome: Outcome) -> None:
        self.done += 1
        self.progress.update(self._all, completed=self.done)
        _, task = self._running.pop(outcome.planned.name, (None, None))
        if task is not None:
            self.progress.remove_task(task)
        if outcome.state != "found":
            line = f"{self.done}/{self.total}  {outcome.planned.title}: {outcome.summary}"
            self.progress.console.print(escape(line), soft_wrap=True)

    def update(self) -> None:
        self._updates += 1
        if console.err.is_terminal and self._updates % 10 == 0:
            for planned, task in self._running.values():
                self.progress.update(task, completed=self.sweep.epochs_done(planned))


def _show(report: Report) -> None:
    console.out.print(f"[bold]{escape(report.title)}[/]\n{escape(report.setting)}", soft_wrap=True)
    for table in report.tables:
        printed = Table(*map(escape, table.header), title=escape(table.title), title_justify="left")
        for row in table.rows:
            printed.add_row(*map(escape, row))
        console.out.print(printed)
        if table.note:
            console.out.print(escape(table.note), soft_wrap=True)
    for claim in report.claims:
        colour = "green" if claim.holds else "red"
        reason = escape(f"({claim.evidence}).{claim.explanation}")
        console.out.print(f"- {escape(claim.text)}: [{colour}]{claim.verdict}[/] {reason}", soft_wrap=True)
    for note in report.notes:
        console.out.print(escape(note), soft_wrap=True)
