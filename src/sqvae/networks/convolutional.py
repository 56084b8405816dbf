"""The two-layer convolutional networks of the paper's study of self-annealing (appendix D.3)."""

from torch import Tensor, nn


def conv_encoder(channels: int, dim: int, *, hidden: int = 32) -> nn.Sequential:
    """Pictures (batch, channels, H, W) to encodings (batch, dim, H / 4, W / 4)."""
    return nn.Sequential(
        nn.Conv2d(channels, hidden, 4, stride=2, padding=1),
        nn.BatchNorm2d(hidden),
        nn.ReLU(),
        nn.Conv2d(hidden, dim, 4, stride=2, padding=1),
    ).apply(initialise)


def conv_decoder(channels: int, dim: int, *, hidden: int = 32, bounded: bool = True) -> nn.Sequential:
    """Encodings (batch, dim, h, w) to pictures (batch, channels, 4h, 4w), in [0, 1] if `bounded`.

    Likelihoods of labels want it unbounded.
    """
    return nn.Sequential(
        nn.ConvTranspose2d(dim, hidden, 4, stride=2, padding=1),
        nn.BatchNorm2d(hidden),
        nn.ReLU(),
        nn.ConvTranspose2d(hidden, channels, 4, stride=2, padding=1),
        nn.Sigmoid() if bounded else nn.Identity(),
    ).apply(initialise)


def initialise(layer: nn.Module) -> None:
    """Convolutions N(0, 0.02), the weights of batch normalisation N(1, 0.02), biases 0."""
    weight, bias = getattr(layer, "weight", None), getattr(layer, "bias", None)
    if not isinstance(weight, Tensor):
        return
    nn.init.normal_(weight, 0.0 if weight.ndim > 1 else 1.0, 0.02)
    if isinstance(bias, Tensor):
        nn.init.zeros_(bias)
