"""Random crops of utterances, for training."""

from typing import NamedTuple

import torch
from torch import Tensor

from sqvae.data.speech.utterances import Utterances
from sqvae.distributions.processes import own_rows


class Crops(NamedTuple):
    """Crops of utterances, all of the same length."""

    frames: Tensor
    """(batch, length + 2 context, mels), in dB."""
    speakers: Tensor
    """(batch,): the speaker numbers."""

    def chunk(self, chunks: int) -> list["Crops"]:
        """The batch divided into a number of parts."""
        return [Crops(*parts) for parts in zip(self.frames.chunk(chunks), self.speakers.chunk(chunks), strict=True)]


class Segments:
    """A training set of crops: the utterances in turn, each time at a new random position.

    At the ends of an utterance, the first and the last frame are repeated as context. An utterance that is shorter than
    a crop is extended with its last frame.

    Arguments:
        utterances: the utterances to crop.
        speakers: the speakers in the order of their numbers.
        length: number of frames of a crop.
        context: number of additional frames before and after it.
        number: number of crops in the training set.
    """

    def __init__(
        self, utterances: Utterances, speakers: tuple[str, ...], *, length: int, context: int, number: int
    ) -> None:
        if not len(utterances):
            raise ValueError("there are no utterances to train on")
        numbers = {speaker: index for index, speaker in enumerate(speakers)}
        self.utterances = utterances
        self.length = length
        self.context = context
        self.number = number
        self._speakers = torch.tensor([numbers[speaker] for speaker in utterances.speakers])

    def __len__(self) -> int:
        return self.number

    def take(self, indices: Tensor) -> Crops:  # (batch,)
        """Crops of the next utterances. The first utterance and the positions come from torch's global generator."""
        # Drawn for each batch: an epoch may have fewer crops than there are utterances, and all should be used.
        first = int(torch.rand((), dtype=torch.float64) * len(self.utterances))
        chosen = (indices + first) % len(self.utterances)
        draws = own_rows(lambda rows: torch.rand(rows, dtype=torch.float64), len(indices))
        lengths = self.utterances.lengths[chosen]
        starts = (draws * (lengths - self.length + 1).clamp_min(1)).long()
        offsets = torch.arange(-self.context, self.length + self.context)
        places = (starts.unsqueeze(1) + offsets).clamp_min(0).minimum(lengths.unsqueeze(1) - 1)
        return Crops(self.utterances.at(chosen, places), self._speakers[chosen])
