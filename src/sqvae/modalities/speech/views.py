"""What is shown of a trained model of speech: the counterpart of `views`, by spectrograms."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from sqvae.metrics import Decibels
from sqvae.modalities.speech.evaluation import spectrogram_pictures, white_level
from sqvae.modalities.speech.tokenizer import SpeechTokenizer
from sqvae.modalities.views import DifferenceKey, Seen, cost_of_codes, error_in_words, signed_difference, to_bytes
from sqvae.tokenizers import codebook_size_of

if TYPE_CHECKING:
    from sqvae.runs import Generator

FULL_DB = 30.0
"""The difference in dB that is shown in full colour."""

LOUDNESS = DifferenceKey("softer", "louder", f"{FULL_DB:g} dB", "of a sound that spans some 60 dB")

HELD = 5
"""How many codes of one kind are spoken, to hear one alone: the recurrent decoder needs a few to settle."""


def see_speech(
    tokenizer: SpeechTokenizer,
    frames: Tensor,
    speaker: str | None = None,
    prior: "Generator | None" = None,
    *,
    codes: Tensor | None = None,
) -> Seen:
    """One utterance through its codes.

    Arguments:
        frames: (T, mels), in dB, as the features give them.
        speaker: whose voice to speak with; None: the first that the model knows.
        prior: of the model, to tell what the codes cost.
        codes: (n,), others than its own, to see what they would make of it.
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
    return Seen(
        spectrogram(frames, white),
        spectrogram(made, white),
        signed_difference((made - frames).mT.flip(0), FULL_DB),
        codes,
        bits,
        by,
        error_in_words(comparison.measures()),
        LOUDNESS,
    )


def see_units(tokenizer: SpeechTokenizer, codes: Tensor, speaker: str | None = None) -> Tensor:  # (n,) -> (3, H, W)
    """What a sequence of codes sounds like in a speaker's voice, as a spectrogram to look at, uint8."""
    frames = tokenizer.decode([codes], speaker or tokenizer.speakers[0])[0]
    return spectrogram(frames, white_level(frames, tokenizer.features))


def spoken_alone(
    tokenizer: SpeechTokenizer, codes: Tensor, speaker: str | None = None
) -> Tensor:  # (n,) -> uint8 (n, 3, mels, frames)
    """What the decoder speaks where one code is held for a while, as spectrograms on one scale of loudness."""
    held = [code.expand(HELD) for code in codes]
    spoken = tokenizer.decode(held, speaker or tokenizer.speakers[0])
    loudest = white_level(torch.stack([frames.max() for frames in spoken]), tokenizer.features)
    return torch.stack([spectrogram(frames, loudest) for frames in spoken])


def spectrogram(frames: Tensor, loudest: Tensor) -> Tensor:  # (T, mels), () -> uint8 (3, mels, T)
    """Frames to look at: time to the right, pitch upwards, the loudest in white."""
    return to_bytes(spectrogram_pictures(frames.unsqueeze(0), loudest, len(frames))[0])
