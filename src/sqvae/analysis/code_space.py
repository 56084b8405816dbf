"""The positions of a model's codes in two dimensions, and a colour for each code."""

import torch
from torch import Tensor

from sqvae.tokenizers import Tokenizer

_LIGHTNESS, _LIGHTNESS_SPAN, _CHROMA = 0.56, 0.06, 0.14
"""The lightness, its range and the chroma of the codes' colours in OKLab: dark enough for a white background, and
different in different regions."""


def code_positions(tokenizer: Tokenizer) -> Tensor:  # -> (K, 2), in [0, 1]
    """A map of the codes in their first two principal components. Both axes have the same scale."""
    places = _principal(tokenizer, 2)
    reach = places.abs().amax()
    return 0.5 + places / (2 * reach) if reach > 0 else torch.full_like(places, 0.5)


def code_colours(tokenizer: Tokenizer) -> Tensor:  # -> uint8 (K, 3)
    """A colour for each code: similar codes have similar colours, and all are dark enough for a white background."""
    places = _principal(tokenizer, 3)
    places = torch.tanh(places / places.std(0, correction=0).clamp_min(1e-12))
    lightness = _LIGHTNESS + _LIGHTNESS_SPAN * places[:, 2]
    return _from_oklab(torch.stack((lightness, _CHROMA * places[:, 0], _CHROMA * places[:, 1]), 1))


def _principal(tokenizer: Tokenizer, number: int) -> Tensor:  # -> (K, number), float32
    """The first principal components of the code vectors; missing components are 0.

    The sign of each component is chosen so that its largest value is positive, because a decomposition leaves it open.
    """
    vectors = tokenizer.code_vectors.double().cpu()
    vectors = vectors - vectors.mean(0)
    left, scales, _ = torch.linalg.svd(vectors, full_matrices=False)
    found = (left * scales)[:, :number]
    largest = found.gather(0, found.abs().argmax(0, keepdim=True))
    found = found * torch.where(largest < 0, -1.0, 1.0)
    return torch.nn.functional.pad(found, (0, number - found.shape[1])).float()


def _from_oklab(colours: Tensor) -> Tensor:  # (n, 3) -> uint8 (n, 3)
    """Convert colours from OKLab (Ottosson, 2020), where equal steps look equal, to sRGB."""
    to_cones = torch.tensor(
        [[1, 0.3963377774, 0.2158037573], [1, -0.1055613458, -0.0638541728], [1, -0.0894841775, -1.2914855480]]
    )
    to_linear = torch.tensor(
        [
            [4.0767416621, -3.3077115913, 0.2309699292],
            [-1.2684380046, 2.6097574011, -0.3413193965],
            [-0.0041960863, -0.7034186147, 1.7076147010],
        ]
    )
    linear = ((colours @ to_cones.T) ** 3 @ to_linear.T).clamp(0, 1)
    encoded = torch.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return (encoded.clamp(0, 1) * 255).round().byte()
