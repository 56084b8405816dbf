"""File sizes of images in common formats, and the quality of the decoded images."""

import io
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from PIL import Image, features
from torch import Tensor

FORMATS = ("JPEG", "WebP")

QUALITIES = (1, 5, 10, 20, 35, 50, 65, 80, 90, 95)
"""Quality settings of both formats, from small to good."""


class Rate(NamedTuple):
    """The size of a set of images in a format, and their quality."""

    bits_per_pixel: float
    """Bits per pixel of whole files, including headers."""
    psnr: float
    """The peak signal-to-noise ratio in dB, from the mean squared error over the whole set."""


def psnr(mse: float) -> float:
    r"""The peak signal-to-noise ratio of values in [0, 1], in dB: :math:`-10 \log_{10} \mathrm{MSE}`."""
    return math.inf if mse == 0 else -10 * math.log10(mse)


def rate_of_format(pictures: Tensor, name: str, quality: int) -> Rate:  # uint8 (n, 1 or 3, H, W)
    """The rate of images as files of a format, one file per image.

    Arguments:
        pictures: the images.
        name: one of `FORMATS`.
        quality: 1 to 95.
    """
    if name not in FORMATS:
        raise ValueError(f"the format must be {' or '.join(FORMATS)}, got {name!r}")
    size, error = 0, 0.0
    for picture in pictures.permute(0, 2, 3, 1).numpy():
        file = io.BytesIO()
        Image.fromarray(picture[..., 0] if picture.shape[-1] == 1 else picture).save(file, name, quality=quality)
        size += len(file.getvalue())
        with Image.open(file) as opened:
            became = np.asarray(opened.convert("L" if picture.shape[-1] == 1 else "RGB"), np.float64)
        error += float(np.square(became.reshape(picture.shape) / 255 - picture / 255.0).sum())
    count, _, height, width = pictures.shape
    return Rate(8 * size / (count * height * width), psnr(error / pictures.numel()))


def rates_of_formats(pictures: Tensor, qualities: Sequence[int] = QUALITIES) -> dict[str, list[Rate]]:
    """The rates in every available format, for several qualities."""
    there = [name for name in FORMATS if name != "WebP" or features.check("webp")]
    return {name: [rate_of_format(pictures, name, quality) for quality in qualities] for name in there}
