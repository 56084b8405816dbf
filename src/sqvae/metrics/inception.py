r"""The Inception network of 5 December 2015, whose 2048 features define the Fréchet inception distance.

Blocks and names are those of the original graph (Szegedy et al., 2015). It differs from later versions of the network
in that average pooling excludes the padding, and that the last block uses max pooling instead. Each convolution is
followed by a normalisation with fixed statistics, which is merged into it when weights are loaded,

.. math:: \frac{W * x - \mu}{\sqrt{v + \epsilon}} + \beta = W' * x + b', \qquad
          W' = \frac{W}{\sqrt{v + \epsilon}}, \quad b' = \beta - \frac{\mu}{\sqrt{v + \epsilon}}
"""

from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import torch
from torch import Tensor, nn

from sqvae.metrics.inception_weights import INCEPTION, load_inception

SIDE = 299
"""Height and width of the network's input."""

_EPSILON = 1e-3
_AT_ONCE = 16  # images; more need more memory, and are not faster on a CPU

Kernel: TypeAlias = int | tuple[int, int]
"""Height and width, or one number for both."""


class Inception:
    """Features of the network of 2015-12-05: the means over all positions of its last block.

    Arguments:
        weights: a file from `find_inception`.
        device: the device for the computation.
    """

    name = INCEPTION
    dim = 2048

    def __init__(self, weights: str | Path, device: torch.device | str = "cpu") -> None:
        with torch.device("meta"):  # no weights are initialised, so torch's generator is not used
            network = InceptionNetwork()
        network.load_state_dict(folded(load_inception(Path(weights))), assign=True)
        self.device = torch.device(device)
        self.network = network.requires_grad_(False).eval().to(self.device)

    @torch.no_grad()
    def __call__(self, pictures: Tensor) -> Tensor:  # uint8 (n, 1 or 3, H, W) -> (n, 2048)
        check_pictures(pictures)
        with torch.autocast(self.device.type, enabled=False):
            return torch.cat([self.network(prepared(part.to(self.device))) for part in pictures.split(_AT_ONCE)])


def check_pictures(pictures: Tensor) -> None:  # uint8 (n, 1 or 3, H, W)
    """Raise ValueError for anything but uint8 images: features of values on another scale would look plausible."""
    shape = tuple(pictures.shape)
    if pictures.dtype != torch.uint8 or len(shape) != 4 or shape[1] not in (1, 3) or 0 in shape[2:]:
        raise ValueError(
            f"images are {pictures.dtype} of shape {shape}, expected torch.uint8, 0 to 255, of shape "
            f"(n, 1 or 3, height, width)"
        )


def prepared(pictures: Tensor) -> Tensor:  # uint8 (n, 1 or 3, H, W) -> (n, 3, 299, 299)
    """The network's input: resized, scaled from [0, 255] to [-1, 1), grey images as three equal channels."""
    x = (resized(pictures.float(), SIDE) - 128) / 128
    return x.expand(-1, 3, -1, -1).contiguous(memory_format=torch.channels_last)


def resized(x: Tensor, side: int) -> Tensor:  # (n, c, H, W) -> (n, c, side, side)
    r"""Bilinear resizing as in TensorFlow 1: without half-pixel centres and without antialiasing.

    .. math:: y_i = (1 - t)\, x_l + t\, x_{\min(l + 1, n - 1)}, \qquad l = \lfloor i\,n/m \rfloor,\; t = i\,n/m - l

    along the width, then the height, from n pixels to m.
    """
    low, high, t = _places(x.shape[3], side, x.device)
    rows = x[..., low] + (x[..., high] - x[..., low]) * t
    low, high, t = _places(x.shape[2], side, x.device)
    return rows[..., low, :] + (rows[..., high, :] - rows[..., low, :]) * t[:, None]


def _places(before: int, after: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """The two input positions for each output position, and the weight of the second: (after,) each."""
    # In float32, as in the original: rounding of positions affects the last digits.
    place = torch.arange(after, dtype=torch.float32) * torch.tensor(before / after, dtype=torch.float32)
    low = place.long()
    return low.to(device), (low + 1).clamp(max=before - 1).to(device), (place - low).to(device)


def folded(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights and biases of the convolutions, with the statistics of their normalisations merged in."""
    found = {}
    for convolution in (name.removesuffix(".weight") for name in tensors if name.endswith(".weight")):
        weight, beta, mean, variance = (
            tensors[f"{convolution}.{part}"].double() for part in ("weight", "beta", "mean", "var")
        )
        scale = (variance + _EPSILON).rsqrt()
        # On a CPU, channels last, here and in images, is 1.5 times as fast as channels first.
        weight = (weight * scale.view(-1, 1, 1, 1)).contiguous(memory_format=torch.channels_last)
        found[f"{convolution}.weight"] = weight.float()
        found[f"{convolution}.bias"] = (beta - mean * scale).float()
    return found


class InceptionNetwork(nn.Sequential):
    """The network from prepared images to features: (n, 3, 299, 299) -> (n, 2048)."""

    def __init__(self) -> None:
        layers: dict[str, nn.Module] = {
            "conv": Convolution(3, 32, 3, stride=2),
            "conv_1": Convolution(32, 32, 3, padded=False),
            "conv_2": Convolution(32, 64, 3),
            "pool": _halving(),
            "conv_3": Convolution(64, 80, 1),
            "conv_4": Convolution(80, 192, 3, padded=False),
            "pool_1": _halving(),  # 35 x 35
            "mixed": _block_a(192, 32),
            "mixed_1": _block_a(256, 64),
            "mixed_2": _block_a(288, 64),
            "mixed_3": _block_b(288),  # 17 x 17
            "mixed_4": _block_c(768, 128),
            "mixed_5": _block_c(768, 160),
            "mixed_6": _block_c(768, 160),
            "mixed_7": _block_c(768, 192),
            "mixed_8": _block_d(768),  # 8 x 8
            "mixed_9": _block_e(1280, _neighbourhood_mean()),
            "mixed_10": _block_e(2048, nn.MaxPool2d(3, stride=1, padding=1)),
        }
        super().__init__(OrderedDict(layers))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self:
            x = layer(x)
        return x.mean((2, 3))


class Convolution(nn.Conv2d):
    """A convolution with its merged normalisation, followed by a ReLU.

    Arguments:
        width: number of input channels.
        channels: number of output channels.
        kernel: kernel size.
        stride: stride.
        padded: whether to pad so that the size stays the same; by default yes, unless there is a stride.
    """

    def __init__(
        self, width: int, channels: int, kernel: Kernel, *, stride: int = 1, padded: bool | None = None
    ) -> None:
        height, breadth = (kernel, kernel) if isinstance(kernel, int) else kernel
        padding = (height // 2, breadth // 2) if (stride == 1 if padded is None else padded) else (0, 0)
        super().__init__(width, channels, (height, breadth), stride, padding)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).relu_()


class Branches(nn.Sequential):
    """Several networks on the same input, whose outputs are concatenated along channels."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([branch(x) for branch in self], 1)


def _block_a(width: int, pooled: int) -> Branches:
    return _branches(
        conv=Convolution(width, 64, 1),
        tower=_tower(width, (48, 1), (64, 5)),
        tower_1=_tower(width, (64, 1), (96, 3), (96, 3)),
        tower_2=_pooled(_neighbourhood_mean(), width, pooled),
    )


def _block_b(width: int) -> Branches:
    return _branches(
        conv=Convolution(width, 384, 3, stride=2),
        tower=_tower(width, (64, 1), (96, 3), (96, 3), stride=2),
        pool=_halving(),
    )


def _block_c(width: int, inner: int) -> Branches:
    tall, wide = (7, 1), (1, 7)
    return _branches(
        conv=Convolution(width, 192, 1),
        tower=_tower(width, (inner, 1), (inner, wide), (192, tall)),
        tower_1=_tower(width, (inner, 1), (inner, tall), (inner, wide), (inner, tall), (192, wide)),
        tower_2=_pooled(_neighbourhood_mean(), width, 192),
    )


def _block_d(width: int) -> Branches:
    return _branches(
        tower=_tower(width, (192, 1), (320, 3), stride=2),
        tower_1=_tower(width, (192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3), stride=2),
        pool=_halving(),
    )


def _block_e(width: int, pool: nn.Module) -> Branches:
    def cross() -> Branches:
        return _branches(conv=Convolution(384, 384, (1, 3)), conv_1=Convolution(384, 384, (3, 1)))

    tower, tower_1 = _tower(width, (384, 1)), _tower(width, (448, 1), (384, 3))
    tower.add_module("mixed", cross())
    tower_1.add_module("mixed", cross())
    return _branches(conv=Convolution(width, 320, 1), tower=tower, tower_1=tower_1, tower_2=_pooled(pool, width, 192))


def _branches(**branches: nn.Module) -> Branches:
    return Branches(OrderedDict(branches))


def _tower(width: int, *steps: tuple[int, Kernel], stride: int = 1) -> nn.Sequential:
    """A sequence of convolutions, given by channels and kernel; the last one has the stride."""
    tower = nn.Sequential()
    for index, (channels, kernel) in enumerate(steps):
        last = index == len(steps) - 1
        convolution = Convolution(width, channels, kernel, stride=stride if last else 1)
        tower.add_module(f"conv_{index}" if index else "conv", convolution)
        width = channels
    return tower


def _pooled(pool: nn.Module, width: int, channels: int) -> nn.Sequential:
    return nn.Sequential(OrderedDict({"pool": pool, "conv": Convolution(width, channels, 1)}))


def _neighbourhood_mean() -> nn.AvgPool2d:
    return nn.AvgPool2d(3, stride=1, padding=1, count_include_pad=False)


def _halving() -> nn.MaxPool2d:
    return nn.MaxPool2d(3, stride=2)
