"""What pictures cost as files: bits per pixel, beside those of the usual formats."""

import math
import tempfile
from pathlib import Path
from typing import Any

import torch

from sqvae.codec import CompressedWriter
from sqvae.data import Pictures, Progress
from sqvae.inference import Compressor
from sqvae.metrics.formats import Rate, psnr, rates_of_formats
from sqvae.reports import save_rates

MOST = 1000
"""Pictures that are measured."""

TOGETHER = 64
"""Pictures that are encoded at a time."""


def measure_rates(compressor: Compressor, pictures: Pictures, *, progress: Progress | None = None) -> dict[str, Any]:
    """What pictures cost in one compressed file, without their names, and in files of the usual formats.

    The error is that of the reconstructions as bytes, as they would be saved.

    Arguments:
        compressor: a model with what is expected of its codes, by :func:`sqvae.inference.compressor_of`.
        pictures: (C, H, W) each; at most 1,000 of them, spread over all, are measured.
        progress: called with what is being done, how many are done and how many there are.
    """
    pictures = pictures.spread(MOST)
    tokenizer = compressor.tokenizer
    error, compared = 0.0, []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pictures.sqz"
        with CompressedWriter(path, compressor.expectation, fingerprint=tokenizer.fingerprint, names=False) as writer:
            for start in range(0, len(pictures), TOGETHER):
                originals = pictures.take(range(start, min(start + TOGETHER, len(pictures))))
                codes = tokenizer.encode(originals)
                writer.write([""] * len(originals), codes)
                made = (tokenizer.decode(codes).cpu().clamp(0, 1) * 255).round() / 255
                error += float((made.double() - originals.double() / 255).square().sum())
                compared.append(originals)
                if progress is not None:
                    progress("compressing", start + len(originals), len(pictures))
        size = path.stat().st_size
    count, (_, height, width) = len(pictures), pictures.shape
    own = Rate(8 * size / (count * height * width), psnr(error / (count * pictures.take([0]).numel())))
    whole = torch.cat(compared)
    return {
        "pictures": count,
        "by": compressor.expectation.description,
        "bytes_per_picture": size / count,
        "bits_per_pixel": own.bits_per_pixel,
        "bits_per_pixel_by_log2_k": writer.size.codes * math.log2(tokenizer.codebook_size) / (count * height * width),
        "bits_per_code": 8 * writer.size.payload / writer.size.codes,
        "psnr": own.psnr,
        "formats": {name: [list(rate) for rate in rates] for name, rates in rates_of_formats(whole).items()},
    }


def draw_rates(path: Path, rates: dict[str, Any], title: str) -> None:
    """Draw what :func:`measure_rates` has measured, as error over bits per pixel."""
    others = {name: [(bits, db) for bits, db in curve] for name, curve in rates["formats"].items()}
    caption = (
        f"What {rates['pictures']:,} pictures cost as files, and how near to the originals they come back. This model: "
        f"codes by {rates['by']}, in one file. {' and '.join(others)}: a file a picture, at several qualities. Left "
        f"and up is better."
    )
    save_rates(path, (rates["bits_per_pixel"], rates["psnr"]), others, title, caption)
