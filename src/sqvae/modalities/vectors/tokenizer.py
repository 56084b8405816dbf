"""A trained model of vectors, ready for use: vectors to ids and back."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sqvae.distributions.checks import check_tensor
from sqvae.modalities.vectors.data import build_model, medium_of, network_of
from sqvae.modalities.vectors.files import read_vectors
from sqvae.modalities.vectors.medium import VectorMedium
from sqvae.models import LatentModel
from sqvae.tokenizers import Stored, Tokenizer, with_weights

AT_ONCE = 4096
"""The number of vectors that go through a model together."""

Vectors: TypeAlias = Tensor | NDArray[Any] | str | Path | Sequence[Sequence[float]]
"""(batch, values), as a tensor, an array or lists; or a file of them."""


class VectorTokenizer(Tokenizer):
    """A trained model of vectors. :func:`sqvae.load` makes one."""

    model: LatentModel

    def _folded(self) -> LatentModel:
        return self.model  # nothing in these networks can be folded

    @property
    def medium(self) -> VectorMedium:
        """How its vectors are compared and shown."""
        return medium_of(self.model)

    @property
    def shape(self) -> tuple[int]:
        """(values,) of its vectors."""
        return (len(self.medium.offset),)

    @property
    def map_shape(self) -> tuple[int]:
        """(codes,) of a vector's id."""
        return (network_of(self.experiment).codes,)

    @property
    def code_shape(self) -> tuple[int, ...]:
        """(codes,) of a vector's id, or (codes, layers)."""
        return (*self.map_shape, *self.layer_axis)

    def encode(self, vectors: Vectors, *, layers: int | None = None) -> Tensor:  # (batch, values) -> (batch, codes)
        """The likeliest codes of vectors: their ids.

        Arguments:
            vectors: (batch, values), or one of them, (values,); or a path of a file of vectors.
            layers: of a model with layers, whose ids are (batch, codes, layers), only the first of them.
        """
        _ = self.codebook_size
        return self.first_layers(self._through(self.inference_model.encode, vectors), layers)

    def encodings(self, vectors: Vectors) -> Tensor:  # (batch, values) -> (batch, codes, dim)
        """What codes are chosen by: continuous, before quantization."""
        return self._through(self.inference_model.encodings, vectors)

    def reconstruct(self, vectors: Vectors, *, layers: int | None = None) -> Tensor:  # -> (batch, values)
        """Vectors after a round trip through their codes."""
        if layers is not None:
            return self.decode(self.encode(vectors, layers=layers))
        return self._through(self.inference_model.reconstruct, vectors)

    def decode(self, codes: Tensor | NDArray[Any] | Sequence[Any]) -> Tensor:  # (batch, codes) -> (batch, values)
        """The vectors that ids stand for: (batch, codes), or (codes,) of one vector."""
        ids = torch.as_tensor(codes)
        if self.is_discrete:
            axes = 1 + len(self.code_shape)
            ids = ids.unsqueeze(0) if ids.ndim == axes - 1 else ids
            if ids.ndim != axes or ids.shape[1] != self.map_shape[0]:
                wanted = ", ".join(["batch", str(self.map_shape[0]), *("layers" for _ in self.layer_axis)])
                raise ValueError(f"codes must be ({wanted}) for this model, got {tuple(ids.shape)}")
            ids = ids.long()
        with torch.inference_mode():
            decoded: Tensor = self.inference_model.decode(ids.to(self.device))
            return decoded

    def _through(self, work: Any, vectors: Vectors) -> Tensor:
        rows = self._rows(vectors)
        check_tensor(rows, "vectors")
        rows = rows.unsqueeze(0) if rows.ndim == 1 else rows
        if not len(rows):
            raise ValueError("there are no vectors: give at least one")
        medium = self.medium
        with torch.inference_mode():
            return torch.cat([work(medium.model_input(part, self.device)) for part in rows.split(AT_ONCE)])

    def _rows(self, vectors: Vectors) -> Tensor:
        if isinstance(vectors, str | Path):
            return read_vectors(vectors).rows
        return vectors if isinstance(vectors, Tensor) else torch.from_numpy(np.asarray(vectors, np.float32))


def tokenizer_of(stored: Stored, name: str | Path, device: str | torch.device | None) -> VectorTokenizer:
    """A tokenizer from a stored model."""
    model, mark = with_weights(partial(build_model, stored.experiment), stored.checkpoint, name, device)
    return VectorTokenizer(model, stored.experiment, mark, stored.history(mark))
