r"""The paper's networks for speech (appendix E.2): log-mel frames to one encoding for every two frames, and back.

If a batch contains utterances of different lengths, positions beyond the end of an utterance are set to 0 after every
layer, like the padding of a convolution, so each utterance gives the same result as alone.
"""

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from sqvae.distributions.processes import own_rows
from sqvae.networks.lengths import within
from sqvae.networks.normalisation import BatchNorm2d

CONTEXT = 1
"""Number of frames that the encoder sees before the first and after the last frame that the decoder returns."""

STRIDE = 2
"""Number of frames per encoding."""

HALVING = 2
"""The index of the convolution that halves the frame rate."""


def _convolution(before: int, after: int, width: int, *, stride: int = 1, padding: int = 0) -> nn.Sequential:
    # 2D convolutions on inputs of height 1, so that batch normalisation and its removal need not be written twice.
    convolution = nn.Conv2d(before, after, (1, width), stride=(1, stride), padding=(0, padding), bias=False)
    return nn.Sequential(convolution, BatchNorm2d(after), nn.ReLU())


class SpeechEncoder(nn.Module):
    """Five convolutions, the third of which halves the frame rate, and a linear layer.

    The first has no padding, so 2n + 2 frames give n encodings: a crop is encoded with the frames around it.

    Arguments:
        mels: number of mel bands of a frame.
        dim: dimension of the encodings.
        channels: number of channels of the convolutions.
        log_variance: return (z, log_variance), the latter from separate outputs.
    """

    def __init__(self, mels: int, dim: int, *, channels: int = 768, log_variance: bool = False) -> None:
        super().__init__()
        self.log_variance = log_variance
        self.layers = nn.ModuleList(
            (
                _convolution(mels, channels, 3),
                _convolution(channels, channels, 3, padding=1),
                _convolution(channels, channels, 4, stride=STRIDE, padding=1),
                _convolution(channels, channels, 3, padding=1),
                _convolution(channels, channels, 3, padding=1),
            )
        )
        self.linear = nn.Conv2d(channels, 2 * dim if log_variance else dim, 1)

    def forward(
        self, frames: Tensor, positions: Tensor | None = None
    ) -> Tensor | tuple[Tensor, Tensor]:  # (batch, mels, 2n + 2), (batch,) -> (batch, dim, n)
        """Encode a batch.

        Arguments:
            frames: the frames, with context.
            positions: the number of valid encodings of each utterance; None: all n.
        """
        length = frames.shape[-1]
        if length < 2 * CONTEXT + STRIDE or (length - 2 * CONTEXT) % STRIDE:
            raise ValueError(
                f"the encoder takes {STRIDE}n + {2 * CONTEXT} frames, at least {2 * CONTEXT + STRIDE}; got {length}"
            )
        x = frames.unsqueeze(2)
        for number, layer in enumerate(self.layers):
            x = layer(x)
            if positions is not None:
                own = positions if number >= HALVING else STRIDE * positions
                x = x * within(own, x.shape[-1])[:, None, None]
        z: Tensor = self.linear(x).squeeze(2)
        if not self.log_variance:
            return z
        mean, log_variance = z.chunk(2, 1)
        return mean, log_variance


class Jitter(nn.Module):
    r"""In training, replace some vectors by those of a neighbouring position, so that codes don't rely on positions.

    Each position takes the vector before it with probability p / 2, the one after it with probability p / 2, and keeps
    its own otherwise; at the ends, a position without that neighbour keeps its own.

    Arguments:
        probability: p.
    """

    def __init__(self, probability: float) -> None:
        super().__init__()
        if not 0 <= probability <= 1:
            raise ValueError(f"the probability of jitter must lie between 0 and 1, got {probability}")
        self.probability = probability

    def forward(self, z: Tensor) -> Tensor:  # (batch, dim, n) -> (batch, dim, n)
        if not self.training or not self.probability:
            return z
        batch, dim, number = z.shape
        draws = own_rows(lambda rows: torch.rand(rows, number, device=z.device), batch)
        moves = (draws > 1 - self.probability / 2).long() - (draws < self.probability / 2).long()
        sources = (torch.arange(number, device=z.device) + moves).clamp(0, number - 1)
        return z.gather(2, sources.unsqueeze(1).expand(batch, dim, number))

    def extra_repr(self) -> str:
        return f"{self.probability}"


class SpeechDecoder(nn.Module):
    """Jitter, the speaker's embedding at each position, upsampling by 2, two bidirectional GRUs, and a linear layer.

    Arguments:
        mels: number of mel bands of a frame.
        dim: dimension of the encodings.
        speakers: number of speakers.
        speaker_dim: dimension of a speaker's embedding.
        hidden: hidden size of each direction of the recurrent layers.
        jitter: probability that a position takes a neighbour's vector in training.
    """

    def __init__(
        self, mels: int, dim: int, speakers: int, *, speaker_dim: int = 64, hidden: int = 128, jitter: float = 0.5
    ) -> None:
        super().__init__()
        self.jitter = Jitter(jitter)
        self.speakers = nn.Embedding(speakers, speaker_dim)
        self.recurrent = nn.GRU(dim + speaker_dim, hidden, num_layers=2, batch_first=True, bidirectional=True)
        self.linear = nn.Linear(2 * hidden, mels)

    def forward(
        self, z_q: Tensor, speakers: Tensor, positions: Tensor | None = None
    ) -> Tensor:  # (batch, dim, n), (batch,), (batch,) -> (batch, 2n, mels)
        """Decode a batch.

        Arguments:
            z_q: the quantized encodings.
            speakers: the speaker of each utterance.
            positions: the number of valid encodings of each utterance; None: all n.
        """
        vectors = self.jitter(z_q).mT
        voice = self.speakers(speakers).unsqueeze(1).expand(-1, vectors.shape[1], -1)
        x = torch.cat((vectors, voice.to(vectors.dtype)), -1).repeat_interleave(STRIDE, 1)
        frames: Tensor = self.linear(self._recur(x, positions))
        return frames

    def _recur(self, x: Tensor, positions: Tensor | None) -> Tensor:  # (batch, 2n, d) -> (batch, 2n, 2 hidden)
        if positions is None:
            y: Tensor = self.recurrent(x)[0]
            return y
        # The backward direction must start at the end of each utterance, not at the end of the longest.
        packed = pack_padded_sequence(x, (STRIDE * positions).cpu(), batch_first=True, enforce_sorted=False)
        unpacked: Tensor = pad_packed_sequence(self.recurrent(packed)[0], batch_first=True, total_length=x.shape[1])[0]
        return unpacked
