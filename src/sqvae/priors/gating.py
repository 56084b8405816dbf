"""The gated residual update."""

import torch
from torch import Tensor, nn
from torch.nn.functional import elu

from sqvae.priors.causal import Dropout


class GatedUpdate(nn.Module):
    r"""The gated residual update of a layer's input x.

    .. math:: x \leftarrow x + a \odot \sigma(b), \qquad (a, b) = W\, \mathrm{elu}(f) + V y

    f is the output of the layer, and y is the features of the condition.

    Arguments:
        channels: the number of channels of x, f and y.
        conditional: whether there is a condition.
        dropout: the dropout probability of elu(f) in training.
    """

    def __init__(self, channels: int, *, conditional: bool, dropout: float) -> None:
        super().__init__()
        self.mix = nn.Linear(channels, 2 * channels)
        self.condition = nn.Linear(channels, 2 * channels, bias=False) if conditional else None
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, f: Tensor, known: Tensor | None) -> Tensor:  # (batch, h, w, channels) each
        mixed, told = self.mix(self.dropout(elu(f))), self.told(known)
        return add_gated(x, mixed if told is None else mixed + told)

    def told(self, known: Tensor | None) -> Tensor | None:  # (..., channels) -> (..., 2 channels)
        """V y, if there is a condition."""
        return None if self.condition is None or known is None else self.condition(known)


def add_gated(x: Tensor, mixed: Tensor) -> Tensor:  # (..., channels), (..., 2 channels) -> (..., channels)
    """x plus the first half of `mixed`, times the sigmoid of its second half."""
    what, how_much = mixed.chunk(2, -1)
    return torch.addcmul(x, what, how_much.sigmoid())
