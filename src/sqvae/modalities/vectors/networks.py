"""Fully connected networks for vectors, which carry the scale of the data with them."""

import torch
from torch import Tensor, nn


class ResidualBlock(nn.Module):
    """A hidden layer whose result is added to its input: h + W2 silu(W1 norm(h))."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, h: Tensor) -> Tensor:  # (batch, width) -> (batch, width)
        added: Tensor = self.layers(h)
        return h + added


def hidden_layers(given: int, hidden: int, wanted: int, blocks: int) -> nn.Sequential:
    """From `given` values to `wanted` ones: (batch, given) -> (batch, wanted)."""
    inner = [ResidualBlock(hidden) for _ in range(blocks)]
    return nn.Sequential(nn.Linear(given, hidden), *inner, nn.LayerNorm(hidden), nn.SiLU(), nn.Linear(hidden, wanted))


class VectorEncoder(nn.Module):
    r"""Vectors to encodings, one for each code: :math:`z = g_\phi((x - m) / a)`.

    Arguments:
        values: the number of values of a vector.
        dim: the dimension of a code.
        codes: the number of codes that a vector becomes.
        hidden: the number of units in a hidden layer.
        blocks: the number of residual blocks.
        log_variance: whether a second head gives log-variances.
    """

    offset: Tensor
    scale: Tensor

    def __init__(
        self, values: int, dim: int, *, codes: int, hidden: int, blocks: int, log_variance: bool = False
    ) -> None:
        super().__init__()
        self.dim, self.codes, self.log_variance = dim, codes, log_variance
        self.layers = hidden_layers(values, hidden, (2 if log_variance else 1) * codes * dim, blocks)
        self.register_buffer("offset", torch.zeros(values))
        self.register_buffer("scale", torch.ones(()))

    def forward(self, x: Tensor) -> Tensor | tuple[Tensor, Tensor]:  # (batch, values) -> (batch, dim, codes)
        heads = self.layers((x - self.offset) / self.scale).unflatten(1, (-1, self.dim, self.codes))
        return (heads[:, 0], heads[:, 1]) if self.log_variance else heads[:, 0]


class VectorDecoder(nn.Module):
    r"""Quantized encodings back to vectors: :math:`x = m + a f_\theta(Z_q)`.

    Arguments: as for :class:`VectorEncoder`.
    """

    offset: Tensor
    scale: Tensor

    def __init__(self, values: int, dim: int, *, codes: int, hidden: int, blocks: int) -> None:
        super().__init__()
        self.layers = hidden_layers(codes * dim, hidden, values, blocks)
        self.register_buffer("offset", torch.zeros(values))
        self.register_buffer("scale", torch.ones(()))

    def forward(self, z: Tensor) -> Tensor:  # (batch, dim, codes) -> (batch, values)
        values: Tensor = self.layers(z.flatten(1)) * self.scale + self.offset
        return values
