"""The members of each family, as tests build them: what is listed in a dictionary is tested by being listed."""

import inspect

import torch
from torch import Tensor

from sqvae.likelihoods import LIKELIHOODS, Likelihood, half_circle_directions
from sqvae.quantizers import LATENTS, QUANTIZERS, GaussianQuantizer, Quantizer, class_of, has_layers
from sqvae.quantizers.contract import CodebookQuantizer
from sqvae.quantizers.stochastic import StochasticQuantizer

CODES, DIM, LAYERS = 16, 8, 3
LAYERED = [name for name in QUANTIZERS if has_layers(name)]
SINGLE = [name for name in LATENTS if issubclass(class_of(name), CodebookQuantizer)]
DISCRETE = [*SINGLE, *LAYERED]
RELAXED = [name for name in DISCRETE if class_of(name).relaxes]
STOCHASTIC = [name for name in SINGLE if issubclass(class_of(name), StochasticQuantizer)]
GAUSSIAN = [name for name in STOCHASTIC if issubclass(class_of(name), GaussianQuantizer)]


def build(name: str, *, codes: int = CODES, dim: int = DIM, dtype: torch.dtype = torch.float32, **kwargs) -> Quantizer:
    sizes = {"codebook_size": codes, "dim": dim} if name in DISCRETE else {"dim": dim}
    if name in LAYERED:
        kwargs = {"layers": LAYERS, **kwargs}
    return LATENTS[name](**sizes, **kwargs).to(dtype)


def codes_shape(name: str, *places: int) -> tuple[int, ...]:
    """The shape of the codes for a latent map of these places, the batch included."""
    if name in LAYERED:
        return (*places, LAYERS)
    return places if name in SINGLE else (*places, DIM)


def layers_of(name: str) -> int:
    """The number of codes of each position."""
    return LAYERS if name in LAYERED else 1


def codebooks_of(quantizer: Quantizer) -> list[CodebookQuantizer]:
    """The parts of a quantizer that have a codebook."""
    return [part for part in quantizer.modules() if isinstance(part, CodebookQuantizer)]


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
