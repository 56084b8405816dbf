"""A trained model, ready for use: pictures to codes and back."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from sqvae.data import ImageProcessor, Preprocessing
from sqvae.data.processing import Images
from sqvae.distributions.checks import check_tensor
from sqvae.modalities.images.assembly import build_model, check_divisible, map_sizes_of, sides_of
from sqvae.modalities.images.media import medium_of
from sqvae.modalities.medium import Medium
from sqvae.models import HierarchicalModel, LatentModel
from sqvae.networks import without_batch_norm
from sqvae.tokenizers import Stored, Tokenizer, with_weights

AT_ONCE = 64
"""How many pictures go through a model together, where they come one by one."""

Codes: TypeAlias = Tensor | NDArray[Any] | Sequence[Any]
"""Whole numbers, as a tensor, an array or lists."""


class ImageTokenizer(Tokenizer):
    """A trained model of images, label maps or grey levels. :func:`sqvae.load` makes one."""

    def _folded(self) -> LatentModel | HierarchicalModel:
        folded: LatentModel | HierarchicalModel = self.model.with_networks(without_batch_norm)
        return folded

    @property
    def preprocessing(self) -> Preprocessing:
        """How pictures are brought to the model's shape."""
        return self.experiment.data.preprocessing

    @property
    def preprocess(self) -> ImageProcessor:
        """What brings images to the model's shape: call it with one or several, as PIL images, paths or arrays."""
        return ImageProcessor(self.preprocessing)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(C, H, W) of its pictures."""
        return self.preprocessing.shape

    @property
    def map_shape(self) -> tuple[int, int]:
        """(h, w) of its pictures' codes, or of those of the finest level."""
        return self.map_shapes[-1]

    @property
    def map_shapes(self) -> list[tuple[int, int]]:
        """(h, w) of its pictures' codes for each level, the coarsest first."""
        return map_sizes_of(self.experiment, self.shape)

    @property
    def medium(self) -> Medium:
        """What it turns into codes: pictures, label maps, or grey levels."""
        return medium_of(self.experiment)

    @property
    def code_shape(self) -> tuple[int, ...]:
        """(h, w) of its pictures' codes, or (h, w, layers). A model with several levels has :attr:`map_shapes`."""
        self.check_one_level("this needs")
        return (*self.map_shape, *self.layer_axis)

    def encode(self, pictures: Images, *, layers: int | None = None) -> Any:  # -> (batch, h, w)
        """The likeliest codes of pictures, or of label maps: those that ``sqvae encode`` gives for the same files.

        Arguments:
            pictures: PIL images, paths or arrays, one or a list of any of them, of any sizes: :attr:`preprocess` brings
                them to the model's shape. Or a tensor that has it: (batch, C, H, W), uint8 or floats in [0, 1], and
                for label maps integers, (batch, H, W). It is taken as it is.
            layers: of a model with layers, whose codes are (batch, h, w, layers), only the first of them.

        Returns:
            a tensor; or of a model with several levels a tuple with one for each, the coarsest first, because levels
            differ in the number of positions.
        """
        _ = self.codebook_size
        if layers is not None:
            self.check_one_level(f"layers={layers} is for")
        codes = self.latents(pictures)
        return codes if layers is None else self.first_layers(codes, layers)

    def latents(self, pictures: Images) -> Any:  # -> (batch, h, w), or (batch, dim, ...)
        """The likeliest codes of pictures, as :meth:`encode` returns them; or the mean of a continuous latent. They
        decode to reconstructions."""
        return self._through(self.inference_model.encode, pictures)

    def encodings(self, pictures: Images) -> Any:  # -> (batch, h, w, dim)
        """What the codes of pictures are chosen by: continuous, before quantization. With several levels a tuple."""
        _ = self.codebook_size
        return self._through(self.inference_model.encodings, pictures)

    def decode(self, codes: Codes) -> Tensor:  # (batch, h, w) -> (batch, C, H, W), in [0, 1]
        """The pictures that codes stand for; or label maps, integers (batch, H, W).

        Arguments:
            codes: a tensor, an array or lists of whole numbers, (batch, h, w); or (h, w), of one picture. With layers
                (batch, h, w, n) or (h, w, n), of the first n layers. With several levels one such tensor for each, the
                coarsest first, or for the first n: see :meth:`sqvae.HierarchicalModel.decode`.
        """
        if self.levels > 1:
            return self._decode_levels(codes)
        latents = codes if isinstance(codes, Tensor) else _as_tensor(codes)
        if self.is_discrete:
            axes = 1 + len(self.code_shape)
            latents = latents.unsqueeze(0) if latents.ndim == axes - 1 else latents
            if latents.ndim != axes:
                one = "h, w" if self.layers is None else "h, w, layers"
                raise ValueError(f"codes must be (batch, {one}), or ({one}) of one picture; got shape {_shape(codes)}")
        with torch.inference_mode():
            return self.medium.output(self.inference_model.decode(latents.to(self.device)))

    def reconstruct(
        self, pictures: Images, *, layers: int | None = None, levels: int | None = None
    ) -> Tensor:  # -> (batch, C, H, W), in [0, 1]
        """Pictures, or label maps, after a round trip through their codes. It takes what :meth:`encode` takes.

        Arguments:
            pictures, layers: see :meth:`encode`.
            levels: of a model with several levels of codes, decode only the coarsest so many; None: all.
        """
        levels = self.checked_levels(levels)
        if levels is not None and self.levels > 1:
            return self.decode(self.encode(pictures, layers=layers)[:levels])
        if layers is not None:
            return self.decode(self.encode(pictures, layers=layers))
        return self.medium.output(self._through(self.inference_model.reconstruct, pictures))

    def images(self, pictures: Tensor) -> list[Image.Image]:  # (batch, C, H, W), in [0, 1], or (batch, H, W)
        """What :meth:`decode` and :meth:`reconstruct` give, as images to look at and to save."""
        check_tensor(pictures, f"{self.medium.noun}s")
        labels = self.preprocessing.labels
        if pictures.ndim != (3 if labels else 4):
            wanted = "(batch, height, width)" if labels else f"(batch, {self.shape[0]}, height, width)"
            raise ValueError(
                f"{self.medium.noun}s must be {wanted}, as decode and reconstruct give them; got shape "
                f"{tuple(pictures.shape)}: one alone is x[None]"
            )
        return list(self.medium.images(pictures))

    def _decode_levels(self, codes: Any) -> Tensor:
        """The pictures that the codes of the first levels stand for."""
        wanted = f"codes must be one tensor for each of {self.levels} levels, or for the first of them, (batch, h, w)"
        if isinstance(codes, Tensor) or not 1 <= len(codes) <= self.levels:
            raise ValueError(f"{wanted}; got {'one tensor' if isinstance(codes, Tensor) else f'{len(codes)} of them'}")
        given = [own if isinstance(own, Tensor) else _as_tensor(own) for own in codes]
        axes = 3 + len(self.layer_axis)
        shapes = [tuple(own.shape) for own in given]
        fits = all(len(shape) == axes for shape in shapes) and all(
            shape[:3] == (above[0], 2 * above[1], 2 * above[2]) for above, shape in pairwise(shapes)
        )
        if not fits:
            raise ValueError(
                f"{wanted}, each with twice the height and width of the level above it; got shapes "
                f"{', '.join(map(str, shapes))}"
            )
        number, (batch, rows, columns, *layers) = len(given), given[0].shape
        for level in range(number, self.levels):  # of what is not decoded, only the number of positions counts
            given.append(given[0].new_zeros(batch, rows << level, columns << level, *layers))
        with torch.inference_mode():
            moved = [own.to(self.device) for own in given]
            return self.medium.output(self.inference_model.decode(moved, levels=number))

    def _through(self, work: Callable[[Tensor], Any], pictures: Images) -> Any:
        """What a part of the model makes of pictures: of a tensor at once, of others a few at a time."""
        if isinstance(pictures, Tensor):
            one = pictures.ndim == 3 and self.experiment.data.kind != "labels"
            batches = (pictures.unsqueeze(0) if one else pictures,)
        else:
            batches = self.preprocess(pictures).split(AT_ONCE)
        for batch in batches:
            self._check_shape(batch)
        with torch.inference_mode():
            made = [work(self.medium.model_input(batch, self.device)) for batch in batches]
        if len(made) == 1:
            return made[0]
        return torch.cat(made) if isinstance(made[0], Tensor) else tuple(map(torch.cat, zip(*made, strict=True)))

    def _check_shape(self, pictures: Tensor) -> None:
        what = f"{self.medium.noun}s"
        check_tensor(pictures, what)
        flat = pictures.ndim == 3 and self.experiment.data.kind == "labels"
        if not flat and (pictures.ndim != 4 or pictures.shape[1] != self.shape[0]):
            wanted = "(batch, height, width)" if what == "label maps" else f"(batch, {self.shape[0]}, height, width)"
            raise ValueError(f"{what} must be {wanted} for this model, got shape {tuple(pictures.shape)}")
        height, width = pictures.shape[-2:]
        check_divisible(height, width, sides_of(self.experiment, self.shape))


def _as_tensor(codes: NDArray[Any] | Sequence[Any]) -> Tensor:
    rows = codes if isinstance(codes, np.ndarray) else _stacked(codes)
    if rows.dtype.kind not in "iuf":
        raise TypeError(f"codes must be whole numbers, (batch, h, w); got {rows.dtype} from {type(codes).__name__}")
    return torch.from_numpy(rows.astype(np.int64 if rows.dtype.kind in "iu" else np.float32))


def _stacked(codes: Sequence[Any]) -> NDArray[Any]:
    try:
        return np.asarray([one.cpu().numpy() if isinstance(one, Tensor) else one for one in codes])
    except (TypeError, ValueError):
        raise ValueError("codes must be (batch, h, w), and those of all pictures of one shape") from None


def _shape(codes: Codes) -> tuple[int, ...]:
    return tuple(codes.shape if isinstance(codes, Tensor) else np.shape(codes))


def load_tokenizer(name: str | Path, *, device: str | torch.device | None = None, **download: Any) -> ImageTokenizer:
    """A tokenizer of images, label maps or grey levels: see :func:`sqvae.load`."""
    return ImageTokenizer.from_pretrained(name, device=device, **download)


def tokenizer_of(stored: Stored, name: str | Path, device: str | torch.device | None) -> ImageTokenizer:
    """A tokenizer from a stored model."""
    experiment = stored.experiment
    make = partial(build_model, experiment, experiment.data.preprocessing.shape)
    model, mark = with_weights(make, stored.checkpoint, name, device)
    return ImageTokenizer(model, experiment, mark, stored.history(mark))
