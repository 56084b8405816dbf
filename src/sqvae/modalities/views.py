"""One example as pages show it: original, reconstruction, difference, codes, and the cost of the codes in bits."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from sqvae.metrics.measures import MEASURES
from sqvae.priors import CodeBatch, CodeLikelihood
from sqvae.training import RunFolder, read_records

if TYPE_CHECKING:
    from sqvae.runs import Generator

OUTSIDE_GREY = 0.9
"""The grey level of the area outside an image."""

BY_PRIOR, BY_SIZE = "the prior", "log2 K"
"""The two ways to compute the cost of codes: by the likelihood under the prior, or as log2 K bits for each code."""

_TOO_LOW, _TOO_HIGH = (0.12, 0.31, 0.66), (0.75, 0.18, 0.16)
"""The colours of negative and of positive differences."""


@dataclass(frozen=True)
class CodedExample:
    """One example with its codes and its reconstruction, as images for display."""

    original: Tensor = field(repr=False)
    """The original as an image, uint8 (3, H, W). For speech it is a spectrogram, with time to the right and frequency
    upwards."""
    reconstruction: Tensor = field(repr=False)
    """The reconstruction as an image of the same shape."""
    difference: Tensor = field(repr=False)
    """The difference as an image of the same shape: white where both are equal, red where the reconstruction is larger,
    and blue where it is smaller. For label maps, wrong labels are magenta."""
    codes: Tensor = field(repr=False)
    """The codes: (h, w) for images, (n,) for other data. For a continuous latent, its mean."""
    bits: float
    """The total cost of the codes in bits."""
    bits_by: str
    """How the cost was computed: :data:`BY_PRIOR`, or :data:`BY_SIZE` if all codes count as equally likely; empty for a
    continuous latent."""
    error: str
    """The reconstruction error as text."""
    key: "DifferenceKey | None" = None
    """The meaning of the colours of the difference; None for label maps."""
    classes: tuple[tuple[str, str], ...] = ()
    """The names and colours of the classes that occur in a label map, the most frequent first; empty for other data."""


class DifferenceKey(NamedTuple):
    """The meaning of the colours in an image of signed differences."""

    less: str
    """The word for negative differences, which are blue, for example "darker"."""
    more: str
    """The word for positive differences, which are red, for example "brighter"."""
    full: str
    """The smallest difference that has full colour, with its unit."""
    scale: str
    """The range of the data, to compare the difference with."""

    @property
    def colours(self) -> tuple[str, str, str]:
        """The colours of a full negative difference, of no difference, and of a full positive one, as #rrggbb."""
        low, high = (
            "#{:02x}{:02x}{:02x}".format(*(round(255 * part) for part in one)) for one in (_TOO_LOW, _TOO_HIGH)
        )
        return low, "#ffffff", high

    @property
    def sentence(self) -> str:
        """The key as a sentence."""
        return (
            f"In the difference, white means equal, red means that the reconstruction is {self.more}, and blue that it "
            f"is {self.less}. Full colour is a difference of {self.full} or more, {self.scale}."
        )


def to_bytes(image: Tensor) -> Tensor:  # (..., 1 or 3, H, W), in [0, 1] -> uint8 (..., 3, H, W)
    """An image as RGB bytes. Values that are NaN, outside of the image, become grey."""
    colour = image.expand(*image.shape[:-3], 3, *image.shape[-2:])
    return (colour.nan_to_num(OUTSIDE_GREY).clamp(0, 1) * 255).round().byte().cpu()


def signed_difference(difference: Tensor, full: float) -> Tensor:  # (H, W) -> uint8 (3, H, W)
    """Differences as colours: white for zero, red from `full` upwards, and blue from -`full` downwards."""
    low, high = (torch.tensor(colour, device=difference.device).view(3, 1, 1) for colour in (_TOO_LOW, _TOO_HIGH))
    strength = (difference.abs() / full).clamp(0, 1)
    return to_bytes(1 - strength * (1 - torch.where(difference > 0, high, low)))


def error_in_words(measures: Mapping[str, float]) -> str:
    """The reconstruction error as text."""
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
    """The total cost of an example's codes in bits, and how it was computed.

    A prior that is conditioned on classes or on the codes of another model can't be evaluated on the codes alone. Then,
    and without a prior, all codes count as equally likely. For a continuous latent the cost is 0.
    """
    if not codebook_size:
        return 0.0, ""
    if prior is None or prior.experiment.above is not None or prior.class_names:
        return codes.numel() * math.log2(codebook_size), BY_SIZE
    cost = CodeLikelihood(prior.prior)(CodeBatch(codes.unsqueeze(0).to(prior.tokenizer.device)))
    return float(cost.nats) / math.log(2), BY_PRIOR


def recorded_use(folder: RunFolder) -> tuple[Tensor | None, str]:  # -> (K,)
    """The recorded codebook usage of the best checkpoint, and a description of the data; None before the first
    validation."""
    validated = [record for record in read_records(folder.log) if record.get("counts") and record["best"]]
    if not validated:
        return None, ""
    best = validated[-1]
    return torch.tensor(best["counts"]), f"validation, as recorded after epoch {best['epoch']}, the best checkpoint"
