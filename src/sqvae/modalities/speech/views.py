"""Speech for display: utterances with their codes, and spectrograms that codes decode to."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from sqvae.metrics import Decibels
from sqvae.modalities.speech.evaluation import spectrogram_pictures, white_level
from sqvae.modalities.speech.tokenizer import SpeechTokenizer
from sqvae.modalities.views import (
    CodedExample,
    DifferenceKey,
    cost_of_codes,
    error_in_words,
    signed_difference,
    to_bytes,
)
from sqvae.tokenizers import codebook_size_of

if TYPE_CHECKING:
    from sqvae.runs import Generator

FULL_DB = 30.0
"""The smallest difference in dB that has full colour."""

LOUDNESS = DifferenceKey("softer", "louder", f"{FULL_DB:g} dB", "of a sound that spans some 60 dB")

REPEATS = 5
"""How often a code is repeated to show it by itself, because the recurrent decoder needs several codes to settle."""


def view_utterance(
    tokenizer: SpeechTokenizer,
    frames: Tensor,
    speaker: str | None = None,
    prior: "Generator | None" = None,
    *,
    codes: Tensor | None = None,
) -> CodedExample:
    """Encode and decode an utterance.

    Arguments:
        frames: (T, mels), log-mel frames in dB.
        speaker: the speaker whose voice the decoder uses; None: the first that the model knows.
        prior: the prior of the model, for the cost of the codes.
        codes: (n,), other codes to decode in place of the utterance's own.
    """
    voice = speaker or tokenizer.speakers[0]
    if codes is None:
        encode = tokenizer.encode_frames if tokenizer.is_discrete else tokenizer.encodings
        codes, made = encode([frames])[0], tokenizer.reconstruct([frames], voice)[0]
    else:
        made = tokenizer.decode([codes], voice, [len(frames)])[0]
    scale = tokenizer.model.scale.cpu()
    comparison = Decibels(scale)
    comparison.add(frames / scale, made / scale)
    bits, by = cost_of_codes(codes, codebook_size_of(tokenizer.model), prior)
    white = white_level(frames, tokenizer.features)
    return CodedExample(
        spectrogram(frames, white),
        spectrogram(made, white),
        signed_difference((made - frames).mT.flip(0), FULL_DB),
        codes,
        bits,
        by,
        error_in_words(comparison.measures()),
        LOUDNESS,
    )


def decoded_spectrogram(
    tokenizer: SpeechTokenizer, codes: Tensor, speaker: str | None = None
) -> Tensor:  # (n,) -> uint8 (3, mels, T)
    """The spectrogram that a sequence of codes decodes to in the voice of a speaker."""
    frames = tokenizer.decode([codes], speaker or tokenizer.speakers[0])[0]
    return spectrogram(frames, white_level(frames, tokenizer.features))


def code_spectrograms(
    tokenizer: SpeechTokenizer, codes: Tensor, speaker: str | None = None
) -> Tensor:  # (n,) -> uint8 (n, 3, mels, frames)
    """The spectrogram of each code, repeated a few times, all with the same scale of loudness."""
    repeated = [code.expand(REPEATS) for code in codes]
    spoken = tokenizer.decode(repeated, speaker or tokenizer.speakers[0])
    loudest = white_level(torch.stack([frames.max() for frames in spoken]), tokenizer.features)
    return torch.stack([spectrogram(frames, loudest) for frames in spoken])


def spectrogram(frames: Tensor, loudest: Tensor) -> Tensor:  # (T, mels), () -> uint8 (3, mels, T)
    """Frames as an image: time to the right, frequency upwards, the loudest in white."""
    return to_bytes(spectrogram_pictures(frames.unsqueeze(0), loudest, len(frames))[0])
