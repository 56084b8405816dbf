"""Training curves of a run, each with an explanation."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqvae.metrics.measures import MEASURES, error_name


class Curve(NamedTuple):
    """A quantity over the steps of a run."""

    name: str
    steps: list[int]
    values: list[float]
    sentence: str
    """An explanation of the curve."""
    unit: str = ""
    """The unit of the values."""
    limit: tuple[float, str] | None = None
    """The largest possible value, and its meaning."""


_STEP, _VALIDATION = "step", "validation"


ERRORS = ("mse", "mse_db", "unexplained", "pixel_error")

_ANNEALING = "this is self-annealing, in which the choice of codes goes from nearly random to nearly certain. {course}"

_CURVES = (
    (
        _STEP,
        "relative_variance",
        "",
        f"It should decrease in training: {_ANNEALING} Codes that move apart have the same effect as a decreasing "
        "variance.",
    ),
    (_STEP, "variance", "", f"It should decrease in training: {_ANNEALING}"),
    (_STEP, "concentration", "", f"It should increase in training: {_ANNEALING}"),
    (
        _STEP,
        "entropy_per_position",
        "",
        "The uncertainty about the code at one position: {blind:.2f} is a uniform choice among {size:,} codes, 0 is "
        "certainty.",
    ),
    (
        _STEP,
        "mse",
        "error in training",
        "The mean squared error on training batches, with codes drawn at random.",
    ),
    (
        _STEP,
        "mse_db",
        "error in training",
        "The mean squared error on training batches in dB², with codes drawn at random.",
    ),
    (
        _STEP,
        "unexplained",
        "error in training",
        "The share of the variance that is lost on training batches, with codes drawn at random.",
    ),
    (
        _STEP,
        "pixel_error",
        "error in training",
        "The share of wrong pixels on training batches, with codes drawn at random.",
    ),
    (
        _VALIDATION,
        "mse",
        "error on held-out data",
        "The mean squared error with the likeliest codes: lower is better.",
    ),
    (_VALIDATION, "mse_db", "error on held-out data", "The mean squared error in dB²: lower is better."),
    (_VALIDATION, "unexplained", "error on held-out data", "The share of the variance that is lost: lower is better."),
    (_VALIDATION, "pixel_error", "error on held-out data", "The share of wrong pixels: lower is better."),
    (
        _VALIDATION,
        "perplexity",
        "",
        "The effective number of codes in use: {size:,}, the codebook size, is its maximum, if all codes are used "
        "equally often.",
    ),
    (
        _VALIDATION,
        "mixture_gap",
        "",
        "In training the decoder sees mixtures of codes, but later it decodes single codes. The aim is 1: then the "
        "decoder works with single codes as well as with mixtures.",
    ),
)
"""The kind of record that holds a measure, its key, its name if that is not the measure's label, and an explanation."""


_LATENT_VARIANCE = (
    "variance of the latent",
    "The mean variance of the posterior: the smaller it is, the more certain the latent.",
)
"""The name and the explanation of the variance for a model without codes."""


def training_views(records: Sequence[Mapping[str, Any]], codebook_size: int) -> list[Curve]:
    """Training curves of self-annealing, error and codebook usage, each with an explanation.

    Arguments:
        records: the records of the run's log.
        codebook_size: the number of codes; 0 if there is no codebook.
    """
    shown_error = error_name({key: 0.0 for record in records for key in record})
    by_distance = any("relative_variance" in record for record in records)
    curves = []
    for kind, key, given, sentence in _CURVES:
        measure = MEASURES[key]
        name, unit = given or measure.label, measure.unit
        points = [(record["step"], record[key]) for record in records if record["kind"] == kind and key in record]
        left_out = (key in ERRORS and key != shown_error) or (key == "variance" and by_distance)
        if not points or left_out or (key == "entropy_per_position" and not any(value for _, value in points)):
            continue
        if not codebook_size:
            name, sentence = _LATENT_VARIANCE if key == "variance" else (name, sentence.replace("codes", "latents"))
        blind = math.log(codebook_size) if codebook_size else 0.0
        steps, values = (list(column) for column in zip(*points, strict=True))
        limit = {"entropy_per_position": (blind, "uniform choice"), "perplexity": (codebook_size, "all codes")}.get(key)
        course = _course(values, falls=key.endswith("variance"))
        told = sentence.format(blind=blind, size=codebook_size, course=course).strip()
        curves.append(Curve(name, steps, values, told, unit, limit if codebook_size > 1 else None))
    return curves


def _course(values: Sequence[float], *, falls: bool) -> str:
    """A sentence on how far a variance or concentration went, and whether in the right direction."""
    first, last = values[0], values[-1]
    if len(values) < 2:
        return ""
    if first == last:
        return f"Here it stays at {last:.3g}."
    went = f"Here it went from {first:.3g} to {last:.3g}"
    return f"{went}." if (last < first) == falls else f"{went}: it has not annealed yet."
