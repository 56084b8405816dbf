r"""Convolutional networks for codes on several resolutions, around the encoder and decoder of a single one.

The latent map of level l has twice the height and width of that of level l - 1. The latents of several levels become
one map from the top down, at the resolution of the finest:

.. math:: y_1 = z_1, \qquad y_l = U_l(y_{l-1}) + z_l,

where :math:`U_l` doubles height and width.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from sqvae.networks.convolutional import ResBlock, initialise


class LevelEncoder(nn.Module):
    """Feature maps on several resolutions: those of an encoder, and coarser ones made of them.

    Arguments:
        encoder: maps images to the finest features, (batch, C, H, W) to (batch, dim, h, w).
        dim: the number of channels of all feature maps.
        levels: the number of levels, L.
        blocks: the number of ResBlocks after each halving.
    """

    def __init__(self, encoder: nn.Module, dim: int, levels: int, *, blocks: int = 0) -> None:
        super().__init__()
        self.encoder = encoder
        self.halvings = nn.ModuleList(_halving(dim, blocks) for _ in range(levels - 1))

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:  # (batch, C, H, W) -> (batch, dim, h / 2^(L - l), ...) each
        """The feature maps, the coarsest first."""
        maps = [self.encoder(x)]
        for halving in self.halvings:
            height, width = maps[-1].shape[2:]
            if height % 2 or width % 2:
                raise ValueError(
                    f"the features of each level must have twice the height and width of the level above it, and "
                    f"{height}x{width} can't be halved: use larger or smaller images, or fewer levels"
                )
            maps.append(halving(maps[-1]))
        return tuple(reversed(maps))


class LevelBlock(nn.Module):
    r"""The encodings of a level, :math:`G_l(h_l(x), z_1 \dots z_{l-1})`, from its features and all coarser latents.

    The first level has nothing above it, and its features are its encodings.

    Arguments:
        dim: the number of channels of features and latents.
        coarser: the number of levels above it, l - 1.
        blocks: the number of ResBlocks after features and latents have been brought together.
        log_variance: return (z, log_variance), the latter from one more ResBlock.
    """

    def __init__(self, dim: int, coarser: int, *, blocks: int = 0, log_variance: bool = False) -> None:
        super().__init__()
        self.above = nn.Sequential(LevelSum(dim, coarser), _doubling(dim)) if coarser else None
        self.together = nn.Conv2d(2 * dim, dim, 3, padding=1).apply(initialise) if coarser else None
        self.blocks = nn.Sequential(*(ResBlock(dim) for _ in range(blocks if coarser else 0))).apply(initialise)
        self.head = ResBlock(dim).apply(initialise) if log_variance else None

    def forward(
        self, features: Tensor, latents: Sequence[Tensor]
    ) -> Tensor | tuple[Tensor, Tensor]:  # (batch, dim, h, w), (batch, dim, h / 2^k, ...) each -> (batch, dim, h, w)
        z = features
        if self.above is not None and self.together is not None:
            # The features pass on unchanged at first, so that a level begins as it would by itself.
            z = self.blocks(features + self.together(torch.cat((features, self.above(latents)), 1)))
        return z if self.head is None else (z, self.head(z))


class LevelSum(nn.Module):
    """The latents of several levels as one map at the resolution of the finest. A single level stays as it is.

    Arguments:
        dim: the number of channels of all latents.
        levels: the number of levels.
    """

    def __init__(self, dim: int, levels: int) -> None:
        super().__init__()
        self.doublings = nn.ModuleList(_doubling(dim) for _ in range(levels - 1))

    def forward(self, latents: Sequence[Tensor]) -> Tensor:  # (batch, dim, h / 2^k, ...) each -> (batch, dim, h, w)
        y, *finer = latents
        for doubling, z in zip(self.doublings, finer, strict=True):
            y = doubling(y) + z
        return y


class LevelDecoder(nn.Module):
    """A decoder that sees the latents of all levels.

    Arguments:
        decoder: maps a latent map at the finest resolution to images.
        dim: the number of channels of all latents.
        levels: the number of levels.
    """

    def __init__(self, decoder: nn.Module, dim: int, levels: int) -> None:
        super().__init__()
        self.sum = LevelSum(dim, levels)
        self.decoder = decoder

    def forward(self, latents: Sequence[Tensor]) -> Tensor:  # (batch, dim, h / 2^k, ...) each -> (batch, C, H, W)
        output: Tensor = self.decoder(self.sum(latents))
        return output


def _halving(dim: int, blocks: int) -> nn.Sequential:
    layers = [nn.ReLU(), nn.Conv2d(dim, dim, 4, stride=2, padding=1), *(ResBlock(dim) for _ in range(blocks))]
    return nn.Sequential(*layers).apply(initialise)


def _doubling(dim: int) -> nn.Sequential:
    # The residual block passes the coarse codes on unchanged from the first step, so that no level starts unheard.
    return nn.Sequential(nn.Upsample(scale_factor=2), ResBlock(dim)).apply(initialise)
