"""The codes of whole sets of utterances."""

import torch

from sqvae.data import Progress
from sqvae.data.speech import Utterances
from sqvae.modalities.speech.tokenizer import SpeechTokenizer
from sqvae.runs import CodeSet


def code_set(tokenizer: SpeechTokenizer, utterances: Utterances, what: str, progress: Progress | None) -> CodeSet:
    """The likeliest codes of all utterances of a set, one after the other, with their lengths."""
    parts = []
    for index in range(len(utterances)):
        parts += [piece.int() for piece in tokenizer.encode_frames([utterances.frames(index)])]
        if progress is not None:
            progress(what, index + 1, len(utterances))
    return CodeSet(torch.cat(parts), torch.tensor([len(part) for part in parts]), tokenizer.layers is not None)
