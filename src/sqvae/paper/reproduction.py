"""Tables and figures carried out: which runs they need, what of them is done, and the pages that come of it."""

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from sqvae.config import ConfigurationError, check_name
from sqvae.data.cache import cache_folder
from sqvae.data.named import SETS, is_named
from sqvae.data.wording import counted
from sqvae.files import check_ours, write_text
from sqvae.metrics import INCEPTION, find_inception
from sqvae.paper.artefact import chosen, plan, report, words
from sqvae.paper.catalogue import ARTEFACTS
from sqvae.paper.collection import collect_all
from sqvae.paper.scales import SCALES
from sqvae.reports import Report, html_page, markdown_page
from sqvae.runs import Announce
from sqvae.sweeps import Outcome, Planned, Sweep, load_record, record_path
from sqvae.training import write_json

TITLE = "SQ-VAE: results beside the paper's"

INTRODUCTION = (
    "Written by `sqvae reproduce` from the records of finished runs; do not edit. Errors and perplexities are of the "
    "whole test set, with the likeliest codes of the best checkpoint by validation; ± is the standard deviation over "
    "seeds. Each claim says whether these records bear it out."
)


@dataclass(frozen=True)
class Reproduction:
    """Tables and figures that are to be made, and where what comes of them goes.

    Arguments:
        names: of :data:`sqvae.paper.ARTEFACTS`.
        scale: ``"smoke"``, ``"short"`` or ``"paper"``.
        seeds: how many runs of each model there are.
        only: words that choose runs: a model, a data set, or such as ``k=128``.
        jobs: how many runs there are at a time; None: one for each core.
        data: the folder with the data sets, or other data.
        out: the folder of records, drawings and pages.
        runs: the folder of the runs themselves; None: ``runs`` in `out`.
        page: the page in Markdown; None: ``results.md`` in `out`.
    """

    names: Sequence[str] = ()
    scale: str = "short"
    seeds: int = 1
    only: Sequence[str] = ()
    jobs: int | None = None
    data: str | None = None
    out: Path = Path("results")
    runs: Path | None = None
    page: Path | None = None

    @property
    def records(self) -> Path:
        """The folder of the records of finished runs."""
        return self.out / "records"

    @property
    def pages(self) -> tuple[Path, Path]:
        """The pages of all tables and figures, in HTML and in Markdown."""
        return self.out / "index.html", self.page or self.out / "results.md"

    def check(self, *, overwrite: bool = False) -> None:
        """Raise if there is no such table or figure, or if a page would take the place of something else.

        Arguments:
            overwrite: whether pages that are not ours may be replaced.
        """
        for name in self.names:
            check_name(name, ARTEFACTS, "the table or figure")
        for page in reversed(self.pages):
            check_ours(page, TITLE.partition("'")[0], overwrite)  # now, rather than after hours of training

    def sweep(self) -> Sweep:
        """What carries the runs out."""
        return Sweep(self.records, self.runs or self.out / "runs", jobs=self.jobs)

    def planned_runs(self) -> list[Planned]:
        """The runs that the tables and figures need, each once."""
        if not self.names:
            raise ConfigurationError(f"say what to reproduce: {', '.join(ARTEFACTS)}")
        source = self.source()
        plans = {name: plan(ARTEFACTS[name], SCALES[self.scale], range(self.seeds), source) for name in self.names}
        together = [one for every in plans.values() for one in every]
        chosen(together, self.only)  # says so if there is no such row in any of them
        planned: dict[str, Planned] = {}
        for name, every in plans.items():
            known = words(every)
            # A word that only another one knows, such as k=128 beside a figure without K, leaves this one as it is.
            only = [word for word in self.only if word in known]
            if only or not self.only:
                planned |= {one.name: one for one in chosen(every, only, ARTEFACTS[name].extra)}
        if not planned:
            raise ConfigurationError(f"no run is all of {', '.join(self.only)}; `dry_run=True` lists the runs")
        return list(planned.values())

    def source(self) -> str | None:
        """What `data` means: a folder with a folder for each set, or a set by name or path in place of the only one.

        The former becomes the root of all data, for this process and for those that it starts.
        """
        data = self.data
        sets = sorted({name for artefact in self.names for name in ARTEFACTS[artefact].data})
        if data is None or (sets == [data] and self.scale != "smoke"):
            return None
        if is_named(data):
            return data
        if not Path(data).exists():
            raise ConfigurationError(f"`data={data}`: there is no such folder, and no set of that name")
        named = [word for word in self.only if word in sets] or sets
        there = {name for name, known in SETS.items() if any((Path(data) / place).is_dir() for place in known.folders)}
        if self.scale == "smoke" and there:
            raise ConfigurationError(
                "`scale=smoke` takes made-up pictures: leave `data=` out, or name a single set by it"
            )
        if set(named) <= there:
            os.environ["SQVAE_DATA"] = str(Path(data).resolve())
            return None
        if there or len(sets) > 1:
            absent = sorted(set(named) - there)[0]
            raise ConfigurationError(
                f"`data={data}` has no folder for {absent}: it must be called one of {', '.join(SETS[absent].folders)} "
                f"and hold {SETS[absent].layout}"
            )
        return str(Path(data).resolve())

    def is_done(self, planned: Planned) -> bool:
        """Whether a run is finished, and its record kept."""
        return load_record(self.records, planned) is not None

    def carry_out(
        self,
        sweep: Sweep,
        planned: Sequence[Planned],
        *,
        download: bool = False,
        announce: Announce = print,
        on_start: Callable[[Planned], None] = lambda planned: None,
        on_outcome: Callable[[Outcome], None] = lambda outcome: None,
        on_look: Callable[[], None] = lambda: None,
    ) -> list[Outcome]:
        """Run what is missing, and return what has failed.

        Arguments:
            sweep: of :meth:`sweep`.
            planned: of :meth:`planned_runs`.
            download: whether the network that FID needs may be fetched.
            announce: takes sentences about that, and about how many runs there are.
            on_start, on_outcome, on_look: see :meth:`sqvae.sweeps.Sweep.run`.
        """
        self.pages[1].parent.mkdir(parents=True, exist_ok=True)  # better now than after hours of training
        missing = [one for one in planned if not self.is_done(one)]
        if any(one.sequel is not None and one.sequel.features == INCEPTION for one in missing):
            find_inception(None, cache_folder(None), download=download, announce=announce)
        announce(f"{len(planned)} runs, {sweep.jobs} at a time, {sweep.threads} thread(s) each")
        outcomes = sweep.run(planned, on_start=on_start, on_outcome=on_outcome, on_look=on_look)
        return [outcome for outcome in outcomes if outcome.state == "failed"]

    def left_open(self, planned: Sequence[Planned]) -> list[str]:
        """What finished runs could not measure, and what to do, in sentences."""
        records = [(one, load_record(self.records, one)) for one in planned]
        return [
            f"{one.title}: {'; '.join(record.notes)}. All else is kept; to measure it again, delete "
            f"{record_path(self.records, one.name)} and repeat the command"
            for one, record in records
            if record is not None and record.notes
        ]

    def write_reports(self, *, warn: Announce = print) -> list[Report]:
        """Write all that the records amount to, as drawings, pages and numbers; return the reports that are asked for.

        Arguments:
            warn: takes a sentence if some records can't be used.
        """
        found, strangers = collect_all(ARTEFACTS, self.records)
        if strangers:
            warn(
                f"{strangers} records in {self.records} are damaged, or of runs as they are no longer planned: they "
                f"are left out"
            )
        if not found:
            raise ConfigurationError(f"{self.records} holds no record of a finished run yet")
        self.pages[1].parent.mkdir(parents=True, exist_ok=True)
        reports = {key: report(key[0], ARTEFACTS[key[0]], results) for key, results in found.items()}
        for one in reports.values():
            _write(one, self.out)
        source = self.source() if self.names else None
        asked = [(name, self.scale, source) for name in self.names]
        _write_pages(list(reports.values()), self.out, *self.pages)
        return [reports[key] for key in asked if key in reports]


def failures(sweep: Sweep, failed: Sequence[Outcome]) -> list[str]:
    """What has failed and why, in a sentence for each reason.

    Arguments:
        sweep: which carried the runs out.
        failed: of :meth:`Reproduction.carry_out`.
    """
    grouped: dict[str, list[Planned]] = {}
    for outcome in failed:
        grouped.setdefault(outcome.reason, []).append(outcome.planned)
    sentences = []
    for reason, (first, *others) in grouped.items():
        more = f", and {counted(len(others), 'run')} more for the same reason" if others else ""
        sentences.append(f"failed: {first.title}{more}: {reason} (see {sweep.log_of(first)})")
    return sentences


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


def _write_pages(reports: Sequence[Report], out: Path, index: Path, page: Path) -> None:
    write_text(index, html_page(TITLE, INTRODUCTION.replace("`", ""), reports))
    beside = os.path.relpath(out, page.parent)
    text = markdown_page(TITLE, INTRODUCTION, reports, "" if beside == "." else f"{beside}/")
    write_text(page, text)
