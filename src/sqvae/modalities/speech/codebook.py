"""What the quantizer of a model of speech makes of utterances."""

import torch

from sqvae.data.speech import Utterances
from sqvae.modalities.speech.tokenizer import SpeechTokenizer
from sqvae.models import padded
from sqvae.quantizers import Quantized

LOOKED_AT = 64
"""Utterances from which the noise of the quantization is told."""


@torch.no_grad()
def quantized_utterances(tokenizer: SpeechTokenizer, utterances: Utterances) -> Quantized:
    """What the quantizer makes of some utterances."""
    frames = [utterances.frames(index).to(tokenizer.device) for index in range(min(LOOKED_AT, len(utterances)))]
    nobody = torch.zeros(len(frames), dtype=torch.int64, device=tokenizer.device)
    quantized: Quantized = tokenizer.model(padded(frames, nobody)).quantized
    return quantized
