"""What pictures cost as files: bits per pixel, beside those of the usual formats."""

import math
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqvae.codec import CompressedSize, CompressedWriter
from sqvae.data import Pictures, Progress
from sqvae.inference import Compressor
from sqvae.metrics.formats import psnr, rates_of_formats
from sqvae.reports import save_rates

MOST = 1000
"""Pictures that are measured."""

TOGETHER = 64
"""Pictures that are encoded at a time."""


@dataclass(frozen=True)
class MeasuredFile:
    """What pictures cost in one compressed file, and how near to the originals they come back."""

    size: CompressedSize
    bits_per_pixel: float
    psnr: float
    """In dB."""

    @property
    def bytes_per_picture(self) -> float:
        """Of the whole file."""
        return self.size.total / self.size.pictures


def measure_rates(compressor: Compressor, pictures: Pictures, *, progress: Progress | None = None) -> dict[str, Any]:
    """What pictures cost in one compressed file, without their names, and in files of the usual formats.

    The error is that of the reconstructions as bytes, as they would be saved. For a model with layers there is a file
    of the first n layers for each n, which together are its curve of rate and distortion.

    Arguments:
        compressor: a model with what is expected of its codes, by :func:`sqvae.inference.compressor_of`.
        pictures: (C, H, W) each; at most 1,000 of them, spread over all, are measured.
        progress: called with what is being done, how many are done and how many there are.
    """
    pictures = pictures.spread(MOST)
    tokenizer = compressor.tokenizer
    own = _compressed(compressor, pictures, None, progress)
    curve = []
    if tokenizer.layers is not None:
        fewer = range(1, tokenizer.layers)
        curve = [(layers, _compressed(compressor, pictures, layers, progress)) for layers in fewer]
        curve.append((tokenizer.layers, own))
    count, (_, height, width) = len(pictures), pictures.shape
    return {
        "pictures": count,
        "by": compressor.expectation.description,
        "bytes_per_picture": own.bytes_per_picture,
        "bits_per_pixel": own.bits_per_pixel,
        "bits_per_pixel_by_log2_k": own.size.codes * math.log2(tokenizer.codebook_size) / (count * height * width),
        "bits_per_code": 8 * own.size.payload / own.size.codes,
        "psnr": own.psnr,
        "layers": [[layers, one.bytes_per_picture, one.bits_per_pixel, one.psnr] for layers, one in curve],
        "formats": {
            name: [list(rate) for rate in rates]
            for name, rates in rates_of_formats(pictures.take(range(count))).items()
        },
    }


def _compressed(
    compressor: Compressor, pictures: Pictures, layers: int | None, progress: Progress | None
) -> MeasuredFile:
    """What a file of pictures costs, with all layers of codes or the first of them."""
    tokenizer = compressor.tokenizer
    error = 0.0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pictures.sqz"
        with CompressedWriter(path, compressor.expectation, fingerprint=tokenizer.fingerprint, names=False) as writer:
            for start in range(0, len(pictures), TOGETHER):
                originals = pictures.take(range(start, min(start + TOGETHER, len(pictures))))
                codes = tokenizer.encode(originals, layers=layers)
                writer.write([""] * len(originals), compressor.as_maps(codes))
                made = (tokenizer.decode(codes).cpu().clamp(0, 1) * 255).round() / 255
                error += float((made.double() - originals.double() / 255).square().sum())
                if progress is not None:
                    progress("compressing", start + len(originals), len(pictures))
    values, (_, height, width) = math.prod(pictures.shape), pictures.shape
    bits = 8 * writer.size.total / (len(pictures) * height * width)
    return MeasuredFile(writer.size, bits, psnr(error / (len(pictures) * values)))


def draw_rates(path: Path, rates: dict[str, Any], title: str) -> None:
    """Draw what :func:`measure_rates` has measured, as error over bits per pixel."""
    others = {name: [(bits, db) for bits, db in curve] for name, curve in rates["formats"].items()}
    with_layers = ", with 1 to all of its layers" if rates.get("layers") else ""
    caption = (
        f"What {rates['pictures']:,} pictures cost as files, and how near to the originals they come back. This model: "
        f"codes by {rates['by']}, in one file{with_layers}. {' and '.join(others)}: a file a picture, at several "
        f"qualities. Left and up is better."
    )
    own = [(bits, db) for _, _, bits, db in rates.get("layers", [])] or [(rates["bits_per_pixel"], rates["psnr"])]
    save_rates(path, own, others, title, caption)
