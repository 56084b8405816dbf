"""What is shown of a trained model, as pictures and numbers: to whichever page draws them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from sqvae.experiment.codebook import decoded_alone, patch_at
from sqvae.experiment.generation import Generator
from sqvae.experiment.observation import codebook_size_of
from sqvae.experiment.tokenizer import Tokenizer
from sqvae.priors import CodeBatch, CodeLikelihood
from sqvae.training import RunFolder, read_records

OUTSIDE = 0.9
"""The grey of what lies outside of a picture."""

FULL = 0.5
"""The difference between two values in [0, 1] that is shown in full colour."""

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


BRIGHTNESS = DifferenceKey("darker", "brighter", f"{FULL:g}", "where black is 0 and white is 1")


def see(tokenizer: Tokenizer, example: Tensor, prior: Generator | None = None, *, codes: Tensor | None = None) -> Seen:
    """One picture, label map or picture of grey levels through its codes.

    Arguments:
        example: (C, H, W), as data is stored.
        prior: of the model, to tell what the codes cost.
        codes: (h, w), others than its own, to see what they would make of it.
    """
    medium = tokenizer.medium
    codes = tokenizer.latents(example.unsqueeze(0)) if codes is None else codes.unsqueeze(0).to(tokenizer.device)
    with torch.inference_mode():
        x = medium.model_input(example.unsqueeze(0), tokenizer.device)
        made = tokenizer.model.decode(codes)
        comparison = medium.comparison()
        comparison.add(x, made)
        wrong = medium.errors(x, made)
        original, reconstruction = medium.shown(x)[0], medium.shown(made)[0]
    difference = signed_difference((reconstruction - original).mean(0), FULL) if wrong is None else to_bytes(wrong[0])
    bits, by = cost_of_codes(codes[0], codebook_size_of(tokenizer.model), prior)
    error = error_in_words(comparison.measures())
    return Seen(
        to_bytes(original),
        to_bytes(reconstruction),
        difference,
        codes[0].cpu(),
        bits,
        by,
        error,
        BRIGHTNESS if wrong is None else None,
        medium.classes_in(x, made),
    )


def see_codes(tokenizer: Tokenizer, codes: Tensor) -> Tensor:  # (h, w) -> uint8 (3, H, W)
    """What a map of codes decodes to, to look at."""
    with torch.inference_mode():
        made = tokenizer.model.decode(codes.unsqueeze(0).to(tokenizer.device))
        return to_bytes(tokenizer.medium.shown(made)[0])


def drawn_alone(tokenizer: Tokenizer, codes: Tensor) -> Tensor:  # (n,) -> uint8 (n, 3, P, P)
    """What the decoder draws where a code stands alone, with what lies around it: see :class:`CodeAtlas`."""
    with torch.inference_mode():
        return to_bytes(decoded_alone(tokenizer, codes))


def drawn_at(
    tokenizer: Tokenizer, codes: Tensor, place: int, others: Tensor
) -> Tensor:  # (h, w), (n,) -> uint8 (n, 3, P, P)
    """What each of some codes would draw at a place of a map, with as much again on each side.

    Arguments:
        place: counted row by row.
        others: the codes that are tried there.
    """
    rows, columns = codes.shape
    tried = codes.repeat(len(others), 1, 1)
    tried[:, place // columns, place % columns] = others.to(codes)
    with torch.inference_mode():
        made = tokenizer.medium.shown(tokenizer.model.decode(tried.to(tokenizer.device)))
        return to_bytes(patch_at(made, made.shape[-2] // rows, divmod(place, columns)))


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
    error = measures["mse"]
    return f"MSE x 1000 = {1000 * error:.3f}" + (f", PSNR {-10 * math.log10(error):.1f} dB" if error else ": exact")


@torch.inference_mode()
def cost_of_codes(codes: Tensor, codebook_size: int, prior: Generator | None) -> tuple[float, str]:  # (h, w) or (n,)
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


class Curve(NamedTuple):
    """A quantity over the steps of a run."""

    name: str
    steps: list[int]
    values: list[float]
    sentence: str
    """How to read it."""
    unit: str = ""
    """What its values are counted in."""
    limit: tuple[float, str] | None = None
    """The most that there can be, and what that means."""


_STEP, _VALIDATION = "step", "validation"

ERRORS = ("mse", "mse_db", "pixel_error")

MSE_UNIT = "squared difference, values in [0, 1]"

_CURVES = (
    (
        _STEP,
        "relative_variance",
        "variance of the quantization, over the codes' distance",
        "share of the codes' mean squared distance",
        "It should fall as training goes on: then the choice of codes anneals itself, from nearly random to nearly "
        "certain. {course} Codes that move apart have the same effect as a variance that falls.",
    ),
    (
        _STEP,
        "variance",
        "variance of the quantization",
        "variance of one dimension",
        "It should fall as training goes on: then the choice of codes anneals itself, from nearly random to nearly "
        "certain. {course}",
    ),
    (
        _STEP,
        "concentration",
        "concentration of the quantization",
        "concentration, without a unit",
        "It should rise as training goes on: then the choice of codes anneals itself, from nearly random to nearly "
        "certain. {course}",
    ),
    (
        _STEP,
        "entropy_per_position",
        "entropy of a position, in nats",
        "nats",
        "How undecided the choice of one code is: {blind:.2f} would be blind choice among {size:,}, 0 is certainty.",
    ),
    (_STEP, "mse", "error in training", MSE_UNIT, "The mean squared error of training batches, whose codes are drawn."),
    (
        _STEP,
        "mse_db",
        "error in training",
        "dB²",
        "The mean squared error of training batches, in dB², with drawn codes.",
    ),
    (
        _STEP,
        "pixel_error",
        "error in training",
        "share of all pixels",
        "The share of wrong pixels in training batches, with drawn codes.",
    ),
    (
        _VALIDATION,
        "mse",
        "error on held-out data",
        MSE_UNIT,
        "The mean squared error with the likeliest codes: lower is better.",
    ),
    (_VALIDATION, "mse_db", "error on held-out data", "dB²", "The mean squared error in dB²: lower is better."),
    (
        _VALIDATION,
        "pixel_error",
        "error on held-out data",
        "share of all pixels",
        "The share of wrong pixels: lower is better.",
    ),
    (
        _VALIDATION,
        "perplexity",
        "perplexity of the codes",
        "codes",
        "How many codes are in use, as if all those were used equally: {size:,} is the most there can be.",
    ),
    (
        _VALIDATION,
        "mixture_gap",
        "error of single codes, over that of mixtures",
        "multiple of the error with mixtures",
        "Training decodes mixtures of codes, and everybody else single ones. 1 is the aim: then the decoder relies on "
        "nothing that no single code says.",
    ),
)
"""Which records hold a quantity, its name there, its name for people, its unit, and how to read it."""

_LATENT_VARIANCE = (
    "variance of the latent",
    "The mean variance of the posterior: the smaller, the more certain it is.",
)
"""The same of the variance, where there are no codes."""


def training_views(records: Sequence[Mapping[str, Any]], codebook_size: int) -> list[Curve]:
    """How a run went: self-annealing, error and use of codes, each with a sentence on how to read it.

    Arguments:
        records: of the run's log.
        codebook_size: 0 where there is no codebook.
    """
    shown_error = _error_recorded(records)
    by_distance = any("relative_variance" in record for record in records)
    curves = []
    for kind, key, name, unit, sentence in _CURVES:
        points = [(record["step"], record[key]) for record in records if record["kind"] == kind and key in record]
        left_out = (key in ERRORS and key != shown_error) or (key == "variance" and by_distance)
        if not points or left_out or (key == "entropy_per_position" and not any(value for _, value in points)):
            continue
        if not codebook_size:
            name, sentence = _LATENT_VARIANCE if key == "variance" else (name, sentence.replace("codes", "latents"))
        blind = math.log(codebook_size) if codebook_size else 0.0
        steps, values = (list(column) for column in zip(*points, strict=True))
        limit = {"entropy_per_position": (blind, "blind choice"), "perplexity": (codebook_size, "all codes")}.get(key)
        course = _course(values, falls=key.endswith("variance"))
        told = sentence.format(blind=blind, size=codebook_size, course=course).strip()
        curves.append(Curve(name, steps, values, told, unit, limit if codebook_size > 1 else None))
    return curves


def _course(values: Sequence[float], *, falls: bool) -> str:
    """From where to where a quantity went that tells of annealing, and whether that is the right way."""
    first, last = values[0], values[-1]
    if len(values) < 2:
        return ""
    if first == last:
        return f"Here it stays at {last:.3g}."
    went = f"Here it went from {first:.3g} to {last:.3g}"
    return f"{went}." if (last < first) == falls else f"{went}: it has not annealed yet."


def _error_recorded(records: Sequence[Mapping[str, Any]]) -> str:
    """The error that matters: of speech in dB, of label maps the share of wrong pixels."""
    known = {key for record in records for key in record}
    return "mse_db" if "mse_db" in known else "pixel_error" if "miou" in known else "mse"
