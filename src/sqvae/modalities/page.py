"""The parts of a run's page that each kind of data supplies."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from sqvae.data import Progress
from sqvae.modalities.views import CodedExample
from sqvae.reports.codes import Pixels, Span
from sqvae.reports.run_codebook import Heard
from sqvae.runs import Generator


@dataclass(frozen=True)
class PageView:
    """The functions and texts for a run's page that depend on the kind of data."""

    view: Callable[[Any, Any, int, Generator | None], tuple[str, CodedExample]]
    """The name of an example, given its index in a set, and the example with its codes and its reconstruction."""
    code_images: Callable[[Any, Tensor], Tensor]
    """The image that each code decodes to by itself: (n,) -> uint8 (n, 3, P, Q)."""
    samples: Callable[[Any, Generator | None, Any], list[str]]
    """Samples of the prior and an interpolation, as HTML, given the prior and held-out examples if there are any."""
    unit_spectra: Callable[[Any, Any, str, Progress], Heard | None]
    """The mean spectrum of each unit of speech on held-out data; None for other data."""
    mean_patches: Callable[[Any, Any, int, Progress], tuple[Tensor, Tensor] | None]
    """The most used codes, (n,), and the mean image patch at the positions of each, uint8 (n, 3, P, P); None except for
    images."""
    tile_caption: str
    """The explanation of the images of single codes."""
    span: Callable[[Any, CodedExample], Span | None]
    """The number of codes and the duration of an example, for codes that are a sequence in time; else None."""
    sounds: Callable[[Any, Any, int, CodedExample], tuple[tuple[str, bytes], ...]]
    """The sound of an example and of its reconstruction, as FLAC with titles; empty except for speech."""


def pixels_of(image: Tensor) -> Pixels:  # uint8 (3, H, W) -> (H, W, 3)
    """An image in the layout that pages expect."""
    pixels: Pixels = image.permute(1, 2, 0).contiguous().cpu().numpy()
    return pixels
