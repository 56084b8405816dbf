"""Explanations of metrics that look similar, for tables, pages and model cards."""

import math
from collections.abc import Mapping
from typing import Any

CODES = (
    "Perplexity of the codes: the effective number of codes, from how often each is the most probable code of a "
    "position in the whole dataset."
)
MEAN_PROBABILITIES = (
    "The perplexity of the mean probabilities counts each position by the probability of every code, as codes are "
    "sampled in training: it is usually larger, the more so the more random codes still are, and approaches the other "
    "as quantization anneals."
)
BATCHES = (
    "The mean over batches is the mean of each batch's own perplexity. A batch contains fewer codes than the whole "
    "dataset, so it is usually smaller, the more so the smaller the batches."
)
WRONG_LABELS = "magenta pixels have a wrong label, pale grey ones the right label"
NEGATIVE_BITS = (
    "A negative number of bits per dimension is not an error: the likelihood is a density of values in [0, 1], which "
    "may exceed 1, and not the probability of one of 256 levels; add 8 bits to compare it with bits of such levels."
)
NEGATIVE_BITS_OF_FRAMES = (
    "A negative number of bits per dimension is not an error: the likelihood of a frame is a density, which may exceed "
    "1, and not a probability."
)


def bits_apart(codebook_size: int, compressed_by: str) -> str:
    """A sentence about why the number of bits of codes differs in memory and in a compressed file.

    Arguments:
        codebook_size: the number of codes, K.
        compressed_by: what gives the probabilities of codes, such as "the prior".
    """
    return (
        f"Bits at log2 K = {math.log2(codebook_size):.3g} per code count all {codebook_size:,} codes as equally "
        f"probable; compressed by {compressed_by}, probable codes cost less than others, and a file has fewer bits."
    )


def meanings(record: Mapping[str, Any], codebook_size: int) -> list[str]:
    """The explanations that the metrics of an evaluation need.

    Arguments:
        record: contains "measures" and, if files were measured, "rates".
        codebook_size: the number of codes; 0 if there are none.
    """
    measures, rates = record["measures"], record.get("rates")
    told = []
    if "perplexity" in measures:
        told.append(CODES)
        told += [MEAN_PROBABILITIES] if "soft_perplexity" in measures else []
        told += [BATCHES] if "batch_perplexity" in measures else []
    if rates and codebook_size > 1:
        told.append(bits_apart(codebook_size, rates["by"]))
    if measures.get("bits_per_dimension", 0) < 0 and record.get("likelihood") in (None, "gaussian"):
        told.append(NEGATIVE_BITS_OF_FRAMES if "mse_db" in measures else NEGATIVE_BITS)
    return told
