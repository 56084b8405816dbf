"""Pictures and maps of codes, as SVG and HTML that stand in the page. Every text in them is escaped."""

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from sqvae.modalities.exploring import Box
from sqvae.reports.charts import time_axis
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
    stretched = ' preserveAspectRatio="none"' if wide else ""
    return (
        f'<svg class="{"strip" if wide else "picture"}" viewBox="0 0 {width} {height}"{stretched} role="img" '
        f'aria-label="{words(description)}"><image width="{width}" height="{height}" '
        f'preserveAspectRatio="none" href="{address(shown)}"/>{_frame(box)}</svg>'
    )


def code_map(
    codes: Tensor,
    own: Tensor,
    columns: int,
    boxes: Sequence[Box],
    size: tuple[int, int],
    colours: Sequence[str],
    names: Sequence[str],
    selected: int | None,
    *,
    wide: bool = False,
) -> str:  # (h, w) or (n,)
    """The codes of an example in their colours, each a cell that can be chosen, where its part of the picture is.

    The map has the coordinates of the picture, so that at the same width one lies exactly as the other. Cells meet, and
    a thin line of their own parts them. Where a place is selected, all places with the same code stand out. A mark
    tells what was changed.

    Arguments:
        own: the example's own codes.
        columns: how many stand in a row.
        boxes: the part of the picture that each place stands for.
        size: (width, height) of the picture.
        colours: of all K codes.
        names: of the places.
        selected: one of them.
        wide: stretch it to a strip.
    """
    flat, before = codes.flatten().tolist(), own.flatten().tolist()
    width, height = size
    numbered = columns <= NUMBERED and not wide
    chosen = None if selected is None else flat[selected]
    rows = []
    for start in range(0, len(flat), columns):
        cells = []
        for place in range(start, min(start + columns, len(flat))):
            code, box = flat[place], _inside(boxes[place], width, height)
            state = "" if chosen is None else " same" if code == chosen else " other"
            state += " chosen current" if place == selected else ""
            text = _number(box, code) if numbered else ""
            mark = _mark(box, wide) if code != before[place] else ""
            cells.append(
                f'<g role="gridcell" id="place-{place}" class="cell{state}" data-place="{place}" '
                f'aria-selected="{str(place == selected).lower()}" aria-label="{words(names[place])}: code {code}">'
                f'<rect {_place(box)} fill="{colours[code]}"/>{text}{mark}</g>'
            )
        rows.append(f'<g role="row">{"".join(cells)}</g>')
    stretched = ' preserveAspectRatio="none"' if wide else ""
    return (
        f'<svg class="codes{" strip" if wide else ""}" viewBox="0 0 {width} {height}"{stretched} role="presentation">'
        f"{''.join(rows)}{_frame(None if selected is None else _inside(boxes[selected], width, height))}</svg>"
    )


def _inside(box: Box, width: int, height: int) -> Box:
    """The last code of an odd number of frames stands for one of them."""
    return Box(box.left, box.top, min(box.width, width - box.left), min(box.height, height - box.top))


def _place(box: Box) -> str:
    return f'x="{box.left:g}" y="{box.top:g}" width="{box.width:g}" height="{box.height:g}"'


def _frame(box: Box | None) -> str:
    return "" if box is None else f'<rect class="halo" {_place(box)}/><rect class="frame" {_place(box)}/>'


def _number(box: Box, code: int) -> str:
    side = min(box.width, box.height)
    x, y = box.left + box.width / 2, box.top + box.height / 2 + 0.12 * side
    return f'<text x="{x:g}" y="{y:g}" font-size="{0.34 * side:.3g}">{code}</text>'


def _mark(box: Box, wide: bool) -> str:
    """Of a place that was changed."""
    if wide:
        return (
            f'<rect class="mark" x="{box.left:g}" y="{box.top:g}" width="{box.width:g}" height="{box.height / 4:g}"/>'
        )
    side = min(box.width, box.height)
    x, y = box.left + box.width - 0.16 * side, box.top + 0.16 * side
    return f'<circle cx="{x:g}" cy="{y:g}" r="{0.08 * side:.3g}"/>'


def seconds_below(seconds: float) -> str:
    """Seconds along the width of a strip."""
    return f'<svg class="seconds" role="img" aria-label="{seconds:.2f} seconds">{time_axis(seconds)}</svg>'


def tile(href: str, description: str) -> str:
    """What a code draws alone."""
    return f'<img class="tile" alt="{words(description)}" src="{href}">'
