"""Sentences that explain measures which look alike, for tables, pages and model cards."""

import math
from collections.abc import Mapping
from typing import Any

from sqvae.metrics.measures import INSTEAD_OF_MSE, MEASURES, error_name
from sqvae.metrics.reconstruction import layers_in

CODES = MEASURES["perplexity"].meaning
MEAN_PROBABILITIES = MEASURES["soft_perplexity"].meaning
BATCHES = MEASURES["batch_perplexity"].meaning
WRONG_LABELS = "magenta is a wrong label, pale grey a right one"
NEGATIVE_BITS = (
    "A negative number of bits per dimension is not a mistake: the likelihood is a density of values in [0, 1], which "
    "may exceed 1, and not the probability of one of 256 levels. Add 8 bits to compare it with bits of such levels."
)
NEGATIVE_BITS_OF_DENSITIES = (
    "A negative number of bits per dimension is not a mistake: the likelihood is a density, which may exceed 1, and "
    "not a probability."
)


def bits_apart(codebook_size: int, compressed_by: str) -> str:
    """A sentence on why codes have fewer bits in a compressed file than in memory.

    Arguments:
        codebook_size: the number of codes, K.
        compressed_by: the source of the codes' probabilities: "the prior", for instance.
    """
    return (
        f"Bits at log2 K = {math.log2(codebook_size):.3g} per code assume that all {codebook_size:,} codes are equally "
        f"likely. Compressed, by {compressed_by}, likely codes cost less than others, and a file has fewer bits."
    )


def meanings(record: Mapping[str, Any], codebook_size: int) -> list[str]:
    """The sentences that explain the measures of an evaluation, and no others.

    Arguments:
        record: a record with "measures", and with "rates" if compressed files were measured.
        codebook_size: the number of codes, of all layers together; 0 if there are none.
    """
    measures, rates = record["measures"], record.get("rates")
    told = []
    if "perplexity" in measures:
        told.append(CODES)
        told += [MEAN_PROBABILITIES] if "soft_perplexity" in measures else []
        told += [BATCHES] if "batch_perplexity" in measures else []
    size = codebook_size // max(1, len(layers_in(measures)))
    if rates and size > 1:
        told.append(bits_apart(size, rates["by"]))
    if measures.get("bits_per_dimension", 0) < 0 and record.get("likelihood") in (None, "gaussian"):
        told.append(NEGATIVE_BITS_OF_DENSITIES if error_name(measures) in INSTEAD_OF_MSE else NEGATIVE_BITS)
    return told
