"""Tables of text, as Markdown and as HTML."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from sqvae.reports.page import paragraph, words


@dataclass(frozen=True)
class Table:
    """A table: rows of text under a header."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    """A sentence below the table."""

    def markdown(self) -> str:
        """The table as Markdown."""
        lines = [f"**{self.title}**", "", _line(self.header), _line(["---"] * len(self.header))]
        lines += [_line(row) for row in self.rows]
        return "\n".join([*lines, "", self.note, ""] if self.note else [*lines, ""])

    def html(self) -> str:
        """The table as HTML."""
        head = "".join(f"<th>{words(cell)}</th>" for cell in self.header)
        body = "".join("<tr>" + "".join(f"<td>{words(cell)}</td>" for cell in row) + "</tr>\n" for row in self.rows)
        note = paragraph(self.note) if self.note else ""
        return (
            f"<table><caption>{words(self.title)}</caption>\n<thead><tr>{head}</tr></thead>\n"
            f"<tbody>\n{body}</tbody></table>{note}\n"
        )


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def mean_and_deviation(values: Sequence[float], digits: int = 2) -> str:
    """`mean ± standard deviation` over seeds; only the value if there is one, and a dash if there is none."""
    if not values:
        return "-"
    mean = f"{statistics.fmean(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):.{digits}f}"
