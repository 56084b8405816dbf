"""A tokenizer's networks as programs of tensors alone, to be traced."""

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

from sqvae.models.autoencoder import encodings_of

BORDER = 1e-5
"""An encoding lies on the border of two codes if so little of its own length takes it across."""


class Encoding(nn.Module, ABC):
    """Data to codes."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.encoder: Any = model.get_submodule("encoder")
        self.quantizer: Any = model.get_submodule("quantizer")

    @abstractmethod
    def encoded(self, x: Tensor) -> Tensor | tuple[Tensor, Tensor]:  # -> (batch, dim, ...), once or twice
        """What the encoder makes of data."""

    def encodings(self, x: Tensor) -> tuple[Tensor, Tensor | None]:  # -> (batch, ..., dim), twice
        """What codes are chosen by, and the log-variance that some quantizers weigh it with."""
        z, log_variance = encodings_of(self.encoded(x), self.quantizer)
        return z.movedim(1, -1), None if log_variance is None else log_variance.movedim(1, -1)

    def forward(self, x: Tensor) -> Tensor:  # -> (batch, ...)
        z, log_variance = self.encodings(x)
        codes: Tensor = self.quantizer.encode(z, log_variance=log_variance, channel_first=False)
        return codes

    @torch.no_grad()
    def on_border(self, x: Tensor, codes: Tensor, others: Tensor) -> Tensor:  # (batch, ...), twice -> (n,)
        """Of the positions where two sets of codes differ, which are so near to the border that either may be right."""
        z, log_variance = self.encodings(x)
        layered = codes.ndim == z.ndim
        differ = (codes != others).any(-1) if layered else codes != others
        rows = z[differ]
        one, other = self.quantizer.decode(torch.stack((codes, others))[:, differ], channel_first=False)
        # Straight towards the other code: whatever the dimensions weigh, that makes it likelier against the first.
        across = torch.nn.functional.normalize(other - one, dim=-1)
        weighed = None if log_variance is None else log_variance[differ]
        moved = rows + BORDER * rows.norm(dim=-1, keepdim=True) * across
        found: Tensor = self.quantizer.encode(moved, log_variance=weighed, channel_first=False)
        return (found == others[differ]).all(-1) if layered else found == others[differ]
