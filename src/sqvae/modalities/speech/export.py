"""Speech tokenizers as programs that can be exported, and what a user of an exported model must know."""

from copy import deepcopy
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim

from sqvae.export.exportable import CPU, Exportable, Slot, codes_slot, encoder_for, no_ties, random_codes, trial_shapes
from sqvae.export.programs import Encoding
from sqvae.modalities.speech.tokenizer import SpeechTokenizer
from sqvae.models import SpeechModel
from sqvae.networks.onnx_gru import OnnxGRU
from sqvae.networks.speech import CONTEXT, STRIDE, SpeechDecoder

POSITIONS = 24
"""The number of codes of the utterances that a program is traced with and tried on."""

FRAMES = (
    "mono samples at this rate, full scale 1; scaled to the peak where there is one, then preemphasis; frame t is "
    "centred at sample t * shift, the ends reflected; 20 log10 of the magnitudes of a Hann window's spectrum through "
    "triangles of area 1 on Slaney's mel scale; raised to the floor, and to the loudest value less the range; an odd "
    "last frame is repeated"
)


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


def encoder_and_decoder(tokenizer: SpeechTokenizer) -> tuple[Exportable, Exportable]:
    """Both networks of a tokenizer of speech, on the CPU."""
    model, voices = deepcopy(tokenizer.inference_model).to(CPU), tokenizer.speakers
    positions = Dim("positions", min=1)
    order = f"0 ... {len(voices) - 1}, who speaks: a place in the list of speakers"
    frames = ("batch", "frames", tokenizer.features.mels)

    def decode(codes: Tensor, speakers: Tensor) -> Tensor:
        return torch.stack(tokenizer.decode(list(codes), [voices[number] for number in speakers.tolist()]))

    decoder = Exportable(
        "decoder",
        SpeechDecoding(model, model.decoder).eval(),
        (codes_slot(tokenizer, "positions"), Slot("speakers", torch.int64, ("batch",), order)),
        Slot("frames", torch.float32, frames, f"log-mel frames in dB, {STRIDE} to a code: their number is even"),
        decode,
        tuple(
            (random_codes(tokenizer, shape), torch.arange(shape[0]) % len(voices)) for shape in trial_shapes(POSITIONS)
        ),
        {"positions": positions, "frames": STRIDE * positions},
        no_ties,
        for_onnx=SpeechDecoding(model, with_onnx_layers(model.decoder)).eval(),
    )
    return encoder_for(
        decoder, SpeechEncoding(model), lambda frames: torch.stack(tokenizer.encode_frames(list(frames)))
    ), decoder


def described(tokenizer: SpeechTokenizer) -> dict[str, Any]:
    """Features, the rate of codes and speakers."""
    return {
        "codes_per_second": tokenizer.codes_per_second,
        "preprocessing": {**asdict(tokenizer.features), "how": FRAMES},
        "speakers": list(tokenizer.speakers),
    }
