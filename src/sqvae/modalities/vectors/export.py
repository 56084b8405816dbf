"""Vector tokenizers as programs that can be exported, and what a user of an exported model must know."""

from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from sqvae.export.exportable import CPU, Exportable, Slot, encoder_for, no_ties, random_codes
from sqvae.export.programs import Encoding
from sqvae.modalities.vectors.tokenizer import VectorTokenizer
from sqvae.models import LatentModel

TRIALS = (2, 1, 12)
"""The batch sizes of trials."""


class VectorEncoding(Encoding):
    """Vectors to codes."""

    def encoded(self, x: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        encoded: Tensor | tuple[Tensor, Tensor] = self.encoder(x)
        return encoded


class VectorDecoding(nn.Module):
    """Codes to vectors."""

    def __init__(self, model: LatentModel) -> None:
        super().__init__()
        self.quantizer, self.decoder, self.likelihood = model.quantizer, model.decoder, model.likelihood

    def forward(self, codes: Tensor) -> Tensor:  # (batch, codes) -> (batch, values)
        return self.likelihood.predict(self.decoder(self.quantizer.decode(codes)))


def encoder_and_decoder(tokenizer: VectorTokenizer) -> tuple[Exportable, Exportable]:
    """Both networks of a tokenizer of vectors, on the CPU."""
    model = deepcopy(tokenizer.model).to(CPU).eval()
    (values,), (codes,) = tokenizer.shape, tokenizer.map_shape
    decoder = Exportable(
        "decoder",
        VectorDecoding(model).eval(),
        (Slot("codes", torch.int64, ("batch", codes, *tokenizer.layer_axis), f"0 ... {tokenizer.codebook_size - 1}"),),
        Slot("vectors", torch.float32, ("batch", values), "on the scale of the data"),
        lambda ids: tokenizer.decode(ids).cpu(),
        tuple((random_codes(tokenizer, (batch, codes)),) for batch in TRIALS),
        {},
        no_ties,
    )
    return encoder_for(decoder, VectorEncoding(model), lambda vectors: tokenizer.encode(vectors).cpu()), decoder


def described(tokenizer: VectorTokenizer) -> dict[str, Any]:
    """The size of a vector and of its id."""
    return {"values": tokenizer.shape[0], "codes": tokenizer.map_shape[0]}
