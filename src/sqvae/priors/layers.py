"""The head of priors over several layers of codes at each position."""

import torch
from torch import Tensor, nn
from torch.nn.functional import elu, pad

from sqvae.priors.gating import GatedUpdate

DEPTH = 2
"""The number of gated updates in the head."""


class LayerHead(nn.Module):
    r"""The logits of a position's codes, layer after layer, given the features of the position.

    .. math::
        x_l &= f + a_l + \sum_{m<l} e_m, & x_l &\leftarrow x_l + u \odot \sigma(v), \quad (u, v) = W'\,
        \mathrm{elu}(W\, \mathrm{elu}(x_l)), & \mathrm{logits}_l &= W_l\, \mathrm{elu}(x_l) + b_l

    f is the features, which the codes of all earlier positions determine, and :math:`e_m` is the embedding of the code
    of layer m at this position. All layers share the gated updates, of which there are two, and each has its own
    :math:`a_l`, :math:`W_l` and :math:`b_l`.

    Arguments:
        channels: the number of channels of f and e.
        codebook_size: the number of codes of each layer, :math:`K`.
        layers: the number of layers, L.
        dropout: the dropout probability in training.
    """

    def __init__(self, channels: int, codebook_size: int, layers: int, *, dropout: float) -> None:
        super().__init__()
        self.own = nn.Parameter(torch.randn(layers, channels))
        self.inner = nn.ModuleList(nn.Linear(channels, channels) for _ in range(DEPTH))
        self.updates = nn.ModuleList(GatedUpdate(channels, conditional=False, dropout=dropout) for _ in range(DEPTH))
        self.out = nn.ModuleList(nn.Linear(channels, codebook_size) for _ in range(layers))

    def forward(self, f: Tensor, e: Tensor) -> Tensor:  # (..., channels), (..., L, channels) -> (..., L, K)
        """The logits of all layers, if the codes of all layers are known."""
        # Shifted before they are summed, so that rounding tells nothing of a layer's own code either.
        before = pad(e[..., :-1, :], (0, 0, 1, 0)).cumsum(-2)
        x = self._updated(f.unsqueeze(-2) + self.own + before)
        return torch.stack([out(own) for out, own in zip(self.out, x.unbind(-2), strict=True)], -2)

    def next_logits(self, f: Tensor, e: Tensor) -> Tensor:  # (..., channels), (..., l, channels) -> (..., K)
        """The logits of the next layer, if the codes of the l layers before it are known."""
        layer = e.shape[-2]
        logits: Tensor = self.out[layer](self._updated(f + self.own[layer] + e.sum(-2)))
        return logits

    def _updated(self, x: Tensor) -> Tensor:  # (..., channels) -> (..., channels)
        for inner, update in zip(self.inner, self.updates, strict=True):
            x = update(x, inner(elu(x)), None)
        return elu(x)
