"""What `sqvae inspect` says and draws of a run's data, whatever the kind."""

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
    """Which plots are wanted."""

    path: Path | None
    """The folder that they go to; None for the run's own."""
    source: str | None
    """The data; None for the run's own."""
    codes: int
    """How many codes to show one by one,"""
    pictures: int
    """on how many held-out pictures at most."""
    progress: Progress | None
    announce: Announce


@dataclass(frozen=True)
class Inspection:
    """The parts of an inspection that depend on the kind of data."""

    untrained: Callable[[Experiment], Tokenizer]
    about: Callable[[dict[str, Any], Any], tuple[str, ...]]
    quantized: Callable[[Any, Any], Quantized]
    """What the quantizer makes of some of the data."""
    draw: Callable[[Any, Any, str, Plots, Path], tuple[Tensor, str, str]]
    """Draw what codes stand for; returns how often each was taken, on what, and a line about the drawing."""
    atlas: str
    """The drawing's name."""
