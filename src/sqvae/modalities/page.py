"""What the page about a run shows of its data, whatever the kind."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from sqvae.data import Progress
from sqvae.modalities.views import Seen
from sqvae.reports.codes import Pixels, Span
from sqvae.reports.run_codebook import Heard
from sqvae.runs import Generator


@dataclass(frozen=True)
class PageView:
    """The parts of the page about a run that depend on the kind of data."""

    see: Callable[[Any, Any, int, Generator | None], tuple[str, Seen]]
    """An example of a set by its index, under its name."""
    alone: Callable[[Any, Tensor], Tensor]
    """What codes draw: (n,) -> uint8 (n, 3, P, Q)."""
    made: Callable[[Any, Generator | None, Any], list[str]]
    """What the model makes, with its prior and with held-out examples, if there are any, as HTML."""
    heard: Callable[[Any, Any, str, Progress], Heard | None]
    """What is heard where units are taken."""
    seen: Callable[[Any, Any, int, Progress], tuple[Tensor, Tensor] | None]
    """So many of the codes that are used most, (n,), and what is seen where each is taken, uint8 (n, 3, P, P)."""
    drawn: str
    """How to read what a code draws alone."""
    span: Callable[[Any, Seen], Span | None]
    """What an example's codes cover, where they are a sequence."""
    sounds: Callable[[Any, Any, int, Seen], tuple[tuple[str, bytes], ...]]
    """An example and its reconstruction by their names, as FLAC, where they can be listened to."""


def pixels_of(picture: Tensor) -> Pixels:  # uint8 (3, H, W) -> (H, W, 3)
    """A picture as pages take it."""
    pixels: Pixels = picture.permute(1, 2, 0).contiguous().cpu().numpy()
    return pixels
