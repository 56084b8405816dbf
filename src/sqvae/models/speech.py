"""A model of speech: log-mel frames of any length, one code for every two frames, conditioned on the speaker."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from sqvae.likelihoods import Fit, Likelihood
from sqvae.models.autoencoder import Objective, encodings_of
from sqvae.networks.lengths import within
from sqvae.networks.modes import evaluating
from sqvae.networks.speech import CONTEXT, STRIDE, SpeechDecoder, SpeechEncoder
from sqvae.quantizers import Quantizer, Stage


class Speech(NamedTuple):
    """A batch of utterances, or of crops, with the context frames that the encoder needs."""

    frames: Tensor
    """(batch, 2n + 2, mels), in dB: one context frame, the frames of each utterance, and anything beyond its end."""
    speakers: Tensor
    """(batch,): the speaker numbers."""
    lengths: Tensor | None = None
    """(batch,): the number of frames of each utterance; None: all have 2n."""


def padded(utterances: Sequence[Tensor], speakers: Tensor) -> Speech:  # (T_i, mels) each, (batch,)
    """A batch of whole utterances of different lengths; the first and the last frame of each are repeated as context.

    If a length is odd, the last encoding stands for the last frame and its repetition.
    """
    longest = max(_even(len(frames)) for frames in utterances)
    rows = [
        pad(_with_context(frames), (0, 0, 0, longest - _even(len(frames))))  # zeros don't affect the utterance's frames
        for frames in utterances
    ]
    lengths = torch.tensor([len(frames) for frames in utterances], device=rows[0].device)
    return Speech(torch.stack(rows), speakers, lengths)


def _even(length: int) -> int:
    return -(-length // STRIDE) * STRIDE


def _with_context(frames: Tensor) -> Tensor:  # (T, mels) -> (2n + 2, mels)
    after = CONTEXT + _even(len(frames)) - len(frames)
    return torch.cat((frames[:1].expand(CONTEXT, -1), frames, frames[-1:].expand(after, -1)))


class SpeechModel(nn.Module):
    r"""SQ-VAE on log-mel frames, conditioned on the speaker.

    .. math:: \mathcal L = -\log p_\theta(x \mid Z_q, s) + \mathcal R_\varphi(Z, Z_q) - H(\hat P_\varphi(Z_q \mid Z))

    Frames are in dB. The networks and the likelihood use :math:`(x - m) / a` of each mel dimension: standardised, or on
    a given scale.

    Arguments:
        encoder: maps frames (batch, mels, 2n + 2) to encodings (batch, dim, n), with log-variances for quantizers that
            need them.
        quantizer: one of :data:`sqvae.quantizers.QUANTIZERS`, with ``channel_first=True``.
        decoder: maps quantized encodings and speakers to frames, (batch, 2n, mels).
        likelihood: the likelihood of the frames.
        offset: (mels,), m in dB.
        scale: (mels,), a in dB.
    """

    offset: Tensor
    scale: Tensor

    def __init__(
        self,
        encoder: SpeechEncoder,
        quantizer: Quantizer,
        decoder: SpeechDecoder,
        likelihood: Likelihood,
        *,
        offset: Tensor,
        scale: Tensor,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.quantizer = quantizer
        self.decoder = decoder
        self.likelihood = likelihood
        self.register_buffer("offset", offset.float().clone())
        self.register_buffer("scale", scale.float().clone())

    def forward(self, x: Speech, temperature: float | Tensor | Stage = 1.0, *, sample: bool = False) -> Objective:
        """Encode, quantize, decode, and compute the objective.

        Arguments:
            x: the batch.
            temperature: the temperature of the relaxation, or the stage of a schedule.
            sample: in ``eval()``, sample from the posterior instead of taking its mode.
        """
        frames = self._normalised(x.frames)
        positions = self._positions(x.lengths)
        z, log_variance = encodings_of(self.encoder(frames.mT, positions), self.quantizer)
        mask = None if positions is None else within(positions, z.shape[-1])
        quantized = self.quantizer(z, temperature, log_variance=log_variance, mask=mask, sample=sample)
        output = self.decoder(quantized.z_q, x.speakers, positions)
        # Frames are the samples of the likelihood, so that utterances of all lengths share one variance.
        rows, own = self.own_frames(output, x.lengths), self.own_frames(frames[:, CONTEXT:-CONTEXT], x.lengths)
        groups = quantized.groups
        if groups is not None:
            groups = self.own_frames(groups.unsqueeze(1).expand(-1, output.shape[1], -1), x.lengths)
        each, number = self.likelihood(rows, own, groups), len(rows) / len(output)
        fit = Fit(number * each.loss, number * each.log_likelihood, variance=each.variance)
        return Objective(output, fit, quantized, own.numel() / len(output))

    def own_frames(self, frames: Tensor, lengths: Tensor | None) -> Tensor:  # (batch, 2n, mels), (batch,) -> (F, mels)
        """The valid frames of all utterances, one after the other."""
        return frames.flatten(0, 1) if lengths is None else frames[within(lengths, frames.shape[1])]

    @torch.no_grad()
    def encode(self, x: Speech) -> Tensor:  # -> (batch, n)
        """The most probable codes, as in ``eval()``. Codes beyond the end of an utterance have no meaning."""
        with evaluating(self):
            z, log_variance = self._encodings(x)
            return self.quantizer.encode(z, log_variance=log_variance)

    @torch.no_grad()
    def encodings(self, x: Speech) -> Tensor:  # -> (batch, n, dim)
        """The continuous encodings before quantization, as in ``eval()``."""
        with evaluating(self):
            return self._encodings(x)[0].mT

    @torch.no_grad()
    def decode(self, codes: Tensor, speakers: Tensor, lengths: Tensor | None = None) -> Tensor:
        """(batch, n), (batch,), (batch,) -> (batch, 2n, mels): the most probable frames in dB, as in ``eval()``.

        Arguments:
            codes: the codes.
            speakers: the speaker of each utterance.
            lengths: the number of frames of each utterance; None: all have 2n.
        """
        with evaluating(self):
            output = self.decoder(self.quantizer.decode(codes), speakers, self._positions(lengths))
            return self.likelihood.predict(output) * self.scale + self.offset

    @torch.no_grad()
    def reconstruct(self, x: Speech) -> Tensor:  # -> (batch, 2n, mels)
        """The reconstructed frames in dB, as in ``eval()``."""
        with evaluating(self):
            return self.likelihood.predict(self(x).output) * self.scale + self.offset

    def _encodings(self, x: Speech) -> tuple[Tensor, Tensor | None]:
        encoded = self.encoder(self._normalised(x.frames).mT, self._positions(x.lengths))
        return encodings_of(encoded, self.quantizer)

    def _normalised(self, frames: Tensor) -> Tensor:
        return (frames - self.offset) / self.scale

    def _positions(self, lengths: Tensor | None) -> Tensor | None:
        """The number of encodings of each utterance."""
        return None if lengths is None else (lengths + STRIDE - 1) // STRIDE
