"""What a configuration claims of a model, held against its weights before memory is taken for it."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from sqvae.quantizers.stochastic import StochasticQuantizer
from sqvae.training import CheckpointError

Model = TypeVar("Model", bound=nn.Module)

TIMES, SPARE = 4, 2**24
"""What building a model may take: so many times the numbers that its weights are, and so many more."""

PARTS = 64
"""And so many tensors more than so many times theirs."""

NAMED = 3
"""So many tensors that differ are named."""


class _TooMuchError(Exception):
    """A model takes more than its weights do."""


def built(make: Callable[[], Model], weights: Mapping[str, Tensor], name: str | Path) -> Model:
    """A model for the weights that there are. One that they are too few for is refused while it is being built.

    So whatever sizes a configuration claims, what it takes to refuse them is bounded by the size of the weights.

    Arguments:
        make: builds the model that the configuration describes.
        name: of the model, for the message.
    """
    try:
        with _Bounded(weights):
            model = make()
    except _TooMuchError:
        numbers = sum(tensor.numel() for tensor in weights.values())
        raise CheckpointError(
            f"the weights of {name} don't fit its configuration, which describes a far larger model than these "
            f"{len(weights)} tensors of {numbers:,} numbers are"
        ) from None
    except (RuntimeError, OverflowError, TypeError, MemoryError) as failure:  # a size that no tensor can have
        raise CheckpointError(f"the configuration of {name} describes no model that can be built: {failure}") from None
    differences = list(_differences({**model.state_dict(), **_state_of_training(model, weights)}, weights))
    if differences:
        more = f"; and {len(differences) - NAMED} more" if len(differences) > NAMED else ""
        raise CheckpointError(
            f"the weights of {name} don't fit its configuration: {'; '.join(differences[:NAMED])}{more}"
        )
    return model


def _state_of_training(model: nn.Module, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What quantizers keep besides their parameters once training has come so far, where the weights have it."""
    found = {}
    for name, module in model.named_modules():
        if isinstance(module, StochasticQuantizer) and (key := f"{name}.usage") in weights:
            found[key] = module.codebook[:, 0]
    return found


def _differences(claimed: Mapping[str, Tensor], there: Mapping[str, Tensor]) -> Iterator[str]:
    for key in sorted({*claimed, *there}):
        if key not in there:
            yield f"{key} is missing"
        elif key not in claimed:
            yield f"{key} has no place in the model"
        elif claimed[key].shape != there[key].shape:
            yield f"{key} is {tuple(there[key].shape)}, and the configuration says {tuple(claimed[key].shape)}"


class _Bounded(TorchFunctionMode):
    """Within the block, tensors are made only as far as a model with such weights has a use for."""

    def __init__(self, weights: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.numbers = SPARE + TIMES * sum(tensor.numel() for tensor in weights.values())
        self.tensors = PARTS + TIMES * len(weights)

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function in MAKERS:
            self.numbers -= math.prod(_size(function, args or (kwargs or {}).get("size", ())))
            self.tensors -= 1
            if self.numbers < 0 or self.tensors < 0:
                raise _TooMuchError
        return function(*args, **(kwargs or {}))


MAKERS = (torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn, torch.eye)
"""What makes tensors in the networks' and the quantizers' constructors."""


def _size(function: Any, args: Sequence[Any]) -> Sequence[int]:
    """Of a tensor that is being made: its sizes one by one, or all at once."""
    if function is torch.eye:
        return (args[0], args[-1])
    return args[0] if args and not isinstance(args[0], int) else args
