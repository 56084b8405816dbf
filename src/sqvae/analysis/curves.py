"""How a run went, as curves over its steps, each with a sentence on how to read it."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


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
