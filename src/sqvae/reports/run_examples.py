"""What a run makes of held-out examples, and what it makes by itself: chapters of the page about it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqvae.reports.codes import Indices, Pixels, Tiles, code_map, code_numbers
from sqvae.reports.page import Chapter, block, figure, paragraph, picture, words

STRIP = 2.5
"""Pictures so many times as wide as high are shown below each other."""


@dataclass(frozen=True)
class Example:
    """One example, what became of it, and by which codes."""

    name: str
    original: Pixels = field(repr=False)
    """(H, W, 3), as are the others."""
    reconstruction: Pixels = field(repr=False)
    difference: Pixels = field(repr=False)
    codes: Indices | None = field(repr=False)
    """(h, w) or (n,); None where the latent is continuous."""
    facts: tuple[str, ...]
    """Error and cost, in words."""


@dataclass(frozen=True)
class LabelClass:
    """A class of label maps."""

    name: str
    colour: str
    """#rrggbb"""
    overlap: float | None
    """Intersection over union, where it was measured."""


def examples_chapter(
    examples: Sequence[Example], colours: Pixels | None, tiles: Tiles | None, *, legend: str, before: Sequence[str] = ()
) -> Chapter:
    """Examples through their codes.

    Arguments:
        colours: (K, 3), of codes; None where there are none.
        legend: how to read differences, in words.
        before: HTML that comes first: where they are from, what can't be shown, classes.
    """
    shown = [_example(one, colours, tiles) for one in examples]
    grid = [paragraph(legend), block("examples", *shown)] if shown else []
    return Chapter("examples", "Held-out examples", "\n".join([*before, *grid]))


def _example(one: Example, colours: Pixels | None, tiles: Tiles | None) -> str:
    parts = [
        figure(picture(pixels, f"{name}: {one.name}"), name)
        for pixels, name in (
            (one.original, "original"),
            (one.reconstruction, "reconstruction"),
            (one.difference, "difference"),
        )
    ]
    numbers = ""
    if one.codes is not None and colours is not None:
        parts.append(f"<figure>{code_map(one.codes, colours, tiles)}</figure>")
        numbers = code_numbers(one.codes)
    height, width = one.original.shape[:2]
    kind = "example strips" if width > STRIP * height else "example"
    facts = f'<p class="quiet">{words("; ".join(one.facts))}</p>'
    row = block("row" if one.codes is not None else "row three", *parts)
    return f'<article class="{kind}"><h3>{words(one.name)}</h3>{facts}{row}{numbers}</article>'


def class_legend(classes: Sequence[LabelClass], most: int = 64) -> str:
    """The colours of classes, with how well each comes through where that is known."""
    items = [
        f'<li><span class="swatch" style="background:{one.colour}"></span>{words(one.name)}'
        + (f' <span class="quiet">IoU {100 * one.overlap:.1f}%</span>' if one.overlap is not None else "")
        + "</li>"
        for one in classes[:most]
    ]
    more = paragraph(f"and {len(classes) - most:,} more classes") if len(classes) > most else ""
    return f'<h3>Classes</h3><ul class="legend">{"".join(items)}</ul>{more}'


def pictures_row(title: str, caption: str, pictures: Sequence[Pixels], kind: str = "row small") -> str:
    """Pictures side by side under a heading, as many in a row as have room."""
    parts = "".join(picture(one, f"{title}, {place}") for place, one in enumerate(pictures, 1))
    return f"<h3>{words(title)}</h3>{figure(block(kind, parts), caption)}"
