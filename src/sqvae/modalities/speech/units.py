"""What the units of a model of speech stand for, heard on utterances."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from sqvae.data import Progress
from sqvae.data.speech import Utterances
from sqvae.modalities.speech.tokenizer import SpeechTokenizer
from sqvae.networks.speech import STRIDE


@dataclass(frozen=True)
class UnitSpectra:
    """Where a set of utterances takes each code, and what is heard there; with layers each code of the first."""

    counts: Tensor = field(repr=False)
    """(K,): how often each code was taken."""
    mean: Tensor = field(repr=False)
    """(K, mels), in dB: the mean of the frames where it was; nan where it never was."""
    utterances: int
    """How many were listened to."""


def unit_spectra(
    tokenizer: SpeechTokenizer, utterances: Utterances, *, at_most: int = 2000, progress: Progress | None = None
) -> UnitSpectra:
    """Listen to utterances code by code.

    Arguments:
        at_most: how many of them; they are taken evenly from the whole set, which may be sorted.
        progress: called with what is being done, how many utterances are done and how many there are.
    """
    number = min(at_most, len(utterances))
    counts = torch.zeros(tokenizer.codebook_size, dtype=torch.int64)
    sums = torch.zeros(len(counts), tokenizer.features.mels, dtype=torch.float64)
    heard = torch.zeros(len(counts), dtype=torch.int64)
    for index in range(number):
        frames = utterances.frames(index * len(utterances) // number)
        codes = tokenizer.coarsest(torch.cat(list(tokenizer.encode_pieces([frames]))))
        counts += torch.bincount(codes, minlength=len(counts))
        each = codes.repeat_interleave(STRIDE)[: len(frames)]
        sums.index_add_(0, each, frames.double())
        heard += torch.bincount(each, minlength=len(counts))
        if progress is not None:
            progress("listening", index + 1, number)
    return UnitSpectra(counts, (sums / heard.unsqueeze(1)).float(), number)
