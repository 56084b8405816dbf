"""An image or label map from the bytes of a file that a person chose, in bounded memory, or a reason why not.

What a file is, its content says. Its name is shown to the person who chose it, and used for nothing else.
"""

import torch
from torch import Tensor

from sqvae.data import Preprocessing
from sqvae.data.decoding import decode, open_picture, part_taken, read_header
from sqvae.data.preprocessing import Header
from sqvae.modalities.exploring import RefusedError


def picture_from(content: bytes, preprocessing: Preprocessing) -> tuple[Tensor, str]:  # -> (C, H, W)
    """A picture or label map as it would be stored for training, and what was done to it, in words."""
    try:
        with open_picture(content) as image:
            header = read_header(image)
            return torch.tensor(decode(image, preprocessing)[0]), changes_in_words(header, preprocessing)
    except RefusedError:
        raise
    except Exception as broken:
        # Damaged files make Pillow raise nearly anything.
        raise RefusedError(str(broken) or type(broken).__name__) from broken


def changes_in_words(header: Header, preprocessing: Preprocessing) -> str:
    """What becomes of a picture before a model sees it; nothing where it is taken as it is."""
    channels, height, width = preprocessing.shape
    before, part = (header.width, header.height), part_taken(header, preprocessing)
    changes = []
    if part != before:
        shape = "centre square" if part[0] == part[1] else "centre"
        changes.append(f"cropped from {_times(before)} to its {shape}, {_times(part)}")
    if part != (width, height):
        larger = part[0] < width or part[1] < height
        changes.append(f"{'enlarged' if larger else 'resized'} to {_times((width, height))}")
    if channels == 1 and not header.grey and not preprocessing.labels:
        changes.append("made grey")
    return ", ".join(changes)


def _times(size: tuple[int, int]) -> str:
    return f"{size[0]}x{size[1]}"
