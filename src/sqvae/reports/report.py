"""A report: what came of some runs, in tables, pictures and sentences that hold or don't."""

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
    """A sentence, and whether the records bear it out."""

    text: str
    holds: bool
    evidence: str
    """The numbers that decide it."""
    reason: str = ""
    """Why it does not hold, in sentences, with what was done to find out; nothing is said of it where it holds."""

    @property
    def verdict(self) -> str:
        """In one word."""
        return "holds" if self.holds else "does not hold"

    @property
    def explanation(self) -> str:
        """The reason, if there is one to give."""
        return "" if self.holds or not self.reason else f" Why: {self.reason}"


@dataclass(frozen=True)
class Picture:
    """A drawing with a name for its files and a caption."""

    name: str
    figure: Figure = field(repr=False)
    caption: str

    def save(self, folder: Path) -> list[Path]:
        """Write it as .png, with its caption in it, and as .svg without, as pages show it above their own."""
        paths = [folder / f"{self.name}.png", folder / f"{self.name}.svg"]
        with written(paths[1], lasting=False) as aside:
            aside.write_bytes(self.svg)
        caption_below(self.figure, self.caption)
        save_figure(self.figure, paths[0], dpi=110)
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
        return address_of(self.svg, "image/svg+xml")


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
        """As a chapter of a page that needs no other file."""
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
    """One page of all reports, in one file without outside requests."""
    return page(title, introduction, [report.chapter() for report in reports])


def markdown_page(title: str, introduction: str, reports: Sequence[Report], pictures: str = "") -> str:
    """The same in Markdown, with the drawings beside it."""
    return "\n".join([f"# {title}", "", introduction, "", *(report.markdown(pictures) for report in reports)])
