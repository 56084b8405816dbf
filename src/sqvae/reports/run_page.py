"""The page about a run: the chapters on the model and its training, and the whole page."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sqvae.reports.charts import Level, line_chart
from sqvae.reports.page import Chapter, absent, block, figure, folded, listed, page, warned, words
from sqvae.reports.tables import Table

MAKER = "sqvae report"

_STYLE = """
.facts { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1rem 0; }
.facts div { background: var(--card); border-radius: .5rem; padding: .6rem 1rem; flex: 1 1 9rem; }
.facts b { display: block; font-size: 1.4rem; line-height: 1.3; }
.charts, .examples { display: grid; gap: 1.5rem 2.5rem; align-items: start;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 27rem), 1fr)); }
.charts figure { margin: 0; } .charts h3 { margin-top: .5rem; }
.example { min-width: 0; } .example h3 { margin: 0; font-size: 1rem; }
.example p { margin: 0 0 .5rem; font-size: .9rem; }
.row { display: grid; gap: .5rem; grid-template-columns: repeat(auto-fit, minmax(6.2rem, 1fr)); }
.row figure { margin: 0; } .row img, .codes { display: block; width: 100%; height: auto; border-radius: 2px; }
.row figcaption { font-size: .8rem; } .row.small { grid-template-columns: repeat(auto-fill, minmax(5rem, 1fr)); }
.row.three { grid-template-columns: repeat(3, 1fr); }
.strips { grid-column: 1 / -1; } .strips .row, .row.strips { grid-template-columns: 1fr; }
.strips .row img, .row.strips img { width: 100%; height: 7rem; image-rendering: auto; }
.codes { font: 13px system-ui, sans-serif; fill: var(--quiet); }
.codes .hot:hover path { stroke: var(--text); stroke-width: .16; }
.sheet { position: absolute; } .tile { width: 100%; display: block; background: var(--card); border-radius: 2px; }
.cards { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fill, minmax(6.4rem, 1fr)); font-size: .8rem;
  margin: 1rem 0; }
.large, .near { display: grid; grid-auto-flow: column; grid-auto-columns: 1fr; gap: 2px; }
.near { grid-template-columns: repeat(4, 1fr); width: 80%; }
.sounds { display: flex; flex-wrap: wrap; gap: .5rem 1.5rem; margin: .5rem 0; } .sound { margin: 0; }
.sound audio { display: block; width: 20rem; max-width: 100%; }
@media (max-width: 30rem) { h2 { margin-top: 2rem; }
  .row:not(.small, .strips, .three, .strips *) { grid-template-columns: 1fr 1fr; } }
"""


class Fact(NamedTuple):
    """A key number of a run, and its name."""

    value: str
    name: str


class Drawn(NamedTuple):
    """A quantity over the steps of a run."""

    name: str
    steps: Sequence[float]
    values: Sequence[float]
    sentence: str
    """An explanation of the curve."""
    unit: str = ""
    """The unit of the values."""
    limit: tuple[float, str] | None = None
    """The largest possible value, and its meaning."""

    def chart(self) -> str:
        """The curve as a chart."""
        levels = [] if self.limit is None else [Level(*self.limit)]
        return line_chart(self.name, self.steps, self.values, y_name=self.unit, levels=levels)


def run_page(name: str, introduction: str, chapters: Sequence[Chapter]) -> str:
    """The whole page about a run."""
    return page(name, introduction, chapters, style=_STYLE, maker=MAKER)


def about_chapter(
    facts: Sequence[Fact],
    what: Sequence[str],
    how: Sequence[str],
    settings: Mapping[str, Any],
    *,
    warnings: Sequence[str] = (),
) -> Chapter:
    """The chapter on what a run is.

    Arguments:
        facts: the key numbers.
        what: sentences about the model.
        how: sentences about its training.
        settings: all settings, nested as in `config.json`.
        warnings: problems of the model, which come first.
    """
    tiles = [f"<div><b>{words(fact.value)}</b>{words(fact.name)}</div>" for fact in facts]
    table = Table("All settings", ("setting", "value"), _rows(settings))
    parts = [
        warned(warnings),
        block("facts", *tiles) if tiles else "",
        listed(what),
        "<h3>How it was trained</h3>",
        listed(how),
    ]
    return Chapter("run", "Model", "\n".join([*parts, folded("All settings", table.html())]))


def _rows(settings: Mapping[str, Any], before: str = "") -> list[tuple[str, str]]:
    """The settings that are not None, by their full names."""
    rows = []
    for key, value in settings.items():
        if isinstance(value, Mapping):
            rows += _rows(value, f"{before}{key}.")
        elif value is not None:
            text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
            rows.append((before + key, text))
    return rows


def training_chapter(curves: Sequence[Drawn], warnings: Sequence[str]) -> Chapter:
    """The chapter on training: curves, each with an explanation, and warnings."""
    drawn = [block("", f"<h3>{words(one.name)}</h3>", figure(one.chart(), one.sentence)) for one in curves]
    parts = [block("charts", *drawn)] if drawn else [absent("No curves are shown", "nothing has been recorded yet")]
    parts += ["<h3>Warnings in training</h3>", listed(warnings)] if warnings else []
    return Chapter("training", "Training", "\n".join(parts))


def measures_chapter(tables: Sequence[Table], problems: Sequence[str], meanings: Sequence[str] = ()) -> Chapter:
    """The chapter on measures: tables, explanations of the measures, and HTML on what could not be measured."""
    told = ["<h3>What these measures mean</h3>", listed(meanings)] if meanings else []
    return Chapter("measures", "Measures", "\n".join([*(table.html() for table in tables), *told, *problems]))


def made_chapter(parts: Sequence[str]) -> Chapter:
    """The chapter on samples and interpolations, from HTML parts."""
    return Chapter("made", "Samples and interpolation", "\n".join(parts))


_FOLDERS = re.compile(r"(?<![\w.:/\\])(?:[A-Za-z]:)?[/\\](?:[^\s/\\:;,'\"]+[/\\])+")


def without_places(text: str, known: Sequence[str | Path] = ()) -> str:
    """A sentence in which paths are reduced to the names of files and folders, so that a shared page does not reveal
    them.

    Arguments:
        text: the sentence.
        known: paths that may occur in it, which may contain spaces.
    """
    for place in sorted(map(str, known), key=len, reverse=True):
        if Path(place).is_absolute():
            text = text.replace(place, Path(place).name)
    home = Path.home()
    if home != Path(home.anchor):
        text = text.replace(f"{home}{os.sep}", os.sep)  # a user's name may contain spaces, too
    return _FOLDERS.sub("", text)


def setting_without_places(value: Any, known: Sequence[str | Path] = ()) -> Any:
    """Settings in which paths are reduced to names, at any depth."""
    if isinstance(value, Mapping):
        return {key: setting_without_places(inner, known) for key, inner in value.items()}
    if isinstance(value, list):
        return [setting_without_places(inner, known) for inner in value]
    return without_places(value, known) if isinstance(value, str) else value
