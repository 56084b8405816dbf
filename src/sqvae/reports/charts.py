"""Charts as SVG in a page: small enough for a phone, and in the colours of the page.

The first line of a chart describes what is under the pointer, without a script: each mark comes with a text, which the
page's style shows while the pointer is on it (`.hot .peek` in `page.py`).
"""

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from sqvae.reports.axes import STEEP, Axis, fitting, number
from sqvae.reports.page import words

WIDTH, HEIGHT = 360, 210
"""The size of a chart, in units of about a pixel on the smallest screens."""
LEFT, RIGHT, TOP, BOTTOM = 60, 16, 20, 34
"""The margins around the plot."""
UPWARD = (HEIGHT - BOTTOM, TOP)
"""The positions of the ends of vertical axes."""

POINTS = 200
"""The largest number of points of a line; more cannot be distinguished."""
FEW = 30
"""Up to this number of points are marked, because a line through one point does not show it."""
INK, PALE, ACCENT, RULE, QUIET = (
    "var(--ink, #1f4e79)",
    "var(--pale, #9db8d2)",
    "var(--accent, #c03a4e)",
    "var(--line, #d5d9e0)",
    "var(--quiet, #59606b)",
)


class Level(NamedTuple):
    """A value to compare with, drawn as a dashed line."""

    value: float
    name: str


def line_chart(
    title: str,
    xs: Sequence[float],
    ys: Sequence[float],
    *,
    x_name: str = "step",
    y_name: str = "",
    levels: Sequence[Level] = (),
) -> str:
    """A line chart.

    The vertical axis is logarithmic if the values differ by a large factor; if there are levels, it goes from 0 to the
    levels. Values that are not finite are left out.

    Arguments:
        title: the name of the quantity.
        xs, ys: the coordinates of the points.
        x_name, y_name: the labels of the axes, with units.
        levels: values to compare with, which are upper limits.
    """
    points = [(float(x), float(y)) for x, y in zip(xs, ys, strict=True) if math.isfinite(x) and math.isfinite(y)]
    points = _thinned(points)
    if not points:
        return _chart(title, "nothing recorded yet", [_text(WIDTH / 2, HEIGHT / 2, "nothing recorded yet", "middle")])
    values = [y for _, y in points] + [level.value for level in levels]
    across = Axis(0.0, max(x for x, _ in points) or 1.0, LEFT, WIDTH - RIGHT)
    up = fitting(values, *UPWARD, log=False if levels else None, floor=bool(levels))
    path = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in points)
    marks = [f'<polyline points="{path}" fill="none" stroke="{INK}" stroke-width="1.6" stroke-linejoin="round"/>']
    if len(points) <= FEW:
        marks += [f'<circle cx="{across(x):.1f}" cy="{up(y):.1f}" r="2.5" fill="{INK}"/>' for x, y in points]
    marks += [_level(level, up) for level in levels]
    marks += _columns(points, across)
    first, last = points[0], points[-1]
    description = f"From {number(first[1])} at {x_name} {number(first[0])} to {number(last[1])} at {number(last[0])}."
    return _chart(title, description, [*_axes(across, up, x_name, y_name), *marks])


def bar_chart(
    title: str,
    heights: Sequence[float],
    names: Sequence[str],
    *,
    x_name: str,
    y_name: str = "",
    levels: Sequence[Level] = (),
) -> str:
    """A bar chart of values that are not negative.

    Arguments:
        title: the name of the quantity.
        heights: the heights of the bars; if they differ by a large factor, the axis is logarithmic and bars of 0 are
            left out.
        names: the text for each bar when the pointer is on it.
        x_name, y_name: the labels of the axes, with units.
        levels: values to compare with.
    """
    values = [*heights, *(level.value for level in levels)]
    up = fitting(values, *UPWARD, log=max(values, default=0) > STEEP * max(_mean(heights), 1e-300), floor=True)
    across = Axis(0, max(1, len(heights)), LEFT, WIDTH - RIGHT)
    bars = []
    for place, (height, name) in enumerate(zip(heights, names, strict=True)):
        left, wide = across(place), across(place + 1) - across(place)
        top = up(height) if height > 0 else up.start
        bar = _box(left, top, wide * (0.9 if wide > 3 else 1), up.start - top, INK)
        bars.append(_hot(bar + _box(left, TOP, wide, up.start - TOP, "transparent"), _peek(name)))
    marks = [*_axes(across, up, x_name, y_name), *bars, *(_level(level, up) for level in levels)]
    return _chart(title, f"{len(heights):,} bars, up to {number(max(heights, default=0))}.", marks)


class Dot(NamedTuple):
    """A dot on a map."""

    x: float
    y: float
    """The vertical position, upwards. Both coordinates are in [0, 1]."""
    colour: str
    name: str
    """The text when the pointer is on it."""
    radius: float = 3.5
    hollow: bool = False
    shown: str = ""
    """SVG that is shown when the pointer is on it, 48 units high."""
    shown_width: float = 48
    """The width of that SVG, in units."""


def scatter(title: str, dots: Sequence[Dot]) -> str:
    """A map of dots, with a text and a small image for the dot under the pointer."""
    head, margin = 56, 14
    left, right = (end(dot.x for dot in dots) for end in (min, max))
    low, high = (end(dot.y for dot in dots) for end in (min, max))
    span = max(right - left, high - low) or 1.0
    unit = (WIDTH - 2 * margin) / span  # the same scale for both axes, so that distances are right
    height = round(max((high - low) * unit, WIDTH / 3)) + 2 * margin
    middle, centre = (left + right) / 2, (low + high) / 2
    parts = [f'<rect x="0.5" y="{head}" width="{WIDTH - 1}" height="{height}" fill="none" stroke="{RULE}" rx="4"/>']
    parts.append(_text(0, 28, "point at a dot", "start", kind="hint"))
    for dot in dots:
        x, y = WIDTH / 2 + (dot.x - middle) * unit, head + height / 2 - (dot.y - centre) * unit
        ring = f'fill="transparent" stroke="{dot.colour}"' if dot.hollow else f'fill="{dot.colour}"'
        circle = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{dot.radius:.1f}" {ring}/>'
        shown = f'<g class="peek">{dot.shown}</g>' if dot.shown else ""
        parts.append(_hot(circle, shown + _peek(dot.name, dot.shown_width + 8 if dot.shown else 0, 28)))
    return _chart(title, f"{len(dots):,} dots.", parts, height=head + height + 1)


def columns_picture(title: str, address: str, names: Sequence[str], *, x_name: str, y_name: str) -> str:
    """An image with a text for each column when the pointer is on it.

    Arguments:
        title: the title.
        address: the data URL of the image.
        names: the texts of the columns, from left to right.
        x_name, y_name: the labels of the axes.
    """
    left = 18
    across, bottom = Axis(0, max(1, len(names)), left, WIDTH), HEIGHT - BOTTOM
    parts = [
        f'<image href="{address}" x="{left}" y="{TOP}" width="{WIDTH - left}" height="{bottom - TOP}" '
        'preserveAspectRatio="none"/>',
        _text(WIDTH, bottom + 14, x_name, "end"),
        _upward(y_name),
    ]
    for place, name in enumerate(names):
        column = _box(across(place), TOP, across(place + 1) - across(place), bottom - TOP, "transparent")
        parts.append(_hot(column, _peek(name)))
    return _chart(title, f"{len(names):,} columns.", parts)


def _thinned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points, thinned out if there are too many; the last is kept."""
    every = max(1, -(-len(points) // POINTS))
    return points[::-every][::-1]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def time_axis(seconds: float, y: float = 0) -> str:
    """A time axis in seconds along the full width, for drawings without a scale of their own."""
    across = Axis(0, seconds, 0, 100)
    parts = [f'<line x1="0" x2="100%" y1="{y + 0.5:g}" y2="{y + 0.5:g}" stroke="{QUIET}"/>']
    for value in across.ticks(8):
        place = across(value)
        anchor = "start" if place < 3 else "end" if place > 97 else "middle"
        parts.append(f'<line x1="{place:.3f}%" x2="{place:.3f}%" y1="{y:g}" y2="{y + 4:g}" stroke="{QUIET}"/>')
        parts.append(
            f'<text class="label" x="{place:.3f}%" y="{y + 15:g}" text-anchor="{anchor}" fill="{QUIET}">'
            f"{number(value)} s</text>"
        )
    return "".join(parts)


def _upward(name: str) -> str:
    """The label of the vertical axis."""
    middle = (TOP + HEIGHT - BOTTOM) / 2
    return (
        f'<text class="label" transform="translate(10 {middle:g}) rotate(-90)" text-anchor="middle" fill="{QUIET}">'
        f"{words(name)}</text>"
    )


def _axes(across: Axis, up: Axis, x_name: str, y_name: str) -> list[str]:
    """The lines, ticks and numbers of both axes."""
    parts = [_upward(y_name)] if y_name else []
    for value in up.ticks():
        y = up(value)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="{RULE}" stroke-width="0.7"/>')
        parts.append(_text(LEFT - 5, y + 4, number(value), "end"))
    bottom = HEIGHT - BOTTOM
    for value in across.ticks(4):
        parts.append(_text(across(value), bottom + 14, number(value), "middle"))
    parts.append(f'<path d="M{LEFT} {bottom}H{WIDTH - RIGHT}" stroke="{QUIET}" stroke-width="1"/>')
    parts.append(_text(WIDTH - RIGHT, HEIGHT - 5, x_name, "end"))
    return parts


def _level(level: Level, up: Axis) -> str:
    y = up(level.value)
    line = f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="{ACCENT}" stroke-width="1.2" stroke-dasharray="4 3"/>'
    below = y < TOP + 14
    return line + _text(WIDTH - RIGHT, y + (12 if below else -4), level.name, "end", ACCENT)


def _columns(points: Sequence[tuple[float, float]], across: Axis) -> list[str]:
    """A column around each point, which shows its value when the pointer is in it."""
    places = [across(x) for x, _ in points]
    edges = [LEFT, *((one + other) / 2 for one, other in itertools.pairwise(places)), WIDTH - RIGHT]
    columns = []
    for (left, right), (x, y) in zip(itertools.pairwise(edges), points, strict=True):
        column = _box(left, TOP, right - left, HEIGHT - BOTTOM - TOP, "transparent")
        columns.append(_hot(column, _peek(f"{number(x)}: {number(y)}", LEFT)))
    return columns


def _hot(shape: str, peek: str) -> str:
    """A mark, and the text that is shown while the pointer is on it."""
    return f'<g class="hot">{shape}{peek}</g>'


def _peek(text: str, x: float = 0, y: float = 12) -> str:
    return f'<text class="peek" x="{x:g}" y="{y:g}" fill="currentColor">{words(text)}</text>'


def _box(x: float, y: float, width: float, height: float, fill: str) -> str:
    return f'<rect x="{x:.2f}" y="{y:.2f}" width="{max(width, 0):.2f}" height="{max(height, 0):.2f}" fill="{fill}"/>'


def _text(x: float, y: float, text: str, anchor: str, colour: str = QUIET, kind: str = "label") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{words(text)}</text>'


def _chart(title: str, description: str, parts: Sequence[str], *, height: int = HEIGHT) -> str:
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{words(title)}">'
        f"<desc>{words(description)}</desc>{''.join(parts)}</svg>"
    )
