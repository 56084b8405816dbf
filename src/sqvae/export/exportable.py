"""The encoder and the decoder of a tokenizer: what each takes and gives, and what the library makes of the same."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from sqvae.export.programs import Encoding
from sqvae.modality import modality_of
from sqvae.tokenizers import Tokenizer

CPU = torch.device("cpu")

TIES = 1e-4
"""The share of pixels whose class may be another: it is the largest of several scores, and rounding decides where two
are as large."""


@dataclass(frozen=True)
class Slot:
    """What goes into a program, or comes out of it."""

    name: str
    dtype: torch.dtype
    shape: tuple[str | int, ...]
    """A word for each axis of any size."""
    meaning: str


@dataclass(frozen=True)
class Exportable:
    """The encoder or the decoder of a tokenizer, as it is exported."""

    name: str
    module: nn.Module = field(repr=False)
    inputs: tuple[Slot, ...]
    output: Slot
    library: Callable[..., Tensor] = field(repr=False)
    """What the tokenizer itself makes of the same inputs."""
    examples: tuple[tuple[Tensor, ...], ...] = field(repr=False)
    """Inputs of several sizes. The first ones trace the program."""
    sizes: Mapping[str, Any] = field(repr=False)
    """Which sizes an axis may have, by its word."""
    ties: Callable[[tuple[Tensor, ...], Tensor, Tensor], int] = field(repr=False)
    """How many outputs may be others than the library's, for inputs, its outputs, and others: where two are as good."""
    for_onnx: nn.Module | None = field(default=None, repr=False)
    """Takes the module's place where that can't be traced for sequences of any length, but for ONNX it can be."""


def encoder_and_decoder(tokenizer: Tokenizer) -> tuple[Exportable, Exportable]:
    """Encoder and decoder of a tokenizer, on the CPU. A model without codes is an error."""
    _ = tokenizer.codebook_size
    return modality_of(tokenizer.experiment.kind).encoder_and_decoder(tokenizer)


def encoder_for(decoder: Exportable, module: Encoding, library: Callable[..., Tensor]) -> Exportable:
    """The encoder that belongs to a decoder: it is tried on what the decoder makes of its examples."""
    # Copies, since tracing takes no tensors that were made in inference mode.
    examples = tuple((decoder.library(*inputs).clone(),) for inputs in decoder.examples)

    def ties(inputs: tuple[Tensor, ...], codes: Tensor, others: Tensor) -> int:
        return int(module.on_border(inputs[0], codes, others).sum())

    data, codes = decoder.output, decoder.inputs[0]
    return Exportable("encoder", module.eval(), (data,), codes, library, examples, decoder.sizes, ties)


def no_ties(*_: object) -> int:
    """No output may differ from the library's."""
    return 0


def few_ties(inputs: tuple[Tensor, ...], expected: Tensor, found: Tensor) -> int:
    """A small share of the outputs may differ, where two classes score equally."""
    return max(1, int(TIES * found.numel()))


def codes_slot(tokenizer: Tokenizer, *places: str) -> Slot:
    """The slot of codes, with a word for each axis; with layers their number is the last."""
    return Slot("codes", torch.int64, ("batch", *places, *tokenizer.layer_axis), f"0 ... {tokenizer.codebook_size - 1}")


def trial_shapes(*places: int) -> tuple[tuple[int, ...], ...]:
    """Shapes of codes, of several batch sizes and sizes. To trace with one place on an axis would allow no other."""
    own = [max(2, place) for place in places]
    return (2, *own), (1, *(place + axis + 1 for axis, place in enumerate(own))), (12, *own)


def random_codes(tokenizer: Tokenizer, shape: tuple[int, ...]) -> Tensor:
    """Random codes, always the same. What they decode to is as near to the model's data as one gets without it.

    Arguments:
        tokenizer: the model.
        shape: of the codes, without the axis of layers.
    """
    shape = (*shape, *tokenizer.layer_axis)
    return torch.randint(tokenizer.codebook_size, shape, generator=torch.Generator().manual_seed(0))
