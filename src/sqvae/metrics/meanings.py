"""Sentences that tell measures apart that look alike: each is here once, for tables, pages and cards."""

import math
from collections.abc import Mapping
from typing import Any

CODES = (
    "Perplexity of the codes: of the likeliest code at each place, counted over the whole set; as if so many codes "
    "were used equally often."
)
MEAN_PROBABILITIES = (
    "That of the mean probabilities counts each place by how likely every code is there, as codes are drawn in "
    "training: it is mostly larger, the more so the more random that still is, and comes down to the other as "
    "quantization anneals."
)
BATCHES = (
    "The mean over batches is of each batch by itself, which holds fewer codes than the whole set: it is mostly "
    "smaller, and the smaller the batches, the more so."
)
WRONG_LABELS = "magenta is a wrong label, pale grey a right one"
NEGATIVE_BITS = (
    "A negative number of bits per dimension is no error: the likelihood is a density of values in [0, 1], which may "
    "exceed 1, and not the probability of one of 256 levels; 8 bits more make it comparable with bits of such levels."
)
NEGATIVE_BITS_OF_FRAMES = (
    "A negative number of bits per dimension is no error: the likelihood of a frame is a density, which may exceed 1, "
    "and not a probability."
)


def bits_apart(codebook_size: int, compressed_by: str) -> str:
    """Why the bits of codes, in memory and in a compressed file, differ.

    Arguments:
        compressed_by: what tells how likely codes are: "the prior", for instance.
    """
    return (
        f"Bits at log2 K = {math.log2(codebook_size):.3g} for each code count all {codebook_size:,} codes as equally "
        f"likely; compressed, by {compressed_by}, likely codes cost less than others, and a file holds fewer bits."
    )


def meanings(record: Mapping[str, Any], codebook_size: int) -> list[str]:
    """What tells the measures of an evaluation apart: the sentences that it needs, and no others.

    Arguments:
        record: with "measures", and where files were measured, "rates".
        codebook_size: 0 where there are no codes.
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
