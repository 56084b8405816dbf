"""Images and maps of codes as SVG and HTML. All text in them is escaped."""

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from sqvae.modalities.exploring import Box
from sqvae.reports.charts import time_axis
from sqvae.reports.page import address_of, as_png, words

MAX_NUMBERED_COLUMNS = 10
"""The largest number of columns of a map whose cells have room for the numbers of the codes."""


def address(image: Tensor) -> str:  # uint8 (3, H, W)
    """A data URL that contains an image."""
    return address_of(as_png(np.ascontiguousarray(image.permute(1, 2, 0).numpy())))


def image_svg(image: Tensor, description: str, box: Box | None = None, *, wide: bool = False) -> str:
    """An image, uint8 (3, H, W), with a frame around a part of it.

    Arguments:
        description: the text for screen readers.
        box: the part with a frame; None: no frame.
        wide: stretch the image to the full width.
    """
    height, width = image.shape[1:]
    stretched = ' preserveAspectRatio="none"' if wide else ""
    return (
        f'<svg class="{"strip" if wide else "picture"}" viewBox="0 0 {width} {height}"{stretched} role="img" '
        f'aria-label="{words(description)}"><image width="{width}" height="{height}" '
        f'preserveAspectRatio="none" href="{address(image)}"/>{_frame(box)}</svg>'
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
    """A map of an example's codes, with a selectable cell in the colour of the code at each position.

    The map has the coordinates of the image, so that each cell aligns with its part of the image. If a position is
    selected, all positions with the same code are highlighted. Positions whose code was replaced have a mark.

    Arguments:
        codes: the current codes.
        own: the example's own codes, before any replacement.
        columns: the number of codes in a row.
        boxes: the part of the image that each position covers.
        size: (width, height) of the image.
        colours: the colours of all K codes.
        names: the names of the positions.
        selected: the selected position; None: no position is selected.
        wide: stretch the map to the full width.
    """
    flat, flat_own = codes.flatten().tolist(), own.flatten().tolist()
    width, height = size
    numbered = columns <= MAX_NUMBERED_COLUMNS and not wide
    selected_code = None if selected is None else flat[selected]
    rows = []
    for start in range(0, len(flat), columns):
        cells = []
        for position in range(start, min(start + columns, len(flat))):
            code, box = flat[position], _inside(boxes[position], width, height)
            state = "" if selected_code is None else " same" if code == selected_code else " other"
            state += " chosen current" if position == selected else ""
            text = _number(box, code) if numbered else ""
            mark = _mark(box, wide) if code != flat_own[position] else ""
            cells.append(
                f'<g role="gridcell" id="position-{position}" class="cell{state}" data-position="{position}" '
                f'aria-selected="{str(position == selected).lower()}" '
                f'aria-label="{words(names[position])}: code {code}">'
                f'<rect {_rectangle(box)} fill="{colours[code]}"/>{text}{mark}</g>'
            )
        rows.append(f'<g role="row">{"".join(cells)}</g>')
    stretched = ' preserveAspectRatio="none"' if wide else ""
    return (
        f'<svg class="codes{" strip" if wide else ""}" viewBox="0 0 {width} {height}"{stretched} role="presentation">'
        f"{''.join(rows)}{_frame(None if selected is None else _inside(boxes[selected], width, height))}</svg>"
    )


def _inside(box: Box, width: int, height: int) -> Box:
    """The part of a box inside the image: with an odd number of frames, the last code covers only one."""
    return Box(box.left, box.top, min(box.width, width - box.left), min(box.height, height - box.top))


def _rectangle(box: Box) -> str:
    return f'x="{box.left:g}" y="{box.top:g}" width="{box.width:g}" height="{box.height:g}"'


def _frame(box: Box | None) -> str:
    return "" if box is None else f'<rect class="halo" {_rectangle(box)}/><rect class="frame" {_rectangle(box)}/>'


def _number(box: Box, code: int) -> str:
    side = min(box.width, box.height)
    x, y = box.left + box.width / 2, box.top + box.height / 2 + 0.12 * side
    return f'<text x="{x:g}" y="{y:g}" font-size="{0.34 * side:.3g}">{code}</text>'


def _mark(box: Box, wide: bool) -> str:
    """The mark of a position whose code was replaced."""
    if wide:
        return (
            f'<rect class="mark" x="{box.left:g}" y="{box.top:g}" width="{box.width:g}" height="{box.height / 4:g}"/>'
        )
    side = min(box.width, box.height)
    x, y = box.left + box.width - 0.16 * side, box.top + 0.16 * side
    return f'<circle cx="{x:g}" cy="{y:g}" r="{0.08 * side:.3g}"/>'


def time_scale(seconds: float) -> str:
    """A time axis in seconds below a strip."""
    return f'<svg class="seconds" role="img" aria-label="{seconds:.2f} seconds">{time_axis(seconds)}</svg>'


def tile(href: str, description: str) -> str:
    """The image of a code."""
    return f'<img class="tile" alt="{words(description)}" src="{href}">'
