r"""The paper's convolutional networks for pictures: one encoder and one decoder, of which each of its nets is a case.

==============================  =====================  ========  =======  ============
net                             ``widths``             ``mix``   blocks   where
==============================  =====================  ========  =======  ============
two-layer ConvNet               ``(32, d)``            no        0        appendix D.3
MNIST, Fashion-MNIST (28x28)    ``(d / 2, d)``         no        2, 6     appendix E.1
CIFAR10, CelebA (32x32, 64x64)  ``(d / 2, d)``         yes       6        appendix E.1
CelebA-HQ (256x256)             ``(16, 32, 64)``       yes       6        appendix F
==============================  =====================  ========  =======  ============

The paper's VAE has the same net with a linear layer more at either end of the latent, which is one vector then:
:func:`to_vector` and :func:`from_vector`.

A convolution whose output is normalised has no bias: normalisation would take it out again, its gradient would be
rounding errors alone, and Adam would make steps of them.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from sqvae.networks.normalisation import BatchNorm2d


class ResBlock(nn.Module):
    """ReLU, 3x3 convolution, batch norm, ReLU, 1x1 convolution, batch norm, and the input added to that."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.branch = nn.Sequential(
            nn.ReLU(),
            nn.Conv2d(dim, dim, 3, padding=1, bias=False),
            BatchNorm2d(dim),
            nn.ReLU(),
            nn.Conv2d(dim, dim, 1, bias=False),
            BatchNorm2d(dim),
        )

    def forward(self, x: Tensor) -> Tensor:  # (batch, dim, h, w) -> (batch, dim, h, w)
        added: Tensor = x + self.branch(x)
        return added


class WithLogVariance(nn.Module):
    """An encoder with a second head, one more ResBlock, for quantizers whose variance depends on the input."""

    def __init__(self, encoder: nn.Module, dim: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = ResBlock(dim)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:  # -> (batch, dim, h, w), (batch, dim, h, w)
        z = self.encoder(x)
        return z, self.head(z)


def conv_encoder(
    channels: int,
    dim: int,
    *,
    widths: Sequence[int] | None = None,
    mix: bool = False,
    blocks: int = 0,
    log_variance: bool = False,
) -> nn.Module:
    """Pictures (batch, channels, H, W) to encodings (batch, dim, h, w), with h = H / 2^len(widths).

    Arguments:
        channels: of the pictures.
        dim: of the encodings.
        widths: the channels after each halving of the size; (32, dim) by default. Without `mix` the last is `dim`.
        mix: a 3x3 convolution to `dim` channels comes after the halvings.
        blocks: the number of ResBlocks at the end.
        log_variance: return (z, log_variance), the latter from one ResBlock more.
    """
    widths = _widths(widths, dim, mix)
    layers: list[nn.Module] = []
    steps = list(pairwise((channels, *widths)))
    for before, after in steps if mix else steps[:-1]:
        layers += [nn.Conv2d(before, after, 4, stride=2, padding=1, bias=False), BatchNorm2d(after), nn.ReLU()]
    layers += [nn.Conv2d(widths[-1], dim, 3, padding=1) if mix else nn.Conv2d(*steps[-1], 4, stride=2, padding=1)]
    layers += [ResBlock(dim) for _ in range(blocks)]
    encoder: nn.Module = nn.Sequential(*layers)
    if log_variance:
        encoder = WithLogVariance(encoder, dim)
    return encoder.apply(initialise)


def conv_decoder(
    channels: int,
    dim: int,
    *,
    widths: Sequence[int] | None = None,
    mix: bool = False,
    blocks: int = 0,
    bounded: bool = True,
) -> nn.Sequential:
    """Encodings (batch, dim, h, w) to pictures (batch, channels, H, W): the encoder's layers, mirrored.

    Arguments:
        channels, dim, widths, mix: the encoder's.
        blocks: the number of ResBlocks at the beginning.
        bounded: end in [0, 1]. Likelihoods of labels want it unbounded.
    """
    widths = _widths(widths, dim, mix)
    layers: list[nn.Module] = [ResBlock(dim) for _ in range(blocks)]
    if mix:
        layers += [nn.ConvTranspose2d(dim, widths[-1], 3, padding=1, bias=False), BatchNorm2d(widths[-1]), nn.ReLU()]
    for before, after in pairwise(widths[::-1]):
        widening = nn.ConvTranspose2d(before, after, 4, stride=2, padding=1, bias=False)
        layers += [widening, BatchNorm2d(after), nn.ReLU()]
    layers += [nn.ConvTranspose2d(widths[0], channels, 4, stride=2, padding=1)]
    layers += [nn.Sigmoid() if bounded else nn.Identity()]
    return nn.Sequential(*layers).apply(initialise)


class _ToVector(nn.Module):
    """See :func:`to_vector`."""

    def __init__(self, encoder: nn.Module, map_shape: tuple[int, int, int], dim: int, log_variance: bool) -> None:
        super().__init__()
        self.encoder = encoder
        self.map_shape = map_shape
        self.map_size = math.prod(map_shape)
        self.vector = nn.Linear(self.map_size, dim)
        nn.init.normal_(self.vector.weight)
        nn.init.zeros_(self.vector.bias)
        self.head = nn.Linear(self.map_size, dim) if log_variance else None
        if self.head is not None:
            # Drawn weights would give variances from almost none to thousands, whose noise drowns the vector.
            nn.init.zeros_(self.head.weight)
            nn.init.zeros_(self.head.bias)

    def forward(self, x: Tensor) -> Tensor | tuple[Tensor, Tensor]:  # (batch, C, H, W) -> (batch, dim), or two of them
        encodings = self.encoder(x)
        if encodings.shape[1:] != self.map_shape:
            stride, (_, height, width) = x.shape[2] // encodings.shape[2], self.map_shape
            raise ValueError(
                f"this network's latent is one vector, so it takes pictures of {stride * height}x{stride * width} "
                f"only; got {x.shape[2]}x{x.shape[3]}: bring them to that size"
            )
        f = encodings.flatten(1) * self.map_size**-0.5
        z: Tensor = self.vector(f)
        return z if self.head is None else (z, self.head(f))


def to_vector(
    encoder: nn.Module, map_shape: tuple[int, int, int], dim: int, *, log_variance: bool = False
) -> nn.Module:
    r"""Pictures (batch, C, H, W) to one vector each, (batch, dim): a linear layer at the end of an encoder.

    .. math:: z = W f / \sqrt n + b

    Here f are the n numbers of a map, and W begins as N(0, 1), b as 0. Without the root a map of 64x16x16 does not
    train at Adam's usual rate: a step moves each of n weights by as much, and the vector by n times that.

    Arguments:
        encoder: pictures to maps, (batch, C, H, W) to ``(batch, *map_shape)``.
        map_shape: (channels, h, w). A linear layer is made for one size of pictures.
        dim: of the vector.
        log_variance: return (z, log_variance), the latter from a second linear layer that begins as 0: with unit
            variance.
    """
    return _ToVector(encoder, map_shape, dim, log_variance)


def from_vector(decoder: nn.Module, map_shape: tuple[int, int, int], dim: int) -> nn.Sequential:
    """Vectors (batch, dim) to pictures (batch, C, H, W): a linear layer at the beginning of a decoder.

    Its weights begin as N(0, 1 / dim), so that a standard normal vector becomes a map of unit variance, as a codebook's
    codes make.

    Arguments:
        decoder: maps to pictures, ``(batch, *map_shape)`` to (batch, C, H, W).
        map_shape: (channels, h, w).
        dim: of the vector.
    """
    linear = nn.Linear(dim, math.prod(map_shape))
    nn.init.normal_(linear.weight, 0.0, dim**-0.5)
    nn.init.zeros_(linear.bias)
    return nn.Sequential(linear, nn.Unflatten(1, map_shape), decoder)


def _widths(widths: Sequence[int] | None, dim: int, mix: bool) -> tuple[int, ...]:
    widths = (32, dim) if widths is None else tuple(widths)
    if not widths or min(widths) < 1:
        raise ValueError(f"widths must name at least one number of channels, each at least 1; got {widths}")
    if not mix and widths[-1] != dim:
        raise ValueError(
            f"without mix, the last of the widths is the encodings' dimension: expected {dim}, got {widths}"
        )
    return widths


def initialise(layer: nn.Module) -> None:
    """Convolutions N(0, 0.02), the weights of batch normalisation N(1, 0.02), biases 0."""
    weight, bias = getattr(layer, "weight", None), getattr(layer, "bias", None)
    if not isinstance(weight, Tensor):
        return
    nn.init.normal_(weight, 0.0 if weight.ndim > 1 else 1.0, 0.02)
    if isinstance(bias, Tensor):
        nn.init.zeros_(bias)
