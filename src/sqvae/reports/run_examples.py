"""What a run makes of held-out examples, and what it makes by itself: chapters of the page about it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqvae.reports.codes import Indices, Pixels, Span, Tiles, code_map, code_numbers
from sqvae.reports.page import Chapter, block, figure, paragraph, picture, player, swatches, words

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
    span: Span | None = None
    """Of a strip: what its codes cover."""
    sounds: tuple[tuple[str, bytes], ...] = field(default=(), repr=False)
    """Of speech: what can be listened to, by name, as FLAC."""


@dataclass(frozen=True)
class LabelClass:
    """A class of label maps."""

    name: str
    colour: str
    """#rrggbb"""
    overlap: float | None
    """Intersection over union, where it was measured."""


def examples_chapter(
    examples: Sequence[Example],
    colours: Pixels | None,
    tiles: Tiles | None,
    *,
    legend: str,
    key: str = "",
    before: Sequence[str] = (),
) -> Chapter:
    """Examples through their codes.

    Arguments:
        colours: (K, 3), of codes; None where there are none.
        legend: how to read differences, in words;
        key: and their colours, as HTML.
        before: HTML that comes first: where they are from, what can't be shown, classes.
    """
    shown = [_example(one, colours, tiles) for one in examples]
    grid = [paragraph(legend), key, block("examples", *shown)] if shown else []
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
        parts.append(f"<figure>{code_map(one.codes, colours, tiles, one.span)}</figure>")
        numbers = code_numbers(one.codes)
    height, width = one.original.shape[:2]
    kind = "example strips" if one.span is not None or width > STRIP * height else "example"
    facts = f'<p class="quiet">{words("; ".join(one.facts))}</p>'
    row = block("row" if one.codes is not None else "row three", *parts)
    heard = block("sounds", *(player(content, name) for name, content in one.sounds)) if one.sounds else ""
    return f'<article class="{kind}"><h3>{words(one.name)}</h3>{facts}{heard}{row}{numbers}</article>'


def class_legend(classes: Sequence[LabelClass], most: int = 64) -> str:
    """The colours of classes, with how well each comes through where that is known."""
    notes = ["" if one.overlap is None else f"IoU {100 * one.overlap:.1f}%" for one in classes]
    return f"<h3>Classes</h3>{swatches([(one.name, one.colour) for one in classes], most, notes)}"


def pictures_row(
    title: str, caption: str, pictures: Sequence[Pixels], kind: str = "row small", names: Sequence[str] = ()
) -> str:
    """Pictures side by side under a heading, as many in a row as have room.

    Arguments:
        names: what is written below each; nothing where there are none.
    """
    shown = [picture(one, f"{title}, {place}") for place, one in enumerate(pictures, 1)]
    parts = [figure(one, name) for one, name in zip(shown, names, strict=True)] if names else shown
    return f"<h3>{words(title)}</h3>{figure(block(kind, *parts), caption)}"
