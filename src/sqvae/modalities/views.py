"""What is shown of one example, whatever its kind: original, reconstruction, difference, codes and their cost."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from sqvae.metrics.measures import MEASURES
from sqvae.priors import CodeBatch, CodeLikelihood
from sqvae.training import RunFolder, read_records

if TYPE_CHECKING:
    from sqvae.runs import Generator

OUTSIDE = 0.9
"""The grey of what lies outside of a picture."""


BY_PRIOR, BY_SIZE = "the prior", "log2 K"
"""What tells the cost of codes."""


_TOO_LOW, _TOO_HIGH = (0.12, 0.31, 0.66), (0.75, 0.18, 0.16)
"""The colours of what came out too dark and too bright."""


@dataclass(frozen=True)
class Seen:
    """One example, seen through its codes."""

    original: Tensor = field(repr=False)
    """uint8 (3, H, W), to look at; of speech a spectrogram, time to the right and pitch upwards."""
    reconstruction: Tensor = field(repr=False)
    """Likewise."""
    difference: Tensor = field(repr=False)
    """Likewise: white where nothing changed, red where it came out brighter or louder, blue where darker; of label
    maps, magenta where a label is wrong."""
    codes: Tensor = field(repr=False)
    """(h, w); of speech (n,). Where the latent is continuous, its mean."""
    bits: float
    """What the codes cost together,"""
    bits_by: str
    """and by which expectation: "the prior", or "log2 K" where all codes count as equally likely; nothing where there
    are none."""
    error: str
    """How far the reconstruction is off, in words."""
    key: "DifferenceKey | None" = None
    """How to read the difference's colours; None of label maps."""
    classes: tuple[tuple[str, str], ...] = ()
    """Of label maps, the names and colours of the classes that occur, the most frequent first."""


class DifferenceKey(NamedTuple):
    """How to read a picture of signed differences."""

    less: str
    """What blue is,"""
    more: str
    """and red."""
    full: str
    """The difference that is shown in full colour, with its unit."""
    scale: str
    """What that is to be compared with."""

    @property
    def colours(self) -> tuple[str, str, str]:
        """As #rrggbb: of full differences below, of none, and of full ones above."""
        low, high = (
            "#{:02x}{:02x}{:02x}".format(*(round(255 * part) for part in one)) for one in (_TOO_LOW, _TOO_HIGH)
        )
        return low, "#ffffff", high

    @property
    def sentence(self) -> str:
        """The same in words."""
        return (
            f"In the difference, white is equal, red came out {self.more} than it was, and blue {self.less}; full "
            f"colour is a difference of {self.full} or more, {self.scale}."
        )


def to_bytes(picture: Tensor) -> Tensor:  # (..., 1 or 3, H, W), in [0, 1] -> uint8 (..., 3, H, W)
    """A picture in colour; grey where it is not a number."""
    colour = picture.expand(*picture.shape[:-3], 3, *picture.shape[-2:])
    return (colour.nan_to_num(OUTSIDE).clamp(0, 1) * 255).round().byte().cpu()


def signed_difference(difference: Tensor, full: float) -> Tensor:  # (H, W) -> uint8 (3, H, W)
    """White for nothing, to red for as much as `full` above it, and to blue for as much below."""
    low, high = (torch.tensor(colour, device=difference.device).view(3, 1, 1) for colour in (_TOO_LOW, _TOO_HIGH))
    strength = (difference.abs() / full).clamp(0, 1)
    return to_bytes(1 - strength * (1 - torch.where(difference > 0, high, low)))


def error_in_words(measures: Mapping[str, float]) -> str:
    """How far off a reconstruction is."""
    if "miou" in measures:
        return f"{measures['pixel_error']:.1%} of the pixels are wrong"
    if "mse_db" in measures:
        return f"mean squared error {measures['mse_db']:.1f} dB²"
    if "unexplained" in measures:
        return f"{measures['unexplained']:.1%} of the variance is lost, cosine {measures['cosine']:.3f}"
    error = measures["mse"]
    return f"{MEASURES['mse'].label} = {MEASURES['mse'].text(error)}" + (
        f", PSNR {-10 * math.log10(error):.1f} dB" if error else ": exact"
    )


@torch.inference_mode()
def cost_of_codes(codes: Tensor, codebook_size: int, prior: "Generator | None") -> tuple[float, str]:  # (h, w) or (n,)
    """What an example's codes cost in bits, and by which expectation.

    A prior that is given classes or the codes of another model can't tell from the codes alone: then they count as
    equally likely. A continuous latent has no codes.
    """
    if not codebook_size:
        return 0.0, ""
    if prior is None or prior.experiment.above is not None or prior.class_names:
        return codes.numel() * math.log2(codebook_size), BY_SIZE
    cost = CodeLikelihood(prior.prior)(CodeBatch(codes.unsqueeze(0).to(prior.tokenizer.device)))
    return float(cost.nats) / math.log(2), BY_PRIOR


def recorded_use(folder: RunFolder) -> tuple[Tensor | None, str]:  # -> (K,)
    """How often each code was used when the checkpoint in use was validated, and on what; none before that."""
    validated = [record for record in read_records(folder.log) if record.get("counts") and record["best"]]
    if not validated:
        return None, ""
    best = validated[-1]
    return torch.tensor(best["counts"]), f"validation, as recorded after epoch {best['epoch']}, the best checkpoint"


def use_of(run_folder: str | Path) -> Tensor | None:  # -> (K,)
    """How often each code was used at the last validation that counts; None where none is recorded."""
    return recorded_use(RunFolder(run_folder))[0]
