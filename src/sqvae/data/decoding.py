"""Decoding of one image file of any format to an 8-bit array."""

import os
import warnings
from io import BytesIO
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from sqvae.data.limits import PIXELS, check_pixels
from sqvae.data.preprocessing import MOST_CLASSES, Header, Preprocessing, centred_part

EXTENSIONS = frozenset(
    f".{ending}"
    for endings in ("jpg jpeg jpe jfif png webp bmp dib gif", "tif tiff ppm pgm pbm pnm jp2 avif heic heif")
    for ending in endings.split()
)
"""File extensions of images. Files that Pillow can't read are reported as skipped, not ignored silently."""

_FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "DIB", "GIF", "TIFF", "PPM", "JPEG2000", "AVIF", "HEIF")

_GREY = frozenset(("1", "L", "LA", "La", "I", "F", "I;16", "I;16L", "I;16B", "I;16N"))

Stored: TypeAlias = NDArray[np.uint8 | np.uint16 | np.int16]
"""Images are uint8; label maps may need more."""

_LABELS = frozenset(("1", "L", "P", "I", "I;16", "I;16L", "I;16B", "I;16N"))
_SPREAD = {"L;2": 85, "L;4": 17}
_LOSSY = frozenset(("JPEG", "MPO", "JPEG2000", "HEIF", "AVIF"))
"""Modes that label maps may have, factors by which Pillow multiplies labels, and formats that they must not have."""

Colour: TypeAlias = tuple[int, int, int]
"""Red, green and blue, 0 to 255 each."""

_ORIENTATION = 0x0112

_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""EXIF orientation -> the operation that turns the image upright."""


def is_picture_name(name: str) -> bool:
    """Whether a file name has an extension of images."""
    return os.path.splitext(name)[1].lower() in EXTENSIONS


def open_picture(source: Path | bytes) -> Image.Image:
    """Open an image file without decoding it."""
    # Only image formats: Pillow would pass others, such as EPS, to programs that execute what the file contains.
    Image.init()
    formats = [name for name in _FORMATS if name in Image.OPEN]
    if (len(source) if isinstance(source, bytes) else source.stat().st_size) == 0:
        raise ValueError("the file is empty")
    with warnings.catch_warnings():
        # Pillow has its own limits on sizes; ours are checked below and can be changed.
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        try:
            image = Image.open(BytesIO(source) if isinstance(source, bytes) else source, formats=formats)
        except UnidentifiedImageError as unknown:
            raise ValueError("not an image that Pillow can read") from unknown
        except Image.DecompressionBombError as bomb:
            raise ValueError(f"it has far more pixels than the limit, {PIXELS.most:,}: make it smaller") from bomb
    try:
        check_pixels(*image.size)
    except ValueError:
        image.close()
        raise
    return image


def read_header(image: Image.Image) -> Header:
    """The upright size of an image and whether it is grey, without decoding it."""
    width, height = image.size
    # Pillow already gives the upright size of a TIFF.
    if image.format != "TIFF" and _orientation(image) >= 5:
        width, height = height, width
    return Header(width, height, image.mode in _GREY)


def decode(image: Image.Image, preprocessing: Preprocessing) -> tuple[Stored, bool]:
    """The image as (C, H, W), and whether it was enlarged."""
    if preprocessing.labels:
        return _decode_labels(image, preprocessing)
    channels, height, width = preprocessing.shape
    # Always from all pixels, though a JPEG could be decoded at a fraction of its size: an image that is already in
    # memory, or an array of it, must give the same codes as its file.
    upright = _upright(image)
    eight_bit = _in_mode(_eight_bit(upright), "L" if channels == 1 else "RGB")
    cut = _crop(eight_bit, preprocessing.crop, height, width)
    enlarged = cut.width < width or cut.height < height
    resized = cut if cut.size == (width, height) else cut.resize((width, height), Image.Resampling.BILINEAR)
    array = np.asarray(resized)
    return np.ascontiguousarray(array[None] if channels == 1 else array.transpose(2, 0, 1)), enlarged


def _orientation(image: Image.Image) -> int:
    try:
        orientation = image.getexif().get(_ORIENTATION, 1)
    except Exception:
        # An image with damaged EXIF data is still usable; Pillow may raise any exception for it.
        return 1
    return orientation if isinstance(orientation, int) else 1


def _upright(image: Image.Image) -> Image.Image:
    # Loads the first frame of an animation. A TIFF is turned, and its tag removed, when it is loaded.
    image.load()
    turn = _UPRIGHT.get(_orientation(image))
    return image if turn is None else image.transpose(turn)


def _eight_bit(image: Image.Image) -> Image.Image:
    """The image in mode L or RGB, on a white background if it is transparent."""
    if image.mode.startswith("I"):
        return Image.fromarray(_from_integers(np.asarray(image)))
    if image.mode == "F":
        return Image.fromarray(_from_reals(np.asarray(image)))
    if image.mode in ("RGBA", "RGBa", "LA", "La", "PA") or "transparency" in image.info:
        opaque = image.convert("RGBA")
        white = Image.new("RGBA", opaque.size, "white")
        return Image.alpha_composite(white, opaque).convert("L" if image.mode in _GREY else "RGB")
    return _in_mode(image, "L" if image.mode in _GREY else "RGB")


def _in_mode(image: Image.Image, mode: str) -> Image.Image:
    # Pillow copies an image that already has the mode, which takes as long as decoding it.
    return image if image.mode == mode else image.convert(mode)


def _from_integers(values: NDArray[np.generic]) -> NDArray[np.uint8]:
    lowest, highest = int(values.min()), int(values.max())
    if lowest < 0 or highest > 65535:
        raise ValueError(f"its values lie in [{lowest}, {highest}]; 16-bit images have values from 0 to 65535")
    return sixteen_to_eight(values)


def sixteen_to_eight(values: NDArray[np.generic]) -> NDArray[np.uint8]:
    """0..65535 to 0..255, rounded: 65535 = 255 * 257."""
    return ((values.astype(np.int32) + 128) // 257).astype(np.uint8)


def _from_reals(values: NDArray[np.generic]) -> NDArray[np.uint8]:
    # Written in this way so that NaN fails as well.
    if not (values.min() >= 0 and values.max() <= 1):
        raise ValueError(f"its values lie in [{values.min():g}, {values.max():g}]; real numbers must lie in [0, 1]")
    return unit_to_eight(values)


def unit_to_eight(values: NDArray[np.generic]) -> NDArray[np.uint8]:
    """[0, 1] to 0..255, rounded."""
    return np.rint(values.astype(np.float64) * 255).astype(np.uint8)


def _crop(image: Image.Image, crop: int | None, height: int, width: int) -> Image.Image:
    """The centred part of the image that will be resized."""
    box = _part(image.size, crop, height, width)
    return image if box == (0, 0, *image.size) else image.crop(box)


def _part(size: tuple[int, int], crop: int | None, height: int, width: int) -> tuple[int, int, int, int]:
    """(left, top, right, bottom) of the centred part of an image of (width, height) that will be resized."""
    if crop is None:
        part_width, part_height = centred_part(*size, width, height)
    else:
        part_width = part_height = min(crop, *size)
    left, top = (size[0] - part_width) // 2, (size[1] - part_height) // 2
    return left, top, left + part_width, top + part_height


def is_lossy(image: Image.Image) -> bool:
    """Whether an image is stored in a lossy format."""
    return image.format in _LOSSY


def palette_of(image: Image.Image) -> dict[int, Colour]:
    """The colour of every label in an image's palette; empty if there is no palette.

    Some programs omit entries after the last one in use, so palettes with the same meaning may differ in length.
    """
    values = image.getpalette() if image.mode == "P" else None
    colours = zip(*(iter(values or ()),) * 3, strict=False)
    return {label: (red, green, blue) for label, (red, green, blue) in enumerate(colours)}


def read_labels(image: Image.Image) -> NDArray[np.int64]:  # -> (H, W)
    """The labels of a label map as they are stored. For a palette image they are the palette indices."""
    if is_lossy(image):
        raise ValueError(
            f"it is stored as {image.format}, a lossy format that changes the labels of pixels: use PNG for label maps"
        )
    if image.mode not in _LABELS:
        raise ValueError(
            f"it is a colour image (mode {image.mode}), but a label map has one number per pixel, its class: "
            "save it as a grey or palette PNG, or train on images with `data.kind=pictures`"
        )
    # Pillow scales grey values of 2 or 4 bits to 0 ... 255.
    stored = [tile[3] for tile in getattr(image, "tile", ())[:1]]
    spread = next((_SPREAD[form] for form in stored if isinstance(form, str) and form in _SPREAD), 1)
    return np.asarray(_upright(image)).astype(np.int64) // spread


def _decode_labels(image: Image.Image, preprocessing: Preprocessing) -> tuple[Stored, bool]:
    """The label map as (1, H, W), resized by nearest neighbour, and whether it was enlarged."""
    _, height, width = preprocessing.shape
    labels = read_labels(image)
    classes, ignore = preprocessing.classes, preprocessing.ignore
    assert classes is not None
    wrong = np.unique(labels[(labels < 0) | (labels >= classes)])
    wrong = wrong[wrong != ignore] if ignore is not None else wrong
    if wrong.size:
        named = ", ".join(map(str, wrong[:5])) + (", ..." if len(wrong) > 5 else "")
        more = wrong.min() >= 0 and wrong.max() < MOST_CLASSES
        remedy = f"to train with more classes pass `data.classes={int(wrong.max()) + 1}`; " if more else ""
        raise ValueError(
            f"it has the labels {named}, but the classes are 0 to {classes - 1}; {remedy}to ignore a label, "
            "pass `data.ignore=LABEL`"
        )
    left, top, right, bottom = _part((labels.shape[1], labels.shape[0]), preprocessing.crop, height, width)
    rows, columns = _middles(top, bottom, height), _middles(left, right, width)
    enlarged = right - left < width or bottom - top < height
    return labels[np.ix_(rows, columns)][None].astype(preprocessing.dtype), enlarged


def _middles(start: int, end: int, number: int) -> NDArray[np.int64]:
    """The pixels that contain the centres of `number` equal intervals."""
    return start + ((2 * np.arange(number) + 1) * (end - start)) // (2 * number)


def part_taken(header: Header, preprocessing: Preprocessing) -> tuple[int, int]:
    """(width, height) of the centred part of an image that is kept, before it is resized."""
    _, height, width = preprocessing.shape
    left, top, right, bottom = _part((header.width, header.height), preprocessing.crop, height, width)
    return right - left, bottom - top
