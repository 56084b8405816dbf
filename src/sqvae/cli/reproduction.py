"""What `sqvae reproduce` puts together."""

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from sqvae.cli import console
from sqvae.data import DATASETS, folder_of
from sqvae.experiment import ConfigurationError, Outcome, Planned, Sweep, SweepStoppedError, check_name, load_record
from sqvae.recipes import ARTEFACTS, SCALES, Results, Scale, chosen, plan
from sqvae.reports import Report, html_page, markdown_page
from sqvae.training import read_records, write_json

MOST_SEEDS = 10
"""So many seeds are looked for where records are read."""

TITLE = "SQ-VAE: results beside the paper's"


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


def planned_runs(request: Request) -> list[Planned]:
    """The runs that the tables and figures need, each once."""
    if not request.names:
        raise ConfigurationError(f"say what to reproduce: {', '.join(ARTEFACTS)}")
    planned: dict[str, Planned] = {}
    for name in request.names:
        check_name(name, ARTEFACTS, "the table or figure")
    source = _source(request.names, request.data)
    for name in request.names:
        every = plan(ARTEFACTS[name], SCALES[request.scale], range(request.seeds), source)
        planned |= {one.name: one for one in chosen(every, request.only, ARTEFACTS[name].extra)}
    return list(planned.values())


def carry_out(request: Request) -> int:
    """Run what is missing, and write what came of it. The exit code is 1 if a run has failed."""
    planned = planned_runs(request)
    sweep = Sweep(request.out / "records", request.runs, jobs=request.jobs)
    failed = _carried_out(sweep, planned)
    if len(failed) < len(planned):
        write_reports(request)
    for outcome in failed:
        console.warning(f"failed: {outcome.planned.title}: {outcome.reason} (see {sweep.log_of(outcome.planned)})")
    return 1 if failed else 0


def write_reports(request: Request) -> None:
    """All that the records amount to, as drawings, pages and numbers; what was asked for is shown as well."""
    source = _source(request.names, request.data) if request.names else None
    reports = _all_reports(request.out, source)
    if not reports:
        raise ConfigurationError(f"{request.out / 'records'} holds no record of a finished run yet")
    for report in reports.values():
        _write(report, request.out)
    for name in request.names:
        if (name, request.scale, source) in reports:
            _show(reports[name, request.scale, source])
    _write_pages(list(reports.values()), request.out, request.page)
    console.out.print(f"All of it on one page: {request.out / 'index.html'} and {request.page}", soft_wrap=True)


def _source(names: Sequence[str], data: str | None) -> str | None:
    """What --data means: a folder with a folder for each set, or a set by name or path in place of the only one."""
    if data is None:
        return None
    sets = sorted({name for artefact in names for name in ARTEFACTS[artefact].data})
    if data in DATASETS:
        return data
    if not Path(data).exists():
        raise ConfigurationError(f"--data {data}: there is no such folder, and no set of that name")
    before = os.environ.get("SQVAE_DATA")
    os.environ["SQVAE_DATA"] = data
    try:
        for name in sets:
            folder_of(name)
    except FileNotFoundError as missing:
        if len(sets) > 1:
            raise ConfigurationError(
                f"--data {data} must have a folder for each of {', '.join(sets)}: {missing}"
            ) from None
    else:
        return None
    if before is None:
        del os.environ["SQVAE_DATA"]
    else:
        os.environ["SQVAE_DATA"] = before
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
        self.found = 0
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

    def started(self, planned: Planned) -> None:
        epochs = planned.experiment.training.epochs
        self._running[planned.name] = (planned, self.progress.add_task(f"  {planned.title}", total=epochs))

    def ended(self, outcome: Outcome) -> None:
        self.done += 1
        self.progress.update(self._all, completed=self.done)
        _, task = self._running.pop(outcome.planned.name, (None, None))
        if task is not None:
            self.progress.remove_task(task)
        if outcome.state == "found":
            self.found += 1
            return
        self.progress.console.print(
            f"{self.done}/{self.total}  {outcome.planned.title}: {_words(outcome)}", soft_wrap=True
        )

    def look(self) -> None:
        for planned, task in self._running.values():
            if console.err.is_terminal:
                records = read_records(self.sweep.folder_of(planned).log)
                self.progress.update(task, completed=max((record["epoch"] for record in records), default=0))


def _words(outcome: Outcome) -> str:
    record = outcome.record
    if record is None:
        return f"failed: {outcome.reason}"
    use = f", perplexity {record.measures['perplexity']:.1f}" if "perplexity" in record.measures else ""
    return f"MSE x 1000 {1000 * record.measures['mse']:.3f}{use}, {record.seconds / 60:.1f} minutes"


def _results(name: str, scale: Scale, out: Path, source: str | None) -> Results:
    planned = plan(ARTEFACTS[name], scale, range(MOST_SEEDS), source)
    loaded = (load_record(out / "records", one.name) for one in planned)
    records = [record for record in loaded if record is not None]
    seeds = {record.tags["seed"] for record in records}
    rows = chosen([one for one in planned if one.tags["seed"] in seeds], [], ARTEFACTS[name].extra)
    return Results(scale, max(len(rows), len(records)), records, out / "records")


def _write(report: Report, out: Path) -> None:
    """A report's drawings, its text, and its numbers."""
    out.mkdir(parents=True, exist_ok=True)
    for picture in report.pictures:
        picture.save(out)
    (out / f"{report.name}.md").write_text(report.markdown())
    numbers = {
        "title": report.title,
        "setting": report.setting,
        "command": report.command,
        "tables": [asdict(table) for table in report.tables],
        "claims": [asdict(claim) for claim in report.claims],
    }
    write_json(out / f"{report.name}.json", numbers)


def _show(report: Report) -> None:
    from rich.markup import escape
    from rich.table import Table

    console.out.print(f"[bold]{escape(report.title)}[/]\n{escape(report.setting)}", soft_wrap=True)
    for table in report.tables:
        shown = Table(*table.header, title=table.title, title_justify="left")
        for row in table.rows:
            shown.add_row(*row)
        console.out.print(shown)
    for claim in report.claims:
        colour = "green" if claim.holds else "red"
        console.out.print(
            f"- {escape(claim.text)}: [{colour}]{claim.verdict}[/] ({escape(claim.evidence)})", soft_wrap=True
        )


def _all_reports(out: Path, source: str | None) -> dict[tuple[str, str, str | None], Report]:
    """What the records of a folder amount to: every table and figure, at every scale, on every set of pictures.

    Arguments:
        source: other pictures that may have been taken.
    """
    reports = {}
    for name, artefact in ARTEFACTS.items():
        others = dict.fromkeys((None, *DATASETS, source)) if len(artefact.data) == 1 else (None,)
        for scale in SCALES.values():
            for other in others:
                if other not in artefact.data and (results := _results(name, scale, out, other)).records:
                    reports[name, scale.name, other] = _sober(artefact.report(results), scale)
    return reports


def _sober(report: Report, scale: Scale) -> Report:
    """A smoke run shows that everything works, and decides nothing."""
    if scale.name != "smoke":
        return report
    return replace(report, claims=(), notes=("A smoke run: its numbers mean nothing.",))


def _write_pages(reports: Sequence[Report], out: Path, page: Path) -> None:
    introduction = (
        "Written by `sqvae reproduce` from the records of finished runs; do not edit. Errors and perplexities are of "
        "the whole test set, with the likeliest codes of the best checkpoint by validation."
    )
    (out / "index.html").write_text(html_page(TITLE, introduction.replace("`", ""), reports))
    beside = os.path.relpath(out, page.parent)
    page.write_text(markdown_page(TITLE, introduction, reports, "" if beside == "." else f"{beside}/"))
