r"""The paper's convolutional networks for images: one encoder and one decoder, which cover all networks of the paper.

==============================  =====================  ========  =======  ============
net                             ``widths``             ``mix``   blocks   where
==============================  =====================  ========  =======  ============
two-layer ConvNet               ``(32, d)``            no        0        appendix D.3
MNIST, Fashion-MNIST (28x28)    ``(d / 2, d)``         no        2, 6     appendix E.1
CIFAR10, CelebA (32x32, 64x64)  ``(d / 2, d)``         yes       6        appendix E.1
CelebA-HQ (256x256)             ``(16, 32, 64)``       yes       6        appendix F
==============================  =====================  ========  =======  ============

The paper's VAE has the same network with an additional linear layer before and after the latent, which is then one
vector: :func:`to_vector` and :func:`from_vector`.

A convolution whose output is normalised has no bias: normalisation would remove it, its gradient would consist of
rounding errors only, and Adam would turn these into steps.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from sqvae.networks.normalisation import BatchNorm2d


class ResBlock(nn.Module):
    """A residual block: x + branch(x), with ReLU, 3x3 convolution, batch norm, ReLU, 1x1 convolution, batch norm."""

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
    """An encoder with a second output, from one more ResBlock, for quantizers whose variance depends on the input."""

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
    """An encoder from images (batch, channels, H, W) to encodings (batch, dim, h, w), with h = H / 2^len(widths).

    Arguments:
        channels: number of channels of the images.
        dim: dimension of the encodings.
        widths: number of channels after each downsampling by 2; (32, dim) by default. Without `mix` the last is `dim`.
        mix: add a 3x3 convolution to `dim` channels after the downsampling.
        blocks: number of ResBlocks at the end.
        log_variance: return (z, log_variance), the latter from one more ResBlock.
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
    """A decoder from encodings (batch, dim, h, w) to images (batch, channels, H, W): the encoder's layers, mirrored.

    Arguments:
        channels, dim, widths, mix: the same as for the encoder.
        blocks: number of ResBlocks at the beginning.
        bounded: apply a sigmoid, so that outputs are in [0, 1]. Likelihoods of labels need unbounded outputs.
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
            # Random weights would give variances from nearly 0 to thousands, whose noise would hide the vector.
            nn.init.zeros_(self.head.weight)
            nn.init.zeros_(self.head.bias)

    def forward(self, x: Tensor) -> Tensor | tuple[Tensor, Tensor]:  # (batch, C, H, W) -> (batch, dim), or two of them
        encodings = self.encoder(x)
        if encodings.shape[1:] != self.map_shape:
            stride, (_, height, width) = x.shape[2] // encodings.shape[2], self.map_shape
            raise ValueError(
                f"the latent of this network is one vector, so it takes only images of {stride * height}x"
                f"{stride * width}; got {x.shape[2]}x{x.shape[3]}: resize them"
            )
        f = encodings.flatten(1) * self.map_size**-0.5
        z: Tensor = self.vector(f)
        return z if self.head is None else (z, self.head(f))


def to_vector(
    encoder: nn.Module, map_shape: tuple[int, int, int], dim: int, *, log_variance: bool = False
) -> nn.Module:
    r"""An encoder from images (batch, C, H, W) to one vector each, (batch, dim): adds a linear layer to an encoder.

    .. math:: z = W f / \sqrt n + b

    Here f are the n values of a map. W is initialised as N(0, 1), b as 0. Without the root, a map of 64x16x16 does not
    train at Adam's usual learning rate: a step changes each of the n weights by the same amount, and the vector by n
    times that.

    Arguments:
        encoder: an encoder from images to maps, (batch, C, H, W) to ``(batch, *map_shape)``.
        map_shape: (channels, h, w). The linear layer works for one size of images only.
        dim: dimension of the vector.
        log_variance: return (z, log_variance), the latter from a second linear layer, which is initialised as 0: with
            unit variance.
    """
    return _ToVector(encoder, map_shape, dim, log_variance)


def from_vector(decoder: nn.Module, map_shape: tuple[int, int, int], dim: int) -> nn.Sequential:
    """A decoder from vectors (batch, dim) to images (batch, C, H, W): adds a linear layer before a decoder.

    Its weights are initialised as N(0, 1 / dim), so that a standard normal vector gives a map of unit variance, like
    the codes of a codebook.

    Arguments:
        decoder: a decoder from maps to images, ``(batch, *map_shape)`` to (batch, C, H, W).
        map_shape: (channels, h, w).
        dim: dimension of the vector.
    """
    linear = nn.Linear(dim, math.prod(map_shape))
    nn.init.normal_(linear.weight, 0.0, dim**-0.5)
    nn.init.zeros_(linear.bias)
    return nn.Sequential(linear, nn.Unflatten(1, map_shape), decoder)


def _widths(widths: Sequence[int] | None, dim: int, mix: bool) -> tuple[int, ...]:
    widths = (32, dim) if widths is None else tuple(widths)
    if not widths or min(widths) < 1:
        raise ValueError(f"widths must contain at least one number of channels, each at least 1; got {widths}")
    if not mix and widths[-1] != dim:
        raise ValueError(
            f"without mix, the last of the widths must be the dimension of the encodings: expected {dim}, got {widths}"
        )
    return widths


def initialise(layer: nn.Module) -> None:
    """Initialise a layer: convolutions N(0, 0.02), the weights of batch normalisation N(1, 0.02), biases 0."""
    weight, bias = getattr(layer, "weight", None), getattr(layer, "bias", None)
    if not isinstance(weight, Tensor):
        return
    nn.init.normal_(weight, 0.0 if weight.ndim > 1 else 1.0, 0.02)
    if isinstance(bias, Tensor):
        nn.init.zeros_(bias)
