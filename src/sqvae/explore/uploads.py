"""What a person drops on the page: bytes to an example, in bounded memory, or a reason why not.

What a file is, its content says. Its name is shown to the person who chose it, and used for nothing else.
"""

import warnings

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from sqvae.data import Preprocessing
from sqvae.data.decoding import decode, open_picture
from sqvae.data.speech import LogMel, audio_blocks

MOST_PIXELS = 32_000_000
"""Of a picture, by its header: a file of a few bytes may unpack to all memory."""

LONGEST = 20
"""Seconds of a recording that are looked at."""

FEWEST_FRAMES = 4
"""Of a recording."""

_BLOCK = 0.25
"""Seconds that are decoded at a time: a hostile header may have a thousand channels."""


class RefusedError(ValueError):
    """A file can't be taken, and why."""


def picture_from(content: bytes, preprocessing: Preprocessing) -> Tensor:  # -> (C, H, W)
    """A picture or label map as it would be stored for training."""
    try:
        with _opened(content) as image:
            width, height = image.size
            if width * height > MOST_PIXELS:
                raise RefusedError(
                    f"it has {width:,} x {height:,} pixels, and a picture may have {MOST_PIXELS:,}: make it smaller"
                )
            return torch.tensor(decode(image, preprocessing)[0])
    except RefusedError:
        raise
    except Exception as broken:
        # Damaged files make Pillow raise nearly anything.
        raise RefusedError(str(broken) or type(broken).__name__) from broken


def _opened(content: bytes) -> Image.Image:
    with warnings.catch_warnings():
        # Pillow warns from a size on that is refused anyway, with better words.
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        try:
            return open_picture(content)
        except Image.DecompressionBombError as bomb:
            raise RefusedError(f"it has far more than {MOST_PIXELS:,} pixels: make it smaller") from bomb


def sound_from(content: bytes, features: LogMel) -> tuple[Tensor, bool]:  # -> (T, mels)
    """The beginning of a recording as frames, and whether there is more of it."""
    most = LONGEST * features.rate
    blocks, number = [], 0
    try:
        for block in audio_blocks(content, features.rate, _BLOCK):
            blocks.append(block)
            number += len(block)
            if number > most:
                break
    except Exception as broken:
        raise RefusedError(str(broken) or type(broken).__name__) from broken
    samples = np.concatenate(blocks)[:most]
    if features.frames_of(len(samples)) < FEWEST_FRAMES:
        least = (FEWEST_FRAMES - 1) * features.seconds_per_frame
        raise RefusedError(f"it is too short: {len(samples) / features.rate:.3f} s, and {least:.2f} s are the least")
    return features(samples), number > most
