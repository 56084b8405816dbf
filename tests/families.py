"""The members of each family, as tests build them: what is listed in a dictionary is tested by being listed."""

import inspect

import torch
from torch import Tensor

from sqvae.likelihoods import LIKELIHOODS, Likelihood, half_circle_directions
from sqvae.quantizers import LATENTS, GaussianQuantizer, Quantizer, class_of
from sqvae.quantizers.contract import CodebookQuantizer
from sqvae.quantizers.stochastic import StochasticQuantizer

CODES, DIM = 16, 8
DISCRETE = [name for name in LATENTS if issubclass(class_of(name), CodebookQuantizer)]
STOCHASTIC = [name for name in DISCRETE if issubclass(class_of(name), StochasticQuantizer)]
GAUSSIAN = [name for name in STOCHASTIC if issubclass(class_of(name), GaussianQuantizer)]


def build(name: str, *, codes: int = CODES, dim: int = DIM, dtype: torch.dtype = torch.float32, **kwargs) -> Quantizer:
    sizes = {"codebook_size": codes, "dim": dim} if name in DISCRETE else {"dim": dim}
    return LATENTS[name](**sizes, **kwargs).to(dtype)


def takes(name: str, option: str) -> bool:
    """Whether a quantizer has this option."""
    return option in inspect.signature(class_of(name)).parameters


def encoder_output(quantizer: Quantizer, *shape: int, **kwargs) -> dict[str, Tensor]:
    """Encodings, and a log-variance where the quantizer asks for one."""
    inputs = {"z": torch.randn(*shape, **kwargs)}
    if quantizer.needs_log_variance:
        inputs["log_variance"] = 0.3 * torch.randn(*shape, **kwargs)
    return inputs


def build_likelihood(name: str) -> tuple[Likelihood, Tensor, Tensor]:
    """A likelihood, a batch of data for it, and a decoder's output of the right shape."""
    if name == "gaussian":
        return LIKELIHOODS[name](), torch.rand(4, 3, 5, 5), torch.rand(4, 3, 5, 5)
    labels = torch.randint(0, 6, (4, 5, 5))
    if name == "categorical":
        return LIKELIHOODS[name](6), labels, torch.randn(4, 6, 5, 5)
    return LIKELIHOODS[name](half_circle_directions(6)), labels, torch.randn(4, 2, 5, 5)
