"""Vectors in `sqvae inspect`."""

import math
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from sqvae.modalities.inspecting import Inspection, Plots, in_layers
from sqvae.modalities.vectors.codes import code_set
from sqvae.modalities.vectors.data import new_model
from sqvae.modalities.vectors.files import VectorRows
from sqvae.modalities.vectors.tokenizer import VectorTokenizer
from sqvae.quantizers import Quantized
from sqvae.reports import Caption, save_rows

MAX_VECTORS = 256
"""The largest number of vectors from which the noise of the quantization is computed."""


def _about(described: dict[str, Any], tokenizer: VectorTokenizer) -> tuple[str, ...]:
    (values,), (codes,) = tokenizer.shape, tokenizer.map_shape
    if not tokenizer.is_discrete:
        return (f"a vector of {values:,} values becomes {codes * tokenizer.experiment.quantizer.dim} numbers",)
    size, layers = tokenizer.codebook_size, tokenizer.layers or 1
    bits = layers * codes * math.log2(size) if size > 1 else 0
    return (
        f"{size:,} codes of {tokenizer.experiment.quantizer.dim} dimensions{in_layers(tokenizer.layer_axis)}",
        f"a vector of {values:,} values becomes {layers * codes} codes: {bits:,.0f} bits instead of {32 * values:,}",
    )


@torch.no_grad()
def _quantized(tokenizer: VectorTokenizer, rows: VectorRows) -> Quantized:
    x = tokenizer.medium.model_input(rows.rows[:MAX_VECTORS], tokenizer.device)
    quantized: Quantized = tokenizer.model(x).quantized
    return quantized


def _draw(tokenizer: VectorTokenizer, rows: VectorRows, name: str, plots: Plots, out: Path) -> tuple[Tensor, str, str]:
    counts = code_set(tokenizer, rows, "counting codes", plots.progress).coarsest.counts(tokenizer.codebook_size)
    where = f"{len(rows):,} validation vectors of {name}"
    chosen = counts.sort(descending=True, stable=True).indices[: plots.codes]
    ids = chosen.view(-1, 1).expand(-1, *tokenizer.map_shape)
    pictures = tokenizer.medium.shown(tokenizer.decode(tokenizer.from_coarsest(ids))).cpu()
    title = f"The vectors that the {len(chosen)} most used codes decode to"
    save_rows(out / "codes.png", [pictures], math.ceil(math.sqrt(len(chosen))), Caption(title, (f"usage on {where}",)))
    return counts, where, f"{out / 'codes.png'}: the vector that each code decodes to"


INSPECTION = Inspection(
    untrained=lambda experiment: VectorTokenizer(new_model(experiment), experiment, ""),
    about=_about,
    quantized=_quantized,
    draw=_draw,
    atlas="codes.png",
)
