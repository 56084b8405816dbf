"""The two halves of a tokenizer: what each takes and gives, in which sizes, and what the library makes of the same."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim

from sqvae.export.programs import (
    Encoding,
    PictureDecoding,
    PictureEncoding,
    SpeechDecoding,
    SpeechEncoding,
    with_onnx_layers,
)
from sqvae.modalities import Medium, SpeechTokenizer, Tokenizer, map_size
from sqvae.networks.speech import STRIDE
from sqvae.tokenizers import Pretrained, stride_of

CPU = torch.device("cpu")

POSITIONS = 24
"""Of the utterances that a program for speech is traced with, and tried on."""

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
class Half:
    """One half of a tokenizer."""

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


def halves_of(tokenizer: Pretrained) -> tuple[Half, Half]:
    """Encoder and decoder of a tokenizer, on the CPU. A model without codes is an error."""
    _ = tokenizer.codebook_size
    return SPLITTERS.get(tokenizer.experiment.kind, _of_pictures)(tokenizer)


def _of_pictures(tokenizer: Tokenizer) -> tuple[Half, Half]:
    model, medium = deepcopy(tokenizer._fast).to(CPU), tokenizer.medium
    stride = stride_of(tokenizer.experiment, tokenizer.shape)
    rows, columns = Dim("rows", min=1), Dim("columns", min=1)
    decoder = Half(
        "decoder",
        PictureDecoding(model, medium).eval(),
        (_codes_slot(tokenizer, "rows", "columns"),),
        _data_slot(tokenizer, f"height and width are multiples of {stride}"),
        lambda codes: tokenizer.decode(codes).cpu(),
        tuple((_drawn(tokenizer, shape),) for shape in _trials(*map_size(tokenizer))),
        {"rows": rows, "columns": columns, "height": stride * rows, "width": stride * columns},
        _no_ties if tokenizer.experiment.kind == "pictures" else _few_ties,
    )
    encoding = PictureEncoding(model, _as_given if tokenizer.preprocessing.labels else partial(_on_cpu, medium))
    return _encoder(decoder, encoding, lambda pictures: tokenizer.encode(pictures).cpu()), decoder


def _of_speech(tokenizer: SpeechTokenizer) -> tuple[Half, Half]:
    model, voices = deepcopy(tokenizer._fast).to(CPU), tokenizer.speakers
    positions = Dim("positions", min=1)
    order = f"0 ... {len(voices) - 1}, who speaks: a place in the list of speakers"
    frames = ("batch", "frames", tokenizer.features.mels)

    def decode(codes: Tensor, speakers: Tensor) -> Tensor:
        return torch.stack(tokenizer.decode(list(codes), [voices[number] for number in speakers.tolist()]))

    decoder = Half(
        "decoder",
        SpeechDecoding(model, model.decoder).eval(),
        (_codes_slot(tokenizer, "positions"), Slot("speakers", torch.int64, ("batch",), order)),
        Slot("frames", torch.float32, frames, f"log-mel frames in dB, {STRIDE} to a code: their number is even"),
        decode,
        tuple((_drawn(tokenizer, shape), torch.arange(shape[0]) % len(voices)) for shape in _trials(POSITIONS)),
        {"positions": positions, "frames": STRIDE * positions},
        _no_ties,
        for_onnx=SpeechDecoding(model, with_onnx_layers(model.decoder)).eval(),
    )
    return _encoder(
        decoder, SpeechEncoding(model), lambda frames: torch.stack(tokenizer.encode_frames(list(frames)))
    ), decoder


def _encoder(decoder: Half, module: Encoding, library: Callable[..., Tensor]) -> Half:
    """The other half: it takes what the decoder gives, and is tried on what that makes of its own examples."""
    # Copies, since tracing takes no tensors that were made in inference mode.
    examples = tuple((decoder.library(*inputs).clone(),) for inputs in decoder.examples)

    def ties(inputs: tuple[Tensor, ...], codes: Tensor, others: Tensor) -> int:
        return int(module.on_border(inputs[0], codes, others).sum())

    data, codes = decoder.output, decoder.inputs[0]
    return Half("encoder", module.eval(), (data,), codes, library, examples, decoder.sizes, ties)


def _no_ties(*_: object) -> int:
    return 0


def _few_ties(inputs: tuple[Tensor, ...], expected: Tensor, found: Tensor) -> int:
    return max(1, int(TIES * found.numel()))


def _codes_slot(tokenizer: Pretrained, *places: str) -> Slot:
    return Slot("codes", torch.int64, ("batch", *places), f"0 ... {tokenizer.codebook_size - 1}")


def _data_slot(tokenizer: Tokenizer, sides: str) -> Slot:
    wanted = tokenizer.preprocessing
    if not wanted.labels:
        shape = ("batch", tokenizer.shape[0], "height", "width")
        return Slot("pictures", torch.float32, shape, f"between 0 and 1; {sides}")
    nothing = "" if wanted.ignore is None else f", and {wanted.ignore} where nothing is known"
    classes = f"the class of each pixel, 0 ... {(wanted.classes or 1) - 1}{nothing}"
    return Slot("labels", torch.int64, ("batch", "height", "width"), f"{classes}; {sides}")


def _trials(*places: int) -> tuple[tuple[int, ...], ...]:
    """Shapes of codes, of several batch sizes and sizes. To trace with one place on an axis would allow no other."""
    own = [max(2, place) for place in places]
    return (2, *own), (1, *(place + axis + 1 for axis, place in enumerate(own))), (12, *own)


def _drawn(tokenizer: Pretrained, shape: tuple[int, ...]) -> Tensor:
    """Random codes, always the same. What they decode to is as near to the model's data as one gets without it."""
    return torch.randint(tokenizer.codebook_size, shape, generator=torch.Generator().manual_seed(0))


def _as_given(x: Tensor) -> Tensor:
    return x


def _on_cpu(medium: Medium, x: Tensor) -> Tensor:
    return medium.model_input(x, CPU)


SPLITTERS: Mapping[str, Callable[[Any], tuple[Half, Half]]] = {"speech": _of_speech}
"""Who knows a tokenizer's halves, by what it is about, where those of pictures are not meant."""
