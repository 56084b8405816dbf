"""Conversion of images in Python (PIL images, paths, arrays, tensors) to the input of a model."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from sqvae.data.collection import Skipped, UnreadablePictureError
from sqvae.data.decoding import Stored, decode, open_picture
from sqvae.data.preprocessing import Preprocessing
from sqvae.data.readers.arrays import Layout
from sqvae.data.sources import beside
from sqvae.data.threads import in_order

ImageLike: TypeAlias = Image.Image | str | Path | NDArray[Any] | Tensor
"""An image, its path, or its pixels."""

Images: TypeAlias = ImageLike | Sequence[ImageLike]
"""One image, or several of any sizes; an array or a tensor may be a batch."""

_LAYOUTS = (
    "(height, width), or (height, width, channels) with 1, 3 or 4 channels; a batch of grey images is (batch, height, "
    "width, 1)"
)


@dataclass(frozen=True)
class ImageProcessor:
    """Converts images to the input of a model, exactly as the command line does.

    ``tokenizer.preprocess`` is one. It contains no model, so it can be sent to the workers of a data loader.

    >>> ImageProcessor(Preprocessing(size=64, channels=3))(["cat.jpg", "dog.png"]).shape          # doctest: +SKIP
    torch.Size([2, 3, 64, 64])

    Arguments:
        preprocessing: how images become arrays, with everything decided.
    """

    preprocessing: Preprocessing

    def __post_init__(self) -> None:
        if not self.preprocessing.resolved:
            raise ValueError(
                f"size and channels must be known, and classes for label maps; got {self.preprocessing}. "
                "sqvae.data.load decides them from data"
            )

    def __call__(self, images: Images) -> Tensor:  # -> (batch, C, H, W)
        """Images or label maps as uint8; labels of more than 256 classes, or -1, as 16 bits. One image is a batch of 1.

        Arguments:
            images: PIL images, paths, arrays or tensors, one or a list of any of them. Arrays are (height, width) or
                (height, width, channels), tensors (channels, height, width); both may have a batch axis in front.
                They contain uint8, or floats in [0, 1]; label maps contain integers, (height, width).
        """
        apart = list(enumerate(_apart(images, self.preprocessing.labels)))
        if not apart:
            raise ValueError(f"there are no {self._noun}s: pass at least one")
        pixels = [self._pixels(apart[0])] if len(apart) == 1 else list(in_order(self._pixels, apart))
        return torch.from_numpy(np.stack(pixels))

    @property
    def _noun(self) -> str:
        return "label map" if self.preprocessing.labels else "image"

    def _pixels(self, item: tuple[int, Any]) -> Stored:  # -> (C, H, W)
        index, given = item
        name = str(given) if isinstance(given, str | Path) else f"{self._noun} {index}"
        try:
            with _opened(given, name, self.preprocessing.labels) as image:
                return decode(image, self.preprocessing)[0]
        except (FileNotFoundError, TypeError):
            raise
        except Exception as broken:
            # Damaged files can make Pillow raise almost any exception.
            raise UnreadablePictureError(Skipped(name, str(broken) or type(broken).__name__)) from broken


def _apart(images: Any, labels: bool) -> Iterator[Any]:
    """Yield each image separately."""
    if isinstance(images, Image.Image | str | Path):
        yield images
    elif isinstance(images, np.ndarray | Tensor):
        single = (2,) if labels else (2, 3)
        yield from [images] if images.ndim in single or (1 in images.shape[2:] and images.ndim == 3) else images
    elif isinstance(images, Sequence):
        yield from images
    else:
        raise TypeError(f"expected PIL images, paths, arrays or tensors, or a list of them; got {_type(images)}")


def _opened(given: Any, name: str, labels: bool) -> Any:
    """A context manager that gives the image, and closes it if it was opened here."""
    if isinstance(given, str | Path):
        path = Path(given).expanduser()
        if not path.exists():
            near = beside(path)
            raise FileNotFoundError(f"there is no file {path}{f'; did you mean {near[0]}?' if near else ''}")
        if path.is_dir():
            raise ValueError("it is a folder; pass its files, or all of it to sqvae.encode_to_file")
        return open_picture(path)
    if isinstance(given, Image.Image):
        return _Borrowed(given)
    if isinstance(given, np.ndarray | Tensor):
        return _from_numbers(given, name, labels)
    raise TypeError(f"{name} must be a PIL image, a path, an array or a tensor; got {_type(given)}")


class _Borrowed:
    """A context manager for the caller's image, which stays open."""

    def __init__(self, image: Image.Image) -> None:
        self._image = image

    def __enter__(self) -> Image.Image:
        return self._image

    def __exit__(self, *failure: object) -> None: ...


def _from_numbers(given: NDArray[Any] | Tensor, name: str, labels: bool) -> Image.Image:
    array = given if isinstance(given, np.ndarray) else _as_array(given)
    ends = [axis for axis in (2, 0) if array.ndim == 3 and array.shape[axis] == 1]
    array = array.squeeze(ends[0]) if ends else array
    if array.ndim == 3 and array.shape[2] == 4 and array.dtype == np.uint8 and not labels:
        return Image.fromarray(np.ascontiguousarray(array), "RGBA")
    if array.ndim != 2 and (labels or array.ndim != 3 or not {array.shape[0], array.shape[2]} & {3}):
        wanted = "(height, width)" if labels else _LAYOUTS
        raise ValueError(f"it has the shape {tuple(given.shape)}, but must be {wanted}")
    layout = Layout("it", (1, *array.shape), array.dtype, labels, one=True)
    layout.check_range([array])
    return Image.fromarray(layout.picture(array))


def _as_array(tensor: Tensor) -> NDArray[Any]:
    """(C, H, W) as (H, W, C)."""
    values = tensor.detach().cpu()
    values = values.float() if values.is_floating_point() else values
    return (values.movedim(0, -1) if values.ndim == 3 else values).numpy()


def _type(value: object) -> str:
    return type(value).__name__
