"""The codebook of a run: a chapter of the page about it."""

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
"""Codes that are shown one by one; the others are there when they are asked for."""

BARS = 512
"""A histogram has so many bars at most; then several codes share one."""

NAMED = 60
"""Codes that are listed by their numbers."""


@dataclass(frozen=True)
class Codebook:
    """What is shown of a codebook of K codes."""

    positions: NDArray[np.float32] = field(repr=False)
    """(K, 2), in [0, 1]."""
    colours: Pixels = field(repr=False)
    """(K, 3)"""
    nearest: Indices = field(repr=False)
    """(K, m), the nearest first."""
    tiles: Tiles = field(repr=False)
    """What codes draw alone: of all, or of the most used."""
    seen: Tiles | None = field(repr=False)
    """What is seen where codes are taken, of those that are taken most, if there is data to tell."""
    counts: Indices | None = field(repr=False)
    """(K,), how often each was taken, where that is known,"""
    where: str
    """and on what."""

    @property
    def size(self) -> int:
        """K"""
        return len(self.positions)

    @property
    def shares(self) -> NDArray[np.float64] | None:
        """(K,), of all places."""
        return None if self.counts is None else self.counts / max(1, int(self.counts.sum()))

    def note(self, code: int) -> str:
        """How often a code is used."""
        shares = self.shares
        return "" if shares is None else (percent(float(shares[code])) if shares[code] else "never used")


class Heard(NamedTuple):
    """The mean spectra of units of speech, side by side."""

    units: Sequence[int]
    picture: Pixels
    where: str


def codebook_chapter(book: Codebook, *, drawn: str, heard: Heard | None = None) -> Chapter:
    """Use, a map, and every code by itself.

    Arguments:
        drawn: how to read what a code draws alone.
        heard: of speech, what is heard where units are taken.
    """
    map_of_codes = figure(scatter("A map of the codes", _dots(book)), _about_map(book))
    parts = [
        *(tiles.definitions() for tiles in (book.tiles, book.seen) if tiles is not None),
        block(
            "charts",
            block("", "<h3>How often each code is used</h3>", *_use(book)),
            block("", "<h3>A map of the codes</h3>", map_of_codes),
        ),
    ]
    if heard is not None:
        parts += ["<h3>What is heard where each unit is taken</h3>", _spectra(book, heard)]
    parts += ["<h3>Code by code</h3>", paragraph(drawn), _cards(book)]
    return Chapter("codebook", "Codebook", "\n".join(parts))


def no_codebook(reason: str) -> Chapter:
    """Where there is none to show."""
    return Chapter("codebook", "Codebook", absent("Nothing of a codebook is shown", reason))


def _use(book: Codebook) -> list[str]:
    if book.counts is None or book.shares is None:
        return [absent("The use of codes is not shown", "it was not recorded; `sqvae evaluate` measures it")]
    chart = use_chart(book.counts)
    spread = float(perplexity(torch.from_numpy(book.counts).double()))
    caption = (
        f"In percent of {int(book.counts.sum()):,} places, on {book.where}. Perplexity {spread:,.1f} of {book.size:,}: "
        "as if so many codes were used equally often."
    )
    return [figure(chart, caption), *_dead(np.flatnonzero(book.counts == 0), book.size)]


def use_chart(counts: Indices) -> str:  # (K,)
    """How often each code is used, in percent, as bars; where there are many codes, several to a bar."""
    size = len(counts)
    order = np.argsort(-counts, kind="stable")
    ranked = counts[order] / max(1, int(counts.sum()))
    together = -(-size // BARS)
    starts = range(0, size, together)
    return bar_chart(
        "share of all places, the most used code first",
        [100 * float(ranked[start : start + together].mean()) for start in starts],
        [_bar_name(order[start : start + together], ranked[start], start) for start in starts],
        y_name="percent of all places",
        x_name="codes, the most used first" if together == 1 else f"{together} codes a bar, the most used first",
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
    named = f"Dead codes, which are never used: {len(codes):,} of {size:,}, namely {names}{more}."
    return [paragraph(named, "quiet")]


def _dots(book: Codebook) -> list[Dot]:
    """The codes whose pictures are there, the rarest last: they are the smallest, and lie above the others."""
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
    sizes = "" if book.counts is None else " Large dots are used often, and rings never."
    return (
        f"{which} in the plane in which the codes are spread most: near dots are like codes, in like colours.{sizes} "
        "Point at one to see what it draws."
    )


def _spectra(book: Codebook, heard: Heard) -> str:
    names = [f"unit {unit}: {book.note(unit)}" for unit in heard.units]
    chart = columns_picture(
        "Mean spectra of units",
        address_of(as_png(heard.picture)),
        names,
        x_name="units, from dark to bright sounds",
        y_name="pitch, in mel bands",
    )
    caption = (
        f"The mean spectrum of each of the {len(names)} units used most, pitch upwards, loud parts bright, on "
        f"{heard.where}."
    )
    return figure(chart, caption)


def _cards(book: Codebook) -> str:
    codes: Sequence[int] = book.tiles.codes.tolist()
    some = [_some_cards(book, codes[:FIRST])]
    if len(codes) > FIRST:
        some.append(folded(f"{len(codes) - FIRST:,} more codes", _some_cards(book, codes[FIRST:])))
    if len(codes) < book.size:
        some.append(paragraph(f"The {book.size - len(codes):,} codes that are used least are left out."))
    return block("", *some)


def _some_cards(book: Codebook, codes: Sequence[int]) -> str:
    some = [Card(code, book.note(code), book.nearest[code].tolist()) for code in codes]
    return shown_cards(some, book.tiles, book.seen)
