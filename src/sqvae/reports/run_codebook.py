"""The codebook chapter of a run's page."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from sqvae.distributions import perplexity
from sqvae.reports.charts import Dot, Level, bar_chart, columns_picture, scatter
from sqvae.reports.codebook import counted, percent
from sqvae.reports.codes import SIDE, Card, Indices, Pixels, Tiles, hexadecimal, shown_cards
from sqvae.reports.page import Chapter, absent, address_of, as_png, block, figure, folded, paragraph

FIRST = 48
"""The number of codes that are shown at once; the others are in a part that can be opened."""

BARS = 512
"""The largest number of bars in a histogram; with more codes, several codes share a bar."""

NAMED = 60
"""The largest number of unused codes that are listed."""


@dataclass(frozen=True)
class Codebook:
    """A codebook of K codes, as the page shows it."""

    positions: NDArray[np.float32] = field(repr=False)
    """(K, 2): the positions of the codes on a map, in [0, 1]."""
    colours: Pixels = field(repr=False)
    """(K, 3): the colours of the codes."""
    nearest: Indices = field(repr=False)
    """(K, m): the nearest codes of each code, the nearest first."""
    tiles: Tiles = field(repr=False)
    """The images that single codes decode to, for all codes or for the most used."""
    seen: Tiles | None = field(repr=False)
    """The mean image patches at the positions of the most used codes, if there is data."""
    counts: Indices | None = field(repr=False)
    """(K,): the codebook usage, if it is known."""
    where: str
    """The data on which the usage was counted."""

    @property
    def size(self) -> int:
        """The number of codes, K."""
        return len(self.positions)

    @property
    def shares(self) -> NDArray[np.float64] | None:
        """(K,): the usage of each code as a share of all positions."""
        return None if self.counts is None else self.counts / max(1, int(self.counts.sum()))

    def note(self, code: int) -> str:
        """The usage of a code, as text."""
        shares = self.shares
        return "" if shares is None else (percent(float(shares[code])) if shares[code] else "never used")


class Heard(NamedTuple):
    """The mean spectra of codes of speech, side by side."""

    units: Sequence[int]
    picture: Pixels
    where: str


def codebook_chapter(book: Codebook, *, drawn: str, heard: Heard | None = None) -> Chapter:
    """The codebook usage, a map of the codes, and every code by itself.

    Arguments:
        book: the codebook.
        drawn: an explanation of the images that single codes decode to.
        heard: for speech, the mean spectra of the codes.
    """
    map_of_codes = figure(scatter("A map of the codes", _dots(book)), _about_map(book))
    parts = [
        *(tiles.definitions() for tiles in (book.tiles, book.seen) if tiles is not None),
        block(
            "charts",
            block("", "<h3>Codebook usage</h3>", *_use(book)),
            block("", "<h3>A map of the codes</h3>", map_of_codes),
        ),
    ]
    if heard is not None:
        parts += ["<h3>The mean spectrum of each code</h3>", _spectra(book, heard)]
    parts += ["<h3>Code by code</h3>", paragraph(drawn), _cards(book)]
    return Chapter("codebook", "Codebook", "\n".join(parts))


def no_codebook(reason: str) -> Chapter:
    """The chapter of a run that has no codebook to show."""
    return Chapter("codebook", "Codebook", absent("The codebook is not shown", reason))


def _use(book: Codebook) -> list[str]:
    if book.counts is None or book.shares is None:
        return [absent("The codebook usage is not shown", "it was not recorded; `sqvae evaluate` measures it")]
    chart = use_chart(book.counts)
    spread = float(perplexity(torch.from_numpy(book.counts).double()))
    caption = (
        f"The usage in percent of {int(book.counts.sum()):,} positions, on {book.where}. Perplexity {spread:,.1f} of "
        f"{book.size:,}: the effective number of codes in use."
    )
    return [figure(chart, caption), *_dead(np.flatnonzero(book.counts == 0), book.size)]


def use_chart(counts: Indices) -> str:  # (K,)
    """A bar chart of the usage of each code, in percent; with many codes, a bar is the mean of several codes."""
    size = len(counts)
    order = np.argsort(-counts, kind="stable")
    ranked = counts[order] / max(1, int(counts.sum()))
    together = -(-size // BARS)
    starts = range(0, size, together)
    return bar_chart(
        "share of all positions, the most used code first",
        [100 * float(ranked[start : start + together].mean()) for start in starts],
        [_bar_name(order[start : start + together], ranked[start], start) for start in starts],
        y_name="percent of all positions",
        x_name="codes, the most used first" if together == 1 else f"{together} codes per bar, the most used first",
        levels=[Level(100 / size, "equal use")],
    )


def _bar_name(codes: Indices, share: float, start: int) -> str:
    if len(codes) == 1:
        return f"code {codes[0]}: {percent(float(share))}"
    return f"codes {start + 1:,} to {start + len(codes):,} by use: up to {percent(float(share))} each"


def _dead(codes: Indices, size: int) -> list[str]:
    if not len(codes):
        return [paragraph(f"All {counted(size)} are used." if size > 1 else "The only code is used.", "quiet")]
    names = ", ".join(map(str, codes[:NAMED].tolist()))
    more = f" and {len(codes) - NAMED:,} more" if len(codes) > NAMED else ""
    named = f"Unused codes: {len(codes):,} of {size:,}, namely {names}{more}."
    return [paragraph(named, "quiet")]


def _dots(book: Codebook) -> list[Dot]:
    """Dots for the codes that have images, the rarest last: they are the smallest, and are drawn above the others."""
    shares = book.shares
    equal = 1 / book.size
    dots = []
    for code in book.tiles.codes.tolist():
        share = equal if shares is None else float(shares[code])
        x, y = (float(value) for value in book.positions[code])
        radius = float(np.clip(3.5 * np.sqrt(share / equal), 2, 9))
        note = book.note(code)
        name = f"code {code}" + (f": {note}" if note else "")
        both = [tiles for tiles in (book.seen, book.tiles) if tiles is not None]
        shown = "".join(tiles.part(code, x=place * (SIDE + 4)) for place, tiles in enumerate(both))
        width = len(both) * (SIDE + 4) - 4
        dots.append(Dot(x, y, hexadecimal(book.colours[code]), name, radius, share == 0, shown, width))
    return dots


def _about_map(book: Codebook) -> str:
    which = "Every code" if len(book.tiles.codes) == book.size else f"The {len(book.tiles.codes):,} most used codes"
    sizes = "" if book.counts is None else "Large dots are codes that are used often; rings are never used."
    return (
        f"{which} in the plane of their first two principal components: similar codes are near each other and have "
        f"similar colours.{sizes} Point at a dot to see what its code decodes to."
    )


def _spectra(book: Codebook, heard: Heard) -> str:
    names = [f"unit {unit}: {book.note(unit)}" for unit in heard.units]
    chart = columns_picture(
        "Mean spectra of codes",
        address_of(as_png(heard.picture)),
        names,
        x_name="codes, from dark to bright sounds",
        y_name="frequency, in mel bands",
    )
    caption = (
        f"The mean spectrum of each of the {len(names)} most used codes, with high frequencies at the top and loud "
        f"parts bright, on {heard.where}."
    )
    return figure(chart, caption)


def _cards(book: Codebook) -> str:
    codes: Sequence[int] = book.tiles.codes.tolist()
    some = [_some_cards(book, codes[:FIRST])]
    if len(codes) > FIRST:
        some.append(folded(f"{len(codes) - FIRST:,} more codes", _some_cards(book, codes[FIRST:])))
    if len(codes) < book.size:
        some.append(paragraph(f"The {book.size - len(codes):,} least used codes are not shown."))
    return block("", *some)


def _some_cards(book: Codebook, codes: Sequence[int]) -> str:
    some = [Card(code, book.note(code), book.nearest[code].tolist()) for code in codes]
    return shown_cards(some, book.tiles, book.seen)
