"""HTML pages in a single file that loads no other files: the frame, the style, and the elements."""

import base64
import html
import re
from collections.abc import Sequence
from io import BytesIO
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

SMALL = 128
"""Images up to this width in pixels are enlarged without interpolation."""

PALETTE = 256
"""The largest number of colours for which an image is stored with a palette."""

_CONTROLS = {code: "\N{REPLACEMENT CHARACTER}" for code in range(32) if chr(code) not in "\t\n"}
"""Control characters, which a file name may contain but a page may not."""

_QUOTED = re.compile("`([^`<>]+)`")

_POLICY = "default-src 'none'; img-src data:; media-src data:; style-src 'unsafe-inline'"
"""A content security policy that keeps the browser from loading anything from elsewhere."""

_STYLE = """
:root { color-scheme: light dark; --ground: #fff; --text: #222; --quiet: #59606b; --line: #d5d9e0; --card: #f5f6f8;
  --ink: #1f4e79; --pale: #9db8d2; --accent: #c03a4e; --good: #060; --bad: #a30; }
@media (prefers-color-scheme: dark) { :root { --ground: #16191e; --text: #e4e6ea; --quiet: #a3abb8; --line: #363c46;
  --card: #1f242b; --ink: #7fb2e5; --pale: #4a6b8c; --accent: #f0808f; --good: #7cc47c; --bad: #f09a70; } }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem;
  color: var(--text); background: var(--ground); overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.25; } h2 { margin-top: 3rem; } h3 { margin: 2rem 0 .5rem; }
a { color: var(--ink); } nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; list-style: none; padding: 0; }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto; }
caption { text-align: left; font-weight: bold; padding: .3rem 0; }
th, td { padding: .25rem .75rem; border-bottom: 1px solid var(--line); text-align: right; overflow-wrap: normal; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
img { max-width: 100%; } figure { margin: 1rem 0; } figcaption, section > p, .quiet { color: var(--quiet); }
figure > img[src^="data:image/svg"] { background: #fff; }
li.no strong { color: var(--bad); } li.yes strong { color: var(--good); }
.pixels { image-rendering: pixelated; } pre { overflow-x: auto; font-size: .8rem; line-height: 1.35; }
.absent { border-left: 3px solid var(--line); padding-left: .75rem; }
summary { cursor: pointer; color: var(--ink); }
.chart { display: block; width: 100%; max-width: 29rem; height: auto; font: 11px system-ui, sans-serif; }
.key { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 .5rem; max-width: 24rem; margin: .5rem 0;
  font-size: .75rem; color: var(--quiet); }
.key i { flex: 1 0 100%; height: .6rem; border: 1px solid var(--line); border-radius: 2px; }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; list-style: none; padding: 0; }
.swatch { display: inline-block; width: .9em; height: .9em; border-radius: 2px; margin-right: .4em;
  vertical-align: -.1em; border: 1px solid var(--line); }
.warned { border-left: 4px solid var(--bad); background: var(--card); padding: .25rem 1rem; border-radius: .3rem; }
.hot .peek { display: none; } .hot:hover .peek { display: inline; } svg:hover > .hint { display: none; }
"""


class Chapter(NamedTuple):
    """A chapter of a page, with an entry in the table of contents."""

    name: str
    """The anchor that links point to."""
    title: str
    body: str
    """The content as HTML."""


def page(title: str, introduction: str, chapters: Sequence[Chapter], *, style: str = "", maker: str = "sqvae") -> str:
    """A whole page.

    Arguments:
        title: the title of the page.
        introduction: a paragraph of plain text.
        chapters: the chapters.
        style: additional CSS for the chapters.
        maker: the command that made the page, by which :func:`is_page_of` recognises its file.
    """
    contents = "".join(f'<li><a href="#{words(one.name)}">{words(one.title)}</a></li>' for one in chapters)
    sections = "".join(
        f'<section id="{words(one.name)}"><h2>{words(one.title)}</h2>\n{one.body}\n</section>\n' for one in chapters
    )
    return (
        f'{_opening(maker)}<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>{words(title)}</title><style>{_STYLE}{style}</style></head>\n"
        f"<body><h1>{words(title)}</h1>\n{paragraph(introduction)}\n<nav><ul>{contents}</ul></nav>\n"
        f"{sections}</body></html>\n"
    )


def _opening(maker: str) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta name="generator" content="{words(maker)}">\n'
    )


def is_page_of(maker: str, content: str) -> bool:
    """Whether the content of a file is a page that this command made."""
    return content.startswith(_opening(maker))


def sentence(text: str) -> str:
    """Plain text as HTML, with `text in backquotes` as code."""
    return _QUOTED.sub(r"<code>\1</code>", words(text))


def words(text: str) -> str:
    """Plain text, escaped for HTML content and attributes."""
    return html.escape(text.translate(_CONTROLS), quote=True)


def paragraph(text: str, kind: str = "") -> str:
    """A paragraph of plain text."""
    return f"<p{_of_kind(kind)}>{sentence(text)}</p>"


def absent(what: str, reason: str) -> str:
    """A paragraph about something that is not shown, and why."""
    return paragraph(f"{what}: {reason}", "absent")


def listed(lines: Sequence[str]) -> str:
    """A list of sentences."""
    return "<ul>" + "".join(f"<li>{sentence(line)}</li>" for line in lines) + "</ul>"


def figure(content: str, caption: str, kind: str = "") -> str:
    """A figure of HTML content with a caption."""
    return f"<figure{_of_kind(kind)}>{content}<figcaption>{sentence(caption)}</figcaption></figure>"


def player(content: bytes, name: str) -> str:
    """An audio player with the sound embedded in the page.

    Arguments:
        content: a FLAC file, which all current browsers play.
        name: the caption.
    """
    sound = f'<audio controls preload="metadata" src="{address_of(content, "audio/flac")}" aria-label="{words(name)}">'
    return f'<figure class="sound"><figcaption>{words(name)}</figcaption>{sound}</audio></figure>'


def difference_key(colours: tuple[str, str, str], less: str, more: str, full: str) -> str:
    """A colour scale for signed differences, from the lowest to the highest.

    Arguments:
        colours: #rrggbb of the lowest difference, of no difference and of the highest.
        less, more: the meaning of the lowest and of the highest difference.
        full: the difference at both ends, with its unit.
    """
    below, above = f"\N{MINUS SIGN}{full}, {less}", f"+{full}, {more}"
    bar = f'<i style="background:linear-gradient(90deg,{",".join(colours)})"></i>'
    ends = "".join(f"<span>{words(end)}</span>" for end in (below, "equal", above))
    return f'<div class="key" role="img" aria-label="{words(f"differences from {below} to {above}")}">{bar}{ends}</div>'


def swatches(classes: Sequence[tuple[str, str]], most: int, notes: Sequence[str] = ()) -> str:
    """A legend of classes with their colours, names and notes.

    Arguments:
        classes: names, and colours as #rrggbb.
        most: the largest number of classes to show.
        notes: a note for each class.
    """
    items = [
        f'<li><span class="swatch" style="background:{words(colour)}"></span>{words(name)}'
        + (f' <span class="quiet">{words(note)}</span>' if note else "")
        + "</li>"
        for (name, colour), note in zip(classes[:most], (*notes, *[""] * len(classes)), strict=False)
    ]
    more = f'<li class="quiet">and {len(classes) - most:,} more classes</li>' if len(classes) > most else ""
    return f'<ul class="legend">{"".join(items)}{more}</ul>'


def warned(warnings: Sequence[str]) -> str:
    """A box of warnings; "" if there are none."""
    return f'<div class="warned" role="note">{listed(warnings)}</div>' if warnings else ""


def folded(summary: str, content: str) -> str:
    """HTML content that is folded, and can be opened."""
    return f"<details><summary>{words(summary)}</summary>{content}</details>"


def block(kind: str, *parts: str) -> str:
    """A block of HTML parts that are laid out together."""
    return f"<div{_of_kind(kind)}>{''.join(parts)}</div>"


def picture(pixels: NDArray[np.uint8], description: str) -> str:  # (H, W, 3)
    """An image embedded in the page.

    Arguments:
        pixels: the image.
        description: the alternative text.
    """
    height, width = pixels.shape[:2]
    kind = _of_kind("pixels") if width <= SMALL else ""
    return (
        f'<img{kind} width="{width}" height="{height}" alt="{words(description)}" src="{address_of(as_png(pixels))}">'
    )


def as_png(pixels: NDArray[np.uint8]) -> bytes:  # (H, W, 3)
    """An image as a PNG file: grey or with a palette if possible, which makes the file smaller."""
    file = BytesIO()
    _smallest(pixels).save(file, format="png", optimize=True)
    return file.getvalue()


def _smallest(pixels: NDArray[np.uint8]) -> Image.Image:
    if (pixels == pixels[..., :1]).all():
        return Image.fromarray(pixels[..., 0])
    colours, which = np.unique(pixels.reshape(-1, 3), axis=0, return_inverse=True)
    if len(colours) > PALETTE:
        return Image.fromarray(pixels)
    image = Image.fromarray(which.reshape(pixels.shape[:2]).astype(np.uint8))
    image.putpalette(colours.tobytes())
    return image


def address_of(content: bytes, kind: str = "image/png") -> str:
    """A data URL with the content of a file."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def _of_kind(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
