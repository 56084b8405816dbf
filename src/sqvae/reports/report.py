"""A report: what came of some runs, in tables, pictures and sentences that hold or don't."""

import base64
import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from io import BytesIO
from pathlib import Path

from matplotlib.figure import Figure

from sqvae.reports.tables import Table


@dataclass(frozen=True)
class Claim:
    """A sentence, and whether the records bear it out."""

    text: str
    holds: bool
    evidence: str
    """The numbers that decide it."""

    @property
    def verdict(self) -> str:
        """In one word."""
        return "holds" if self.holds else "does not hold"


@dataclass(frozen=True)
class Picture:
    """A drawing with a name for its files and a caption."""

    name: str
    figure: Figure = field(repr=False)
    caption: str

    def save(self, folder: Path) -> list[Path]:
        """Write it as .png and as .svg."""
        paths = [folder / f"{self.name}.png", folder / f"{self.name}.svg"]
        self.figure.savefig(paths[0], dpi=110)
        paths[1].write_bytes(self.svg)
        return paths

    @cached_property
    def svg(self) -> bytes:
        """The drawing, without its caption."""
        file = BytesIO()
        self.figure.savefig(file, format="svg", metadata={"Date": None})
        return file.getvalue()

    @property
    def address(self) -> str:
        """The drawing as an address that holds all of it."""
        return "data:image/svg+xml;base64," + base64.b64encode(self.svg).decode()


@dataclass(frozen=True)
class Report:
    """All that is to be said of a table or a figure."""

    name: str
    title: str
    setting: str
    """On which data, for how long, with which seeds, and how long the machine took."""
    command: str
    """What makes it again."""
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()
    claims: Sequence[Claim] = ()
    notes: Sequence[str] = ()
    """Where it differs from the paper, and why; what is missing."""

    def markdown(self, pictures: str = "") -> str:
        """As a section of a page.

        Arguments:
            pictures: where the drawings are, as seen from the page: nothing, or a folder's name and a slash.
        """
        parts = [f"## {self.title}", "", f"{self.setting} Made by `{self.command}`.", ""]
        for table in self.tables:
            parts.append(table.markdown())
        for picture in self.pictures:
            parts += [f"![{picture.caption}]({pictures}{picture.name}.png)", "", picture.caption, ""]
        if self.claims:
            parts += [f"- {claim.text}: **{claim.verdict}** ({claim.evidence})." for claim in self.claims]
            parts.append("")
        for note in self.notes:
            parts += [note, ""]
        return "\n".join(parts)

    def html(self) -> str:
        """As a section of a page that needs no other file."""
        parts = [
            f'<section id="{self.name}"><h2>{html.escape(self.title)}</h2>',
            f"<p>{html.escape(self.setting)} Made by <code>{html.escape(self.command)}</code>.</p>",
        ]
        for picture in self.pictures:
            parts.append(
                f'<figure><img alt="{html.escape(picture.caption, quote=True)}" src="{picture.address}">'
                f"<figcaption>{html.escape(picture.caption)}</figcaption></figure>"
            )
        parts += [table.html() for table in self.tables]
        claims = [
            f'<li class="{"yes" if claim.holds else "no"}">{html.escape(claim.text)}: '
            f"<strong>{claim.verdict}</strong> ({html.escape(claim.evidence)})</li>"
            for claim in self.claims
        ]
        parts += ["<ul>", *claims, "</ul>"] if claims else []
        parts += [f"<p>{html.escape(note)}</p>" for note in self.notes]
        return "\n".join([*parts, "</section>\n"])


_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto; }
caption { text-align: left; font-weight: bold; padding: .3rem 0; }
th, td { padding: .25rem .75rem; border-bottom: 1px solid #ccc; text-align: right; }
th:first-child, td:first-child { text-align: left; }
img { max-width: 100%; } figure { margin: 1rem 0; } figcaption, section > p { color: #444; }
li.no strong { color: #a30; } li.yes strong { color: #060; }
"""


def html_page(title: str, introduction: str, reports: Sequence[Report]) -> str:
    """One page of all reports, in one file without outside requests."""
    contents = "".join(f'<li><a href="#{report.name}">{html.escape(report.title)}</a></li>' for report in reports)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head>\n"
        f"<body><h1>{html.escape(title)}</h1>\n<p>{html.escape(introduction)}</p>\n<ul>{contents}</ul>\n"
        + "".join(report.html() for report in reports)
        + "</body></html>\n"
    )


def markdown_page(title: str, introduction: str, reports: Sequence[Report], pictures: str = "") -> str:
    """The same in Markdown, with the drawings beside it."""
    return "\n".join([f"# {title}", "", introduction, "", *(report.markdown(pictures) for report in reports)])
