"""Crops of utterances, to train on."""

from typing import NamedTuple

import torch
from torch import Tensor

from sqvae.data.speech.utterances import Utterances
from sqvae.distributions.processes import own_rows


class Crops(NamedTuple):
    """Pieces of utterances, all equally long."""

    frames: Tensor
    """(batch, length + 2 context, mels), in dB."""
    speakers: Tensor
    """(batch,): the number of who speaks."""

    def chunk(self, chunks: int) -> list["Crops"]:
        """The same in so many parts."""
        return [Crops(*parts) for parts in zip(self.frames.chunk(chunks), self.speakers.chunk(chunks), strict=True)]


class Segments:
    """A training set of crops: the utterances by turns, a new place in each every time.

    At the ends of an utterance the first and the last frame stand for those around them; an utterance that is shorter
    than a crop goes on with its last frame.

    Arguments:
        utterances: what to crop.
        speakers: those that have a number, in order.
        length: frames of a crop.
        context: frames before and after it that come with it.
        number: how many crops make up the set.
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
        """Crops of the utterances whose turn it is: who begins, and the places, are drawn by torch's own generator."""
        # Drawn for each batch: an epoch may have fewer crops than there are utterances, and all are to be met.
        first = int(torch.rand((), dtype=torch.float64) * len(self.utterances))
        chosen = (indices + first) % len(self.utterances)
        draws = own_rows(lambda rows: torch.rand(rows, dtype=torch.float64), len(indices))
        lengths = self.utterances.lengths[chosen]
        starts = (draws * (lengths - self.length + 1).clamp_min(1)).long()
        offsets = torch.arange(-self.context, self.length + self.context)
        places = (starts.unsqueeze(1) + offsets).clamp_min(0).minimum(lengths.unsqueeze(1) - 1)
        return Crops(self.utterances.at(chosen, places), self._speakers[chosen])
