"""The codes of whole sets of images."""

import torch

from sqvae.data import Pictures, Progress
from sqvae.modalities.images.tokenizer import ImageTokenizer
from sqvae.runs import CodeSet

BATCH = 64
"""The number of images that are encoded at a time."""


def code_set(tokenizer: ImageTokenizer, images: Pictures, what: str, progress: Progress | None) -> CodeSet:
    """The likeliest codes of all images of a set: (N, h, w), or (N, h, w, layers)."""
    tokenizer.check_one_level("sets of codes hold")
    parts = []
    for start in range(0, len(images), BATCH):
        stop = min(start + BATCH, len(images))
        parts.append(tokenizer.encode(images.take(range(start, stop))).cpu().int())
        if progress is not None:
            progress(what, stop, len(images))
    return CodeSet(torch.cat(parts), layered=tokenizer.layers is not None)
