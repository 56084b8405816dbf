"""Chapters of a run's page on held-out examples, samples and interpolations."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqvae.reports.codes import Indices, Pixels, Span, Tiles, code_map, code_numbers
from sqvae.reports.page import Chapter, block, figure, paragraph, picture, player, swatches, words

STRIP = 2.5
"""Images of at least this aspect ratio are shown below each other."""


@dataclass(frozen=True)
class Example:
    """An example, its reconstruction and its codes."""

    name: str
    original: Pixels = field(repr=False)
    """(H, W, 3), like the other images."""
    reconstruction: Pixels = field(repr=False)
    difference: Pixels = field(repr=False)
    codes: Indices | None = field(repr=False)
    """(h, w) or (n,): the codes; None for a continuous latent."""
    facts: tuple[str, ...]
    """The error and the size in bits, as text."""
    span: Span | None = None
    """For a sequence, the extent of its codes."""
    sounds: tuple[tuple[str, bytes], ...] = field(default=(), repr=False)
    """For speech, sounds by name, as FLAC files."""


@dataclass(frozen=True)
class LabelClass:
    """A class of label maps."""

    name: str
    colour: str
    """The colour as #rrggbb."""
    overlap: float | None
    """The intersection over union, if it was measured."""


def examples_chapter(
    examples: Sequence[Example],
    colours: Pixels | None,
    tiles: Tiles | None,
    *,
    legend: str,
    key: str = "",
    before: Sequence[str] = (),
) -> Chapter:
    """The chapter on held-out examples, their reconstructions and their codes.

    Arguments:
        examples: the examples.
        colours: (K, 3), the colours of the codes; None if there are none.
        tiles: what the codes decode to, if that is known.
        legend: an explanation of the differences.
        key: the colour scale of the differences, as HTML.
        before: HTML that comes first: the source of the examples, what cannot be shown, and the classes.
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
    """A legend of classes, with the intersection over union of each if it is known."""
    notes = ["" if one.overlap is None else f"IoU {100 * one.overlap:.1f}%" for one in classes]
    return f"<h3>Classes</h3>{swatches([(one.name, one.colour) for one in classes], most, notes)}"


def pictures_row(
    title: str, caption: str, pictures: Sequence[Pixels], kind: str = "row small", names: Sequence[str] = ()
) -> str:
    """Images side by side under a heading, as many in a row as fit.

    Arguments:
        title: the heading.
        caption: the caption below all of them.
        pictures: the images.
        kind: the CSS class of the row.
        names: a caption for each image, or none.
    """
    shown = [picture(one, f"{title}, {place}") for place, one in enumerate(pictures, 1)]
    parts = [figure(one, name) for one, name in zip(shown, names, strict=True)] if names else shown
    return f"<h3>{words(title)}</h3>{figure(block(kind, *parts), caption)}"
