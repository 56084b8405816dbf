"""What `sqvae reproduce` puts together."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.table import Table

from sqvae.cli import console
from sqvae.cli.listing import SETS
from sqvae.cli.targets import check_ours
from sqvae.config import ConfigurationError, check_name
from sqvae.data.cache import cache_folder
from sqvae.files import write_text
from sqvae.metrics import INCEPTION, find_inception
from sqvae.paper import ARTEFACTS, SCALES, chosen, collect_all, plan, report, words
from sqvae.reports import Report, error_of, html_page, markdown_page
from sqvae.sweeps import Outcome, Planned, Sweep, SweepStoppedError, load_record, record_path
from sqvae.training import write_json

TITLE = "SQ-VAE: results beside the paper's"

INTRODUCTION = (
    "Written by `sqvae reproduce` from the records of finished runs; do not edit. Errors and perplexities are of the "
    "whole test set, with the likeliest codes of the best checkpoint by validation; ± is the standard deviation over "
    "seeds. Each claim says whether these records bear it out."
)

TAIL = 65_536
"""Bytes at the end of a log that hold its last record, whatever it is."""


@dataclass(frozen=True)
class Request:
    """What was asked for."""

    names: Sequence[str]
    scale: str
    seeds: int
    only: Sequence[str]
    jobs: int | None
    data: str | None
    out: Path
    runs: Path
    page: Path
    overwrite: bool = False
    """Whether pages that are not ours may be replaced."""
    download: bool = False
    """Whether what measuring needs may be fetched."""

    def checked(self) -> "Request":
        """The same, once it makes sense."""
        for name in self.names:
            check_name(name, ARTEFACTS, "the table or figure")
        for page in (self.page, self.out / "index.html"):
            check_ours(page, TITLE.partition("'")[0], self.overwrite)  # now, rather than after hours of training
        return self


def planned_runs(request: Request) -> list[Planned]:
    """The runs that the tables and figures need, each once."""
    if not request.names:
        raise ConfigurationError(f"say what to reproduce: {', '.join(ARTEFACTS)}")
    source = _source(request)
    plans = {name: plan(ARTEFACTS[name], SCALES[request.scale], range(request.seeds), source) for name in request.names}
    together = [one for every in plans.values() for one in every]
    chosen(together, request.only)  # says so if there is no such row in any of them
    planned: dict[str, Planned] = {}
    for name, every in plans.items():
        known = words(every)
        # A word that only another one knows, such as k=128 beside a figure without K, leaves this one as it is.
        only = [word for word in request.only if word in known]
        if only or not request.only:
            planned |= {one.name: one for one in chosen(every, only, ARTEFACTS[name].extra)}
    if not planned:
        raise ConfigurationError(f"no run is all of {', '.join(request.only)}; --dry-run lists the runs")
    return list(planned.values())


def show_plan(request: Request) -> None:
    """The runs, how long each trains, and which are done."""
    planned = planned_runs(request)
    done = 0
    for one in planned:
        training, finished = one.experiment.training, load_record(request.out / "records", one) is not None
        done += finished
        how = "done" if finished else f"{training.epochs} epochs"
        console.out.print(f"{one.title}: {how}, {one.experiment.data.source}", soft_wrap=True)
    console.note(f"{console.counted(len(planned), 'run')}, {done} done; what each learns from is named last")


def carry_out(request: Request) -> int:
    """Run what is missing, and write what came of it. The exit code is 1 if a run has failed."""
    planned = planned_runs(request)
    request.page.parent.mkdir(parents=True, exist_ok=True)  # better now than after hours of training
    sweep = Sweep(request.out / "records", request.runs, jobs=request.jobs)
    missing = [one for one in planned if load_record(sweep.records, one) is None]
    if any(one.sequel is not None and one.sequel.features == INCEPTION for one in missing):
        find_inception(None, cache_folder(None), download=request.download, announce=console.note)
    failed = _carried_out(sweep, planned)
    for reason in dict.fromkeys(outcome.reason for outcome in failed):
        first, *others = [outcome.planned for outcome in failed if outcome.reason == reason]
        more = f", and {console.counted(len(others), 'run')} more for the same reason" if others else ""
        console.warning(f"failed: {first.title}{more}: {reason} (see {sweep.log_of(first)})")
    for one in planned:
        record = load_record(sweep.records, one)
        if record is not None and record.notes:
            console.warning(
                f"{one.title}: {'; '.join(record.notes)}. All else is kept; to measure it again, delete "
                f"{record_path(sweep.records, one.name)} and repeat the command"
            )
    if len(failed) < len(planned):
        write_reports(request)
    return 1 if failed else 0


def write_reports(request: Request) -> None:
    """All that the records amount to, as drawings, pages and numbers; what was asked for is shown as well."""
    found, strangers = collect_all(ARTEFACTS, request.out / "records")
    if strangers:
        console.warning(
            f"{strangers} records in {request.out / 'records'} are damaged, or of runs as they are no longer planned: "
            f"they are left out"
        )
    if not found:
        raise ConfigurationError(f"{request.out / 'records'} holds no record of a finished run yet")
    request.page.parent.mkdir(parents=True, exist_ok=True)
    reports = {key: report(key[0], ARTEFACTS[key[0]], results) for key, results in found.items()}
    for one in reports.values():
        _write(one, request.out)
    source = _source(request) if request.names else None
    for name in request.names:
        if (name, request.scale, source) in reports:
            _show(reports[name, request.scale, source])
    _write_pages(list(reports.values()), request.out, request.page)
    console.out.print(f"All of it on one page: {request.out / 'index.html'} and {request.page}", soft_wrap=True)


def _source(request: Request) -> str | None:
    """What --data means: a folder with a folder for each set, or a set by name or path in place of the only one.

    The former becomes the root of all data, for this process and for those that it starts.
    """
    data = request.data
    sets = sorted({name for artefact in request.names for name in ARTEFACTS[artefact].data})
    if data is None or (sets == [data] and request.scale != "smoke"):
        return None
    if data in SETS or data.startswith("hf:"):
        return data
    if not Path(data).exists():
        raise ConfigurationError(f"--data {data}: there is no such folder, and no set of that name")
    named = [word for word in request.only if word in sets] or sets
    there = {name for name, known in SETS.items() if any((Path(data) / place).is_dir() for place in known.folders)}
    if request.scale == "smoke" and there:
        raise ConfigurationError("--scale smoke takes made-up pictures: leave --data out, or name a single set by it")
    if set(named) <= there:
        os.environ["SQVAE_DATA"] = str(Path(data).resolve())
        return None
    if there or len(sets) > 1:
        absent = sorted(set(named) - there)[0]
        raise ConfigurationError(
            f"--data {data} has no folder for {absent}: it must be called one of {', '.join(SETS[absent].folders)} "
            f"and hold {SETS[absent].layout}"
        )
    return str(Path(data).resolve())


def _carried_out(sweep: Sweep, planned: Sequence[Planned]) -> list[Outcome]:
    """Run what is missing while a person watches; returns what has failed."""
    board = _Board(sweep, len(planned))
    console.note(f"{len(planned)} runs, {sweep.jobs} at a time, {sweep.threads} thread(s) each")
    try:
        with board.progress:
            outcomes = sweep.run(planned, on_start=board.started, on_outcome=board.ended, on_look=board.look)
    except SweepStoppedError as stop:
        console.err.print(f"Stopped: {stop}. The same command goes on.", soft_wrap=True)
        raise typer.Exit(128 + stop.signal_number) from None
    return [outcome for outcome in outcomes if outcome.state == "failed"]


class _Board:
    """A bar for all runs, one for each that is under way, and a line for each that has ended."""

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
        self._looks = 0

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
            line = f"{self.done}/{self.total}  {outcome.planned.title}: {_words(outcome)}"
            self.progress.console.print(escape(line), soft_wrap=True)

    def look(self) -> None:
        self._looks += 1
        if console.err.is_terminal and self._looks % 10 == 0:
            for planned, task in self._running.values():
                self.progress.update(task, completed=_epochs_done(self.sweep.folder_of(planned).log))


def _epochs_done(log: Path) -> int:
    """How far a run is, by the end of its log."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - TAIL))
            lines = file.read().split(b"\n")[:-1]
        return int(json.loads(lines[-1])["epoch"])
    except (OSError, ValueError, IndexError):  # none yet, or just being written
        return 0


def _words(outcome: Outcome) -> str:
    record = outcome.record
    if record is None:
        return f"failed: {outcome.reason}"
    use = f", perplexity {record.measures['perplexity']:.1f}" if "perplexity" in record.measures else ""
    missing = "".join(f"; but {note}" for note in record.notes)
    return f"{error_of(record.measures)}{use}, {record.seconds / 60:.1f} minutes{missing}"


def _write(one: Report, out: Path) -> None:
    """A report's drawings, its text, and its numbers."""
    out.mkdir(parents=True, exist_ok=True)
    for picture in one.pictures:
        picture.save(out)
    write_text(out / f"{one.name}.md", one.markdown())
    numbers = {
        "title": one.title,
        "setting": one.setting,
        "command": one.command,
        "tables": [asdict(table) for table in one.tables],
        "claims": [asdict(claim) for claim in one.claims],
        "notes": list(one.notes),
    }
    write_json(out / f"{one.name}.json", numbers)


def _show(one: Report) -> None:
    console.out.print(f"[bold]{escape(one.title)}[/]\n{escape(one.setting)}", soft_wrap=True)
    for table in one.tables:
        shown = Table(*map(escape, table.header), title=escape(table.title), title_justify="left")
        for row in table.rows:
            shown.add_row(*map(escape, row))
        console.out.print(shown)
        if table.note:
            console.out.print(escape(table.note), soft_wrap=True)
    for claim in one.claims:
        colour = "green" if claim.holds else "red"
        ground = escape(f"({claim.evidence}).{claim.explanation}")
        console.out.print(f"- {escape(claim.text)}: [{colour}]{claim.verdict}[/] {ground}", soft_wrap=True)
    for note in one.notes:
        console.out.print(escape(note), soft_wrap=True)


def _write_pages(reports: Sequence[Report], out: Path, page: Path) -> None:
    write_text(out / "index.html", html_page(TITLE, INTRODUCTION.replace("`", ""), reports))
    beside = os.path.relpath(out, page.parent)
    text = markdown_page(TITLE, INTRODUCTION, reports, "" if beside == "." else f"{beside}/")
    write_text(page, text)
