"""Gated attention to all earlier positions."""

import torch
from torch import Tensor, nn
from torch.nn.functional import elu, scaled_dot_product_attention

from sqvae.priors.gating import GatedUpdate
from sqvae.priors.residual import UpdateMemory

FREQUENCIES = 10
PLACES = 4 * FREQUENCIES
"""The size of a positional encoding: a sine and a cosine for each frequency along either axis."""


def places(height: int, width: int, like: Tensor) -> Tensor:  # -> (h, w, places)
    r"""Positional encodings, by waves along either axis: :math:`\sin(2^{-f} i)` and :math:`\cos(2^{-f} i)`.

    A position has the same encoding in maps of all sizes.

    Arguments:
        height, width: the size of the map.
        like: a tensor with the device and the type of the result.
    """
    lengths = 2.0 ** -torch.arange(FREQUENCIES, device=like.device)
    rows, columns = (torch.arange(size, device=like.device)[:, None] * lengths for size in (height, width))
    axes = (rows[:, None].expand(height, width, -1), columns.expand(height, width, -1))
    return torch.cat([wave for angles in axes for wave in (angles.sin(), angles.cos())], -1).to(like)


class AttentionLayer(nn.Module):
    r"""A gated update with attention to earlier positions.

    .. math::
        q_i &= W_q\, [\mathrm{elu}(x_i), p_i], \qquad (k_j, v_j) = W_{kv}\, [\mathrm{elu}(x_j), p_j, e_j] \\ f_i &=
        W_x\, \mathrm{elu}(x_i) + W_a \sum_{j<i} \mathrm{softmax}_j(q_i^\top k_j / \sqrt d)\, v_j

    p is the positional encoding, and e is the embedding of the code itself, which only later positions may see. Each
    head, of dimension d, has its own sum. A learned k and v are put before the first position, so that it can attend to
    something, too.

    Arguments:
        channels: the number of channels of x, e and f.
        width: the total dimension of q, k and v over all heads.
        heads: the number of heads.
        conditional, dropout: see :class:`sqvae.priors.gating.GatedUpdate`.
    """

    def __init__(self, channels: int, *, width: int, heads: int, conditional: bool, dropout: float) -> None:
        super().__init__()
        self.width = width
        self.heads = heads
        # [elu(x), p, e] is multiplied in parts, because the product with p is the same for the whole batch.
        self.of_features = nn.Linear(channels, 3 * width)
        self.of_places = nn.Linear(PLACES, 3 * width, bias=False)
        self.of_codes = nn.Linear(channels, 2 * width, bias=False)
        self.first = nn.Parameter(torch.zeros(2 * width))
        self.own = nn.Linear(channels, channels)
        self.seen = nn.Linear(width, channels, bias=False)
        self.update = GatedUpdate(channels, conditional=conditional, dropout=dropout)

    def forward(
        self, x: Tensor, e: Tensor, p: Tensor, known: Tensor | None
    ) -> Tensor:  # (batch, h, w, channels), likewise, (h, w, places) -> (batch, h, w, channels)
        active = elu(x)
        query, remembered = self.split(self.of_features(active) + self.of_places(p))
        remembered = (remembered + self.of_codes(e)).flatten(1, 2)
        # Keys and values are shifted by one position, so that a causal mask excludes the position itself.
        remembered = torch.cat((self.first.expand(len(x), 1, -1), remembered[:, :-1]), 1)
        key, value = remembered.chunk(2, -1)
        q, k, v = (self.by_head(part) for part in (query.flatten(1, 2), key, value))
        seen = scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(*x.shape[:-1], -1)
        updated: Tensor = self.update(x, self.own(active) + self.seen(seen), known)
        return updated

    def split(self, asked: Tensor) -> tuple[Tensor, Tensor]:  # (..., 3 width) -> (..., width), (..., 2 width)
        """The query, and key and value."""
        return asked[..., : self.width], asked[..., self.width :]

    def by_head(self, x: Tensor) -> Tensor:  # (batch, n, width) -> (batch, heads, n, d)
        return x.view(*x.shape[:-1], self.heads, -1).transpose(1, 2)


class AttentionMemory:
    """The cache of an attention layer in a draft: the keys and values of all earlier positions.

    Arguments:
        layer: the attention layer.
        batch: the number of examples.
        shape: (h, w) of the map.
    """

    def __init__(self, layer: AttentionLayer, batch: int, shape: tuple[int, int]) -> None:
        self._layer = layer
        self._batch, self._width = batch, shape[1]
        self._update = UpdateMemory(layer.update)
        self._matrix, self._code_matrix = layer.of_features.weight.T, layer.of_codes.weight.T
        bias = layer.of_features.bias
        self._asked = (layer.of_places(places(*shape, bias)) + bias).flatten(0, 1)  # (positions, 3 width)
        self._past = bias.new_empty(2, batch, layer.heads, len(self._asked), layer.width // layer.heads)
        self._known = 0
        self._remember(layer.first.expand(batch, -1))

    def begin_row(self, known: Tensor | None) -> None:
        self._update.begin_row(self._batch, self._width, known)

    def settle(self, e: Tensor) -> None:  # (batch, channels)
        """Add the last position to the cache, now that its code is known."""
        self._remember(torch.addmm(self._unsettled, e, self._code_matrix))

    def at(self, column: int, x: Tensor) -> Tensor:  # (batch, channels) -> (batch, channels)
        layer, active = self._layer, elu(x)
        asked = torch.addmm(self._asked[self._known - 1], active, self._matrix)
        query, self._unsettled = layer.split(asked)
        key, value = self._past[:, :, :, : self._known]
        seen = scaled_dot_product_attention(layer.by_head(query[:, None]), key, value).flatten(1)
        return self._update.at(column, x, layer.own(active).addmm_(seen, layer.seen.weight.T))

    def _remember(self, key_and_value: Tensor) -> None:  # (batch, 2 width)
        both = key_and_value.view(self._batch, 2, self._layer.heads, -1)
        self._past[:, :, :, self._known] = both.transpose(0, 1)
        self._known += 1
