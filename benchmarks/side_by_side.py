"""Measuring contenders side by side: they take turns, round by round, so that what else the machine does falls on all
of them alike, and a ratio is that of the median times."""

import argparse
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table

Step = Callable[[], None]


@dataclass(frozen=True)
class Result:
    """One row: what was measured, both values, their ratio and what it was to be."""

    what: str
    ours: str
    theirs: str
    ratio: str
    target: str
    met: bool

    @property
    def verdict(self) -> str:
        return "yes" if self.met else "no"


def median_seconds(steps: Sequence[Step], rounds: int, title: str) -> list[float]:
    """The median time of each step, over rounds in which all take turns."""
    times: list[list[float]] = [[] for _ in steps]
    for step in steps:
        step()
    for _ in track(range(rounds), title, console=Console(stderr=True), transient=True):
        for step, record in zip(steps, times, strict=True):
            start = time.perf_counter()
            step()
            record.append(time.perf_counter() - start)
    return [statistics.median(record) for record in times]


def at_most(what: str, ours: float, theirs: float, limit: float) -> Result:
    """Ours may take so many times as long as theirs."""
    ratio = ours / theirs
    return Result(what, milliseconds(ours), milliseconds(theirs), f"{ratio:.2f}", f"<= {limit:g}", ratio <= limit)


def at_least(what: str, theirs: float, ours: float, limit: float, digits: int = 2) -> Result:
    """Theirs must take at least so many times as long as ours."""
    ratio = theirs / ours
    values = milliseconds(theirs), milliseconds(ours)
    return Result(what, *values, f"{ratio:.{digits}f}", f">= {limit:g}", ratio >= limit)


def milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.1f} ms" if seconds > 1e-3 else f"{1e6 * seconds:.0f} us"


def machine() -> str:
    """What was measured on."""
    name = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
        name = models[0].split(":", 1)[1].strip() if models else name
    threads = torch.get_num_threads()
    plural = "" if threads == 1 else "s"
    return f"{name}, {threads} thread{plural}, torch {torch.__version__}, Python {platform.python_version()}"


def arguments(description: str | None, argv: Sequence[str] | None, **folders: str) -> argparse.Namespace:
    """--quick and --out, and folders that must be named, with what each is."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that it runs")
    parser.add_argument("--out", type=Path, help="write the table to this Markdown file as well")
    for name, words in folders.items():
        parser.add_argument(f"--{name}", type=Path, required=True, help=words)
    return parser.parse_args(argv)


def report(title: str, setting: str, results: Iterable[Result], out: Path | None, by: str = "make benchmark") -> None:
    """Print the table, and write it as a page, which says by which command."""
    results = list(results)
    table = Table("what", "first", "second", "ratio", "target", "met", title=machine())
    for result in results:
        table.add_row(result.what, result.ours, result.theirs, result.ratio, result.target, result.verdict)
    Console().print(table)
    if out is not None:
        rows = [f"| {r.what} | {r.ours} | {r.theirs} | {r.ratio} | {r.target} | {r.verdict} |" for r in results]
        header = ["| what | first | second | ratio | target | met |", "|---|---|---|---|---|---|"]
        words = f"Written by `{by}`; do not edit. Contenders take turns in one process; times are medians."
        out.write_text(
            "\n".join([f"# {title}", "", words, setting, "", f"Machine: {machine()}.", "", *header, *rows, ""])
        )
