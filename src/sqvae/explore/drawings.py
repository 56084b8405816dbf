"""Pictures and maps of codes, as SVG and HTML that stand in the page. Every text in them is escaped."""

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from sqvae.explore.kinds import Box
from sqvae.reports.page import address_of, as_png, words

NUMBERED = 10
"""Maps of so many columns have room for the codes' numbers."""


def address(picture: Tensor) -> str:  # uint8 (3, H, W)
    """An address that holds all of a picture."""
    return address_of(as_png(np.ascontiguousarray(picture.permute(1, 2, 0).numpy())))


def picture(shown: Tensor, description: str, box: Box | None = None, *, wide: bool = False) -> str:
    """A picture, uint8 (3, H, W), with a frame around a part of it.

    Arguments:
        description: for those who can't see it.
        wide: stretch it to a strip.
    """
    height, width = shown.shape[1:]
    frame = ""
    if box is not None:
        place = f'x="{box.left:g}" y="{box.top:g}" width="{box.width:g}" height="{box.height:g}"'
        frame = f'<rect class="halo" {place}/><rect class="frame" {place}/>'
    stretched = ' preserveAspectRatio="none"' if wide else ""
    return (
        f'<svg class="{"strip" if wide else "picture"}" viewBox="0 0 {width} {height}"{stretched} role="img" '
        f'aria-label="{words(description)}"><image width="{width}" height="{height}" '
        f'preserveAspectRatio="none" href="{address(shown)}"/>{frame}</svg>'
    )


def code_map(
    codes: Tensor, own: Tensor, columns: int, colours: Sequence[str], names: Sequence[str], selected: int | None
) -> str:  # (h, w) or (n,)
    """The codes of an example in their colours, each a cell that can be chosen.

    Where a place is selected, all places with the same code stand out. A dot marks what was changed.

    Arguments:
        own: the example's own codes.
        columns: how many stand in a row.
        colours: of all K codes.
        names: of the places.
        selected: one of them.
    """
    flat, before = codes.flatten().tolist(), own.flatten().tolist()
    numbered = columns <= NUMBERED
    chosen = None if selected is None else flat[selected]
    rows = []
    for start in range(0, len(flat), columns):
        cells = []
        for place in range(start, min(start + columns, len(flat))):
            code = flat[place]
            state = "" if chosen is None else " same" if code == chosen else " other"
            state += " chosen current" if place == selected else ""
            x, y = place % columns, place // columns
            text = f'<text x="{x + 0.5}" y="{y + 0.61}">{code}</text>' if numbered else ""
            dot = f'<circle cx="{x + 0.84}" cy="{y + 0.16}" r="0.08"/>' if code != before[place] else ""
            cells.append(
                f'<g role="gridcell" id="place-{place}" class="cell{state}" data-place="{place}" '
                f'aria-selected="{str(place == selected).lower()}" aria-label="{words(names[place])}: code {code}">'
                f'<rect x="{x + 0.02}" y="{y + 0.02}" width="0.96" height="0.96" rx="0.08" fill="{colours[code]}"/>'
                f"{text}{dot}</g>"
            )
        rows.append(f'<g role="row">{"".join(cells)}</g>')
    height = -(-len(flat) // columns)
    return f'<svg class="codes" viewBox="0 0 {columns} {height}" role="presentation">{"".join(rows)}</svg>'


def tile(href: str, description: str) -> str:
    """What a code draws alone."""
    return f'<img class="tile" alt="{words(description)}" src="{href}">'
