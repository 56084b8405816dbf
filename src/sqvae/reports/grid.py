"""Images in rows, with captions."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

import torch
from matplotlib import get_data_path
from PIL import Image, ImageDraw, ImageFont
from PIL.PngImagePlugin import PngInfo
from torch import Tensor

from sqvae.files import written
from sqvae.metrics.meanings import WRONG_LABELS

GAP, COLUMN_GAP = 2, 1
"""The gap between two bands of rows, and between two images of a row, in pixels of the images."""

SIDE = 96
"""The smallest height of an image in pixels, because small images are hard to see."""

NARROWEST = 560
"""The smallest width in pixels, so that captions fit."""

MOST_CLASSES = 24
"""The number of classes that are named below the images: the most frequent ones."""

LETTER = 14
"""The smallest height of letters in pixels. Wide sheets, which are viewed at a smaller size, have larger letters."""

INK, QUIET = "#1d232b", "#59606b"

Class: TypeAlias = tuple[str, str]
"""The name of a class of label maps, and its colour as #rrggbb."""


@dataclass(frozen=True)
class Caption:
    """The texts around a sheet of images."""

    title: str = ""
    """The model and the data that the images are of."""
    lines: tuple[str, ...] = ()
    """Explanations of the images."""
    rows: tuple[str, ...] = ()
    """The name of each row of a band."""
    columns: tuple[str, ...] = ()
    """The name of each column."""
    classes: tuple[Class, ...] = ()
    """For label maps, the classes that occur, the most frequent first."""

    @property
    def text(self) -> str:
        """All texts."""
        below = [name for name, _ in self.classes[:MOST_CLASSES]]
        more = _more(len(self.classes))
        parts = (self.title, *self.lines, ", ".join(self.rows), ", ".join(self.columns), ", ".join(below), more)
        return "\n".join(part for part in parts if part)


def _more(classes: int) -> str:
    return f"and {classes - MOST_CLASSES:,} more classes" if classes > MOST_CLASSES else ""


ORIGINAL, RECONSTRUCTION, WRONG = "original", "reconstruction", "wrong labels"
"""The names of the rows of pairs."""

WRONG_IN_COLOUR = f"Wrong labels: {WRONG_LABELS}."
"""An explanation of the third row."""


def save_pairs(
    path: Path,
    originals: Tensor,
    reconstructions: Tensor,
    errors: Tensor | None = None,
    columns: int = 8,
    *,
    title: str = "",
    lines: Sequence[str] = (),
    classes: Sequence[Class] = (),
) -> None:
    """Write rows of originals, each above the row of its reconstructions, with captions.

    Arguments:
        path: the file to write.
        originals, reconstructions: (n, C, H, W), in [0, 1], C = 1 or 3.
        errors: images of the errors in the same form, for a third row.
        columns: the largest number of images in a row.
        title: the model and the data.
        lines: further explanations.
        classes: for label maps, the classes that occur, the most frequent first.
    """
    rows, names = [originals, reconstructions], [ORIGINAL, RECONSTRUCTION]
    told = list(lines)
    if errors is not None:
        rows.append(errors)
        names.append(WRONG)
        told.append(WRONG_IN_COLOUR)
    save_rows(path, rows, columns, Caption(title, tuple(told), tuple(names), (), tuple(classes)))


def save_rows(path: Path, rows: Sequence[Tensor], columns: int = 8, caption: Caption | None = None) -> None:
    """Write rows of images, with related images above each other and grey lines between the bands of rows.

    Arguments:
        path: the file to write.
        rows: (n, C, H, W) each, in [0, 1], C = 1 or 3.
        columns: the largest number of images in a row.
        caption: the texts around them; None for a plain sheet.
    """
    image = _sheet(rows, columns)
    if caption is None:
        with written(path, lasting=False) as aside:
            image.save(aside)
        return
    # The texts are stored in the file as well, for those who cannot see them.
    about = PngInfo()
    about.add_itxt("Description", caption.text)
    with written(path, lasting=False) as aside:
        _captioned(image, rows, columns, caption).save(aside, pnginfo=about)


def _scale(height: int) -> int:
    return max(1, SIDE // height)


def _sheet(rows: Sequence[Tensor], columns: int) -> Image.Image:
    count, channels, height, width = rows[0].shape
    columns = min(columns, count)
    bands = []
    for start in range(0, count, columns):
        pairs = [pictures[start : start + columns] for pictures in rows]
        band = torch.full((channels, len(rows) * height, columns * (width + COLUMN_GAP) - COLUMN_GAP), 0.5)
        for row, pictures in enumerate(pairs):
            for column, picture in enumerate(pictures):
                top, left = row * height, column * (width + COLUMN_GAP)
                band[:, top : top + height, left : left + width] = picture
        bands += [band, torch.full((channels, GAP, band.shape[2]), 0.5)]
    grid = (torch.cat(bands[:-1], 1).clamp(0, 1) * 255).round().byte().permute(1, 2, 0).squeeze(-1)
    image = Image.fromarray(grid.contiguous().numpy())
    scale = _scale(height)
    return image.resize((scale * image.width, scale * image.height), Image.Resampling.NEAREST)


def _captioned(sheet: Image.Image, rows: Sequence[Tensor], columns: int, caption: Caption) -> Image.Image:
    """A sheet with its texts above it, beside its rows and below it."""
    count, _, height, width = rows[0].shape
    scale = _scale(height)
    size = max(LETTER, round(max(sheet.width, NARROWEST) / 80))
    pen = _Pen(size)
    margin, line = size, round(1.4 * size)
    beside = margin + max([pen.width(name) for name in caption.rows], default=0)
    left = beside + (size // 2 if caption.rows else 0)
    wide = max(left + sheet.width + margin, NARROWEST)
    title = pen.wrapped(caption.title, wide - 2 * margin, bold=True)
    told = [part for text in caption.lines for part in pen.wrapped(text, wide - 2 * margin)]
    top = margin // 2 + line * (len(title) + len(told) + bool(caption.columns)) + size // 3
    legend, legend_lines = pen.legend(caption.classes, wide - 2 * margin)
    tall = top + sheet.height + (line * (legend_lines + 1) if legend_lines else 0) + margin // 2
    image = Image.new("RGB", (wide, tall), "white")
    draw = ImageDraw.Draw(image)
    for place, text in enumerate(title):
        pen.write(draw, margin, margin // 2 + line * place, text, bold=True)
    for place, text in enumerate(told, len(title)):
        pen.write(draw, margin, margin // 2 + line * place, text, fill=QUIET)
    for place, text in enumerate(caption.columns):
        middle = left + scale * ((width + COLUMN_GAP) * place + width / 2)
        pen.write(draw, round(middle - pen.width(text) / 2), top - line, text, fill=QUIET)
    image.paste(sheet, (left, top))
    for band in range(math.ceil(count / min(columns, count))):
        for row, text in enumerate(caption.rows):
            middle = top + scale * (band * (len(rows) * height + GAP) + (row + 0.5) * height)
            pen.write(draw, beside - pen.width(text), round(middle - 0.6 * size), text, fill=QUIET)
    legend(draw, margin, top + sheet.height + line // 2)
    grey = sheet.mode == "L" and not caption.classes
    return image.convert("L") if grey else image


@cache
def _font(size: int, *, bold: bool) -> ImageFont.FreeTypeFont:
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(str(Path(get_data_path()) / "fonts" / "ttf" / name), size)


class _Pen:
    """Writes text in letters of one size.

    Arguments:
        size: the size of letters in pixels.
    """

    def __init__(self, size: int) -> None:
        self.size = size

    def width(self, text: str, *, bold: bool = False) -> int:
        """The width of a line."""
        return math.ceil(_font(self.size, bold=bold).getlength(text))

    def write(
        self, draw: ImageDraw.ImageDraw, x: int, y: int, text: str, *, fill: str = INK, bold: bool = False
    ) -> None:
        """Write a line."""
        draw.text((x, y), text, fill=fill, font=_font(self.size, bold=bold))

    def wrapped(self, text: str, room: int, *, bold: bool = False) -> list[str]:
        """A sentence, wrapped into lines that fit."""
        lines: list[str] = []
        for word in " ".join(text.split()).split(" ") if text else []:
            longer = f"{lines[-1]} {word}" if lines else word
            if lines and self.width(longer, bold=bold) <= room:
                lines[-1] = longer
            else:
                lines.append(self.cut(word, room, bold=bold))
        return lines

    def cut(self, text: str, room: int, *, bold: bool = False) -> str:
        """A name, shortened until it fits."""
        if self.width(text, bold=bold) <= room:
            return text
        while len(text) > 1 and self.width(f"{text}...", bold=bold) > room:
            text = text[:-1]
        return f"{text}..."

    def legend(
        self, classes: Sequence[Class], room: int
    ) -> tuple[Callable[[ImageDraw.ImageDraw, int, int], None], int]:
        """A function that draws a legend of classes in columns, and its number of lines."""
        swatch, line = self.size, round(1.4 * self.size)
        shown = classes[:MOST_CLASSES]
        widest = room - 2 * swatch
        names = [self.cut(" ".join(name.split()), widest) for name, _ in shown]
        column = 3 * swatch + max(map(self.width, names), default=0)
        number = max(1, room // column)
        lines = math.ceil(len(shown) / number)
        more = _more(len(classes))

        def draw_legend(draw: ImageDraw.ImageDraw, left: int, top: int) -> None:
            for place, (name, (_, colour)) in enumerate(zip(names, shown, strict=True)):
                # The order is down the columns.
                x, y = left + place // lines * column, top + place % lines * line
                draw.rectangle((x, y + 1, x + swatch, y + 1 + swatch), fill=colour, outline=QUIET)
                self.write(draw, x + swatch + swatch // 2, y, name)
            if more:
                self.write(draw, left, top + lines * line, more, fill=QUIET)

        return draw_legend, lines + bool(more)
