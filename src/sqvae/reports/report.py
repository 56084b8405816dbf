"""A report on several runs: tables, figures, and claims with their evidence."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from io import BytesIO
from pathlib import Path

from matplotlib.figure import Figure

from sqvae.files import written
from sqvae.reports.page import Chapter, address_of, figure, page, paragraph, words
from sqvae.reports.plotting import caption_below, save_figure
from sqvae.reports.tables import Table


@dataclass(frozen=True)
class Claim:
    """A claim, and whether the records support it."""

    text: str
    holds: bool
    evidence: str
    """The numbers that decide whether it holds."""
    reason: str = ""
    """Why the claim does not hold, and how that was found out. It is shown only if the claim does not hold."""

    @property
    def verdict(self) -> str:
        """ "holds" or "does not hold"."""
        return "holds" if self.holds else "does not hold"

    @property
    def explanation(self) -> str:
        """The reason, if the claim does not hold and a reason is given."""
        return "" if self.holds or not self.reason else f" Why: {self.reason}"


@dataclass(frozen=True)
class Picture:
    """A figure, with a name for its files and a caption."""

    name: str
    figure: Figure = field(repr=False)
    caption: str

    def save(self, folder: Path) -> list[Path]:
        """Write it as .png with its caption, and as .svg without, for pages that print the caption themselves."""
        paths = [folder / f"{self.name}.png", folder / f"{self.name}.svg"]
        with written(paths[1], lasting=False) as aside:
            aside.write_bytes(self.svg)
        caption_below(self.figure, self.caption)
        save_figure(self.figure, paths[0], dpi=110)
        return paths

    @cached_property
    def svg(self) -> bytes:
        """The figure as SVG, without its caption."""
        file = BytesIO()
        self.figure.savefig(file, format="svg", metadata={"Date": None})
        return file.getvalue()

    @property
    def address(self) -> str:
        """The figure as a data URL."""
        return address_of(self.svg, "image/svg+xml")


@dataclass(frozen=True)
class Report:
    """The report on a table or a figure of the paper."""

    name: str
    title: str
    setting: str
    """The data, the duration of training, the seeds, and the time that it took."""
    command: str
    """The command that makes the report."""
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()
    claims: Sequence[Claim] = ()
    notes: Sequence[str] = ()
    """Differences from the paper with their reasons, and what is missing."""

    def markdown(self, pictures: str = "") -> str:
        """The report as a section of a Markdown page.

        Arguments:
            pictures: the folder of the figures relative to the page, with a slash; "" for the page's own folder.
        """
        parts = [f"## {self.title}", "", f"{self.setting} Made by `{self.command}`.", ""]
        for table in self.tables:
            parts.append(table.markdown())
        for picture in self.pictures:
            parts += [f"![{picture.caption}]({pictures}{picture.name}.png)", ""]
        if self.claims:
            parts += [
                f"- {claim.text}: **{claim.verdict}** ({claim.evidence}).{claim.explanation}" for claim in self.claims
            ]
            parts.append("")
        for note in self.notes:
            parts += [note, ""]
        return "\n".join(parts)

    def chapter(self) -> Chapter:
        """The report as a chapter of an HTML page that needs no other file."""
        parts = [f"<p>{words(self.setting)} Made by <code>{words(self.command)}</code>.</p>"]
        parts += [
            figure(f'<img alt="{words(picture.caption)}" src="{picture.address}">', picture.caption)
            for picture in self.pictures
        ]
        parts += [table.html() for table in self.tables]
        claims = [
            f'<li class="{"yes" if claim.holds else "no"}">{words(claim.text)}: '
            f"<strong>{claim.verdict}</strong> ({words(claim.evidence)}).{words(claim.explanation)}</li>"
            for claim in self.claims
        ]
        parts += ["<ul>", *claims, "</ul>"] if claims else []
        parts += map(paragraph, self.notes)
        return Chapter(self.name, self.title, "\n".join(parts))


def html_page(title: str, introduction: str, reports: Sequence[Report]) -> str:
    """An HTML page of all reports, in one file that loads no other files."""
    return page(title, introduction, [report.chapter() for report in reports])


def markdown_page(title: str, introduction: str, reports: Sequence[Report], pictures: str = "") -> str:
    """A Markdown page of all reports, with the figures in separate files."""
    return "\n".join([f"# {title}", "", introduction, "", *(report.markdown(pictures) for report in reports)])
