"""A tokenizer's networks as programs of tensors alone, to be traced."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import deepcopy

import torch
from torch import Tensor, nn

from sqvae.modalities import Medium
from sqvae.models import LatentModel, SpeechModel
from sqvae.models.autoencoder import encodings_of
from sqvae.networks.onnx_gru import OnnxGRU
from sqvae.networks.speech import CONTEXT, SpeechDecoder

BORDER = 1e-5
"""An encoding lies on the border of two codes if so little of its own length takes it across."""


class Encoding(nn.Module, ABC):
    """Data to codes."""

    def __init__(self, model: LatentModel | SpeechModel) -> None:
        super().__init__()
        self.encoder, self.quantizer = model.encoder, model.quantizer

    @abstractmethod
    def encoded(self, x: Tensor) -> Tensor | tuple[Tensor, Tensor]:  # -> (batch, dim, ...), once or twice
        """What the encoder makes of data."""

    def encodings(self, x: Tensor) -> tuple[Tensor, Tensor | None]:  # -> (batch, ..., dim), twice
        """What codes are chosen by, and the log-variance that some quantizers weigh it with."""
        z, log_variance = encodings_of(self.encoded(x), self.quantizer)
        return z.movedim(1, -1), None if log_variance is None else log_variance.movedim(1, -1)

    def forward(self, x: Tensor) -> Tensor:  # -> (batch, ...)
        z, log_variance = self.encodings(x)
        return self.quantizer.encode(z, log_variance=log_variance, channel_first=False)

    @torch.no_grad()
    def on_border(self, x: Tensor, codes: Tensor, others: Tensor) -> Tensor:  # (batch, ...), twice -> (n,)
        """Of the positions where two sets of codes differ, which are so near to the border that either may be right."""
        differ = codes != others
        z, log_variance = self.encodings(x)
        rows = z[differ]
        one, other = self.quantizer.decode(torch.stack((codes, others))[:, differ], channel_first=False)
        # Straight towards the other code: whatever the dimensions weigh, that makes it likelier against the first.
        across = torch.nn.functional.normalize(other - one, dim=-1)
        weighed = None if log_variance is None else log_variance[differ]
        moved = rows + BORDER * rows.norm(dim=-1, keepdim=True) * across
        return self.quantizer.encode(moved, log_variance=weighed, channel_first=False) == others[differ]


class PictureEncoding(Encoding):
    """Pictures, label maps or grey levels to codes."""

    def __init__(self, model: LatentModel, model_input: Callable[[Tensor], Tensor]) -> None:
        super().__init__(model)
        self.likelihood = model.likelihood
        self.model_input = model_input

    def encoded(self, x: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        encoded: Tensor | tuple[Tensor, Tensor] = self.encoder(self.likelihood.embed(self.model_input(x)))
        return encoded


class PictureDecoding(nn.Module):
    """Codes to pictures, label maps or grey levels."""

    def __init__(self, model: LatentModel, medium: Medium) -> None:
        super().__init__()
        self.quantizer, self.decoder, self.likelihood = model.quantizer, model.decoder, model.likelihood
        self.medium = medium

    def forward(self, codes: Tensor) -> Tensor:  # (batch, h, w) -> (batch, C, H, W)
        return self.medium.output(self.likelihood.predict(self.decoder(self.quantizer.decode(codes))))


class SpeechEncoding(Encoding):
    """Frames to codes. All utterances of a batch have one length, so none has to be masked."""

    offset: Tensor
    scale: Tensor

    def __init__(self, model: SpeechModel) -> None:
        super().__init__(model)
        self.register_buffer("offset", model.offset)
        self.register_buffer("scale", model.scale)

    def encoded(self, x: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        first, last = x[:, :1].expand(-1, CONTEXT, -1), x[:, -1:].expand(-1, CONTEXT, -1)
        frames = (torch.cat((first, x, last), 1) - self.offset) / self.scale
        encoded: Tensor | tuple[Tensor, Tensor] = self.encoder(frames.mT)
        return encoded


class SpeechDecoding(nn.Module):
    """Codes to frames, in speakers' voices."""

    offset: Tensor
    scale: Tensor

    def __init__(self, model: SpeechModel, decoder: nn.Module) -> None:
        super().__init__()
        self.quantizer, self.decoder, self.likelihood = model.quantizer, decoder, model.likelihood
        self.register_buffer("offset", model.offset)
        self.register_buffer("scale", model.scale)

    def forward(self, codes: Tensor, speakers: Tensor) -> Tensor:  # (batch, n), (batch,) -> (batch, 2n, mels)
        output = self.decoder(self.quantizer.decode(codes), speakers)
        return self.likelihood.predict(output) * self.scale + self.offset


def with_onnx_layers(decoder: SpeechDecoder) -> nn.Module:
    """A decoder of speech, to be traced for ONNX alone: for any length."""
    decoder = deepcopy(decoder)
    decoder.recurrent = OnnxGRU(decoder.recurrent)  # type: ignore[assignment]
    return decoder
