"""A trained model, ready for use: pictures to codes and back."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from sqvae.data import Preprocessing
from sqvae.distributions.checks import check_tensor
from sqvae.experiment.assembly import build_model, check_divisible, stride_of
from sqvae.experiment.media import Medium, medium_of
from sqvae.experiment.pretrained import Pretrained, read, with_weights
from sqvae.models import LatentModel
from sqvae.networks import without_batch_norm
from sqvae.training import CheckpointError


@dataclass(frozen=True)
class Tokenizer(Pretrained):
    """A model of pictures with all that is needed to use it. :func:`sqvae.load` makes one.

    It unites the model with the configuration it was trained by, so that pictures are brought to the shape that it
    knows, and codes are not taken for another model's.
    """

    model: LatentModel
    _fast: LatentModel = field(init=False, repr=False)
    """The same model with its normalisations worked into its convolutions: what pictures and codes go through."""

    def __post_init__(self) -> None:
        encoder, decoder = (without_batch_norm(part) for part in (self.model.encoder, self.model.decoder))
        fast = LatentModel(encoder, self.model.quantizer, decoder, self.model.likelihood)
        object.__setattr__(self, "_fast", fast.eval())

    @property
    def preprocessing(self) -> Preprocessing:
        """How pictures are brought to the model's shape."""
        return self.experiment.data.preprocessing

    @property
    def shape(self) -> tuple[int, int, int]:
        """(C, H, W) of its pictures."""
        return self.preprocessing.shape

    @property
    def medium(self) -> Medium:
        """What it turns into codes: pictures, label maps, or grey levels."""
        return medium_of(self.experiment)

    def encode(self, pictures: Tensor) -> Tensor:  # (batch, C, H, W), uint8 or in [0, 1] -> (batch, h, w)
        """The likeliest codes of pictures; or of label maps, integers (batch, H, W)."""
        _ = self.codebook_size
        return self.latents(pictures)

    def latents(self, pictures: Tensor) -> Tensor:  # (batch, C, H, W) -> (batch, h, w), or (batch, dim, ...)
        """The likeliest codes of pictures; or the mean of a continuous latent. They decode to reconstructions."""
        self._check_shape(pictures)
        with torch.inference_mode():
            return self._fast.encode(self.medium.model_input(pictures, self.device))

    def encodings(self, pictures: Tensor) -> Tensor:  # (batch, C, H, W) -> (batch, h, w, dim)
        """What the codes of pictures are chosen by: continuous, before quantization."""
        self._check_shape(pictures)
        _ = self.codebook_size
        with torch.inference_mode():
            return self._fast.encodings(self.medium.model_input(pictures, self.device))

    def decode(self, codes: Tensor) -> Tensor:  # (batch, h, w) -> (batch, C, H, W), in [0, 1]
        """The pictures that codes stand for; or label maps, integers (batch, H, W)."""
        with torch.inference_mode():
            return self.medium.output(self._fast.decode(codes.to(self.device)))

    def reconstruct(self, pictures: Tensor) -> Tensor:  # (batch, C, H, W) -> (batch, C, H, W), in [0, 1]
        """Pictures, or label maps, after a round trip through their codes."""
        self._check_shape(pictures)
        with torch.inference_mode():
            return self.medium.output(self._fast.reconstruct(self.medium.model_input(pictures, self.device)))

    @classmethod
    def from_pretrained(
        cls, name: str | Path, *, device: str | torch.device | None = None, **download: Any
    ) -> "Tokenizer":
        """A tokenizer from a run, a checkpoint's folder, or a model of the Hugging Face hub.

        Arguments:
            name: a path, or OWNER/NAME on the hub.
            device: where to put it; an accelerator where there is one, by default.
            download: passed on to ``huggingface_hub.snapshot_download``: revision, token, cache_dir...
        """
        return load_tokenizer(name, device=device, **download)

    def _check_shape(self, pictures: Tensor) -> None:
        what = f"{self.medium.noun}s"
        check_tensor(pictures, what)
        flat = pictures.ndim == 3 and self.experiment.data.kind == "labels"
        if not flat and (pictures.ndim != 4 or pictures.shape[1] != self.shape[0]):
            wanted = "(batch, height, width)" if what == "label maps" else f"(batch, {self.shape[0]}, height, width)"
            raise ValueError(f"{what} must be {wanted} for this model, got shape {tuple(pictures.shape)}")
        height, width = pictures.shape[-2:]
        check_divisible(height, width, stride_of(self.experiment, self.shape))


def load_tokenizer(name: str | Path, *, device: str | torch.device | None = None, **download: Any) -> Tokenizer:
    """A tokenizer of pictures, label maps or grey levels: see :func:`sqvae.load`."""
    stored = read(name, download)
    experiment = stored.experiment
    if experiment.data.kind == "speech":
        raise CheckpointError(f"{name} is a model of speech, and not of pictures")
    model = build_model(experiment, experiment.data.preprocessing.shape)
    model, mark = with_weights(model, stored.checkpoint, name, device)
    return Tokenizer(model, experiment, mark, stored.history(mark))
