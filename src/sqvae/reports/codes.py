"""Codes in a page: coloured maps of codes, and images of what each code decodes to, which are stored once."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sqvae.reports.charts import time_axis
from sqvae.reports.page import address_of, as_png, block, folded, words

SIDE = 48
"""The side of the image of a code, in SVG units."""

WIDE = 140
"""The width of a map of codes, in SVG units."""

THICK = 24
"""The height of a strip of codes, in pixels."""

NUMBERED = 1024
"""Maps with up to this many positions are printed as numbers, too."""

Pixels: TypeAlias = NDArray[np.uint8]
Indices: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class Tiles:
    """What single codes decode to, as one image in the page whose parts are shown at many places.

    Arguments:
        name: a unique name in the page.
        codes: (n,), in any order.
        drawn: (n, P, Q, 3), the images.
    """

    name: str
    codes: Indices
    drawn: Pixels

    def definitions(self) -> str:
        """The image, and a symbol for each code. They must be in the page once, before all uses."""
        # Each part is padded with its own edge; otherwise an enlarged part would show a line of its neighbour.
        drawn = np.pad(self.drawn, ((0, 0), (1, 1), (1, 1), (0, 0)), mode="edge")
        number, height, width = drawn.shape[:3]
        columns = math.isqrt(max(number - 1, 0)) + 1
        rows = -(-number // columns)
        sheet = np.zeros((rows * columns, height, width, 3), dtype=np.uint8)
        sheet[:number] = drawn
        sheet = sheet.reshape(rows, columns, height, width, 3).swapaxes(1, 2).reshape(rows * height, columns * width, 3)
        parts = [
            f'<symbol id="{self.name}-{code}" preserveAspectRatio="none" viewBox="{place % columns * width + 1} '
            f'{place // columns * height + 1} {width - 2} {height - 2}"><use href="#{self.name}"/></symbol>'
            for place, code in enumerate(self.codes.tolist())
        ]
        return (
            f'<svg width="0" height="0" aria-hidden="true" class="sheet"><defs><image id="{self.name}" class="pixels" '
            f'width="{columns * width}" height="{rows * height}" href="{address_of(as_png(sheet))}"/>{"".join(parts)}'
            "</defs></svg>"
        )

    def part(self, code: int, side: int = SIDE, x: int = 0) -> str:
        """SVG of what a code decodes to; "" if there is no image of it."""
        if code not in self.codes:
            return ""
        return f'<use href="#{self.name}-{code}" x="{x}" width="{side}" height="{side}"/>'

    def picture(self, code: int, name: str) -> str:
        """An image of what a code decodes to."""
        return (
            f'<svg class="tile" viewBox="0 0 {SIDE} {SIDE}" role="img" aria-label="{words(name)}">'
            f"<title>{words(name)}</title>{self.part(code)}</svg>"
        )


class Span(NamedTuple):
    """The extent of a sequence of codes: the width of its spectrogram in codes, and its duration."""

    codes: float
    seconds: float


def code_map(
    codes: Indices, colours: Pixels, tiles: Tiles | None, span: Span | None = None
) -> str:  # (h, w) or (n,), (K, 3)
    """An example's codes in their colours. Pointing at a code names it, and marks all its positions.

    A sequence is drawn as a strip of the full width, with a time axis.

    Arguments:
        codes: the codes.
        colours: the colours of all codes.
        tiles: what the codes decode to, if that is known.
        span: for a sequence, the extent of the spectrogram above it.
    """
    grid = np.atleast_2d(codes)
    rows, columns = grid.shape
    is_strip = codes.ndim == 1
    across = columns if span is None else span.codes
    high = THICK if is_strip else round(WIDE * rows / columns)
    wide = "100%" if is_strip else str(WIDE)
    below = high + (18 if span is not None else 0)
    parts = []
    for code in np.unique(grid).tolist():
        places = np.argwhere(grid == code).tolist()
        widths = [min(1.0, across - column) for _, column in places]  # the last code of a sequence may cover less
        cells = "".join(
            f"M{column} {row}h{width:g}v1h-{width:g}z" for (row, column), width in zip(places, widths, strict=True)
        )
        area = (
            f'<svg width="{wide}" height="{high}" viewBox="0 0 {across:g} {rows}" preserveAspectRatio="none" '
            'shape-rendering="crispEdges">'
            f'<path d="{cells}" fill="{hexadecimal(colours[code])}"/></svg>'
        )
        tile = tiles.part(code, 20) if tiles is not None else ""
        text = f'<text x="{24 if tile else 0}" y="14">code {code}: {len(places)} of {grid.size:,}</text>'
        parts.append(f'<g class="hot">{area}<g class="peek" transform="translate(0 {below + 4})">{tile}{text}</g></g>')
    hint = f'<text class="hint" y="{below + 17}">codes: point at one</text>'
    name = f"{grid.size:,} codes, {len(parts)} different ones"
    size = f'height="{below + 26}"' if is_strip else f'viewBox="0 0 {WIDE} {high + 26}"'
    seconds = "" if span is None else time_axis(span.seconds, high)
    return f'<svg class="codes" {size} role="img" aria-label="{name}">{"".join(parts)}{seconds}{hint}</svg>'


def code_numbers(codes: Indices) -> str:  # (h, w) or (n,)
    """The codes as numbers, for those who cannot point or see; "" if there are too many."""
    if codes.size > NUMBERED:
        return ""
    wide = len(str(int(codes.max(initial=0))))
    rows = np.atleast_2d(codes) if codes.ndim > 1 else [codes[start : start + 16] for start in range(0, len(codes), 16)]
    text = "\n".join(" ".join(f"{int(code):>{wide}}" for code in row) for row in rows)
    return folded("as numbers", f"<pre>{text}</pre>")


class Card(NamedTuple):
    """A code, its usage and its nearest codes."""

    code: int
    note: str
    nearest: Sequence[int]
    """The nearest codes, the nearest first."""


def shown_cards(codes: Sequence[Card], drawn: Tiles, seen: Tiles | None) -> str:
    """A card for each code: the mean patch at its positions, what it decodes to, and smaller, what its nearest codes
    decode to."""
    shown = []
    for code, note, nearest in codes:
        near = "".join(drawn.picture(other, f"code {other}") for other in nearest if other in drawn.codes)
        taken = "" if seen is None or code not in seen.codes else seen.picture(code, f"seen at code {code}")
        large = taken + drawn.picture(code, f"code {code}")
        names = ", ".join(map(str, nearest))
        label = f"<div><b>{code}</b> {words(note)}</div>"
        small = f"{block('near', near)}{block('quiet', f'near {names}')}" if names else ""
        shown.append(block("card", block("large", large), label, small))
    return block("cards", *shown)


def hexadecimal(colour: Pixels) -> str:  # (3,)
    """A colour as #rrggbb."""
    return "#" + "".join(f"{int(part):02x}" for part in colour)
