"""Axes of charts: the positions of values, and round ticks."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

STEEP = 10
"""If the values differ by more than this factor, the axis is logarithmic."""

LEAST_SPAN = 0.2
"""An axis covers at least this share of its largest value, so that small changes look small."""


@dataclass(frozen=True)
class Axis:
    """An axis, which maps values to positions."""

    low: float
    high: float
    start: float
    """The position of the low end."""
    end: float
    """The position of the high end."""
    log: bool = False

    def __call__(self, value: float) -> float:
        """The position of a value; values outside of the axis are at its end."""
        low, high, here = (math.log(x) if self.log else x for x in (self.low, self.high, max(value, self.low)))
        share = (here - low) / (high - low) if high > low else 0.5
        return self.start + min(share, 1.0) * (self.end - self.start)

    def ticks(self, about: int = 5) -> list[float]:
        """Round values along the axis."""
        if self.log:
            decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            steps = (1, 2, 5) if self.high / self.low < 100 else (1,)
            every = max(1, round(len(decades) / about))
            values = [step * 10.0**decade for decade in decades[::every] for step in steps]
            inside = [value for value in values if self.low <= value <= self.high]
            if len(inside) > 1:  # a short axis may contain none of them
                return inside
        span = self.high - self.low
        if span <= 0:
            return [self.low]
        unit = 10.0 ** math.floor(math.log10(span / about))
        step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= 0.75 * span / about)
        return [step * index for index in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]


def fitting(values: Sequence[float], start: float, end: float, *, log: bool | None = None, floor: bool = False) -> Axis:
    """An axis for all finite values on which small changes look small: the one rule for all plots.

    It is logarithmic if the values differ by a large factor. It starts at 0 if they come near 0, and otherwise covers
    at least a fifth of the largest value.

    Arguments:
        values: the values.
        start, end: the positions of its ends.
        log: whether it is logarithmic; None decides from the values.
        floor: whether it starts at 0 or, if logarithmic, well below all values.
    """
    values = [value for value in values if math.isfinite(value)]
    positive = [value for value in values if value > 0]
    low, high = min(values, default=0.0), max(values, default=1.0)
    if log is None:
        log = low > 0 and high / low > STEEP
    if log and positive:
        low = min(positive)
        ends = (low / (2.0 if floor else 1.1), 1.1 * high)
    elif floor or (0 <= low <= 0.5 * high):
        log, ends = False, (0.0, 1.05 * high or 1.0)
    else:
        least = LEAST_SPAN * max(abs(low), abs(high)) or 2.0
        room = max(0.06 * (high - low), (least - (high - low)) / 2)
        log, ends = False, (low - room, high + room)
    return Axis(*ends, start, end, log)


def number(value: float) -> str:
    """A value with a readable number of digits."""
    if value and not 1e-4 <= abs(value) < 1e6:
        return f"{value:.2e}"
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"
