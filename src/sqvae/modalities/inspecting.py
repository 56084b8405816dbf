"""The parts of `sqvae inspect` that each kind of data supplies."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from sqvae.config import Experiment
from sqvae.data import Progress
from sqvae.quantizers import Quantized
from sqvae.runs import Announce
from sqvae.tokenizers import Tokenizer


@dataclass(frozen=True)
class Plots:
    """The options for plots."""

    path: Path | None
    """The folder for the plots; None: a folder inside the run."""
    source: str | None
    """A path or the name of a data set; None: the data of the run."""
    codes: int
    """The largest number of codes to show one by one."""
    pictures: int
    """The largest number of held-out examples to use."""
    progress: Progress | None
    announce: Announce


@dataclass(frozen=True)
class Inspection:
    """The functions for an inspection that depend on the kind of data."""

    untrained: Callable[[Experiment], Tokenizer]
    """A tokenizer with initial weights, for a run that has no checkpoint yet."""
    about: Callable[[dict[str, Any], Any], tuple[str, ...]]
    """Lines about the size of an example and of its codes, given the settings and a tokenizer."""
    quantized: Callable[[Any, Any], Quantized]
    """The output of the quantizer for a part of the data."""
    draw: Callable[[Any, Any, str, Plots, Path], tuple[Tensor, str, str]]
    """Draw the meaning of the codes to a file. Returns the codebook usage, the name of the data, and a line about the
    file."""
    atlas: str
    """The name of the file that :attr:`draw` writes."""


def in_layers(layer_axis: tuple[int, ...]) -> str:
    """The words about the number of layers that follow "codes of 64 dimensions"."""
    return "".join(f" in each of {layers} layers" for layers in layer_axis)
