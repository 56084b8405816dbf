r"""Sound from log-mel spectrograms, which have no phases: the fast variant of the Griffin-Lim algorithm.

A spectrogram :math:`c` is projected alternately onto the spectrograms of signals, :math:`P_1 = \mathrm{STFT} \circ
\mathrm{STFT}^{-1}`, and onto those with the given amplitudes :math:`S`, with momentum :math:`\alpha`
(Perraudin, Balazs and Sondergaard, 2013):

.. math:: t_n = P_1\big(S\, c_{n-1} / |c_{n-1}|\big), \qquad c_n = t_n + \alpha\, (t_n - t_{n-1})
"""

import math
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import fold, pad

from sqvae.data.speech.log_mel import LogMel, mel_filters, reflect
from sqvae.distributions.checks import check_finite, check_size

_MOMENTUM = 0.99
_LOUDEST = 0.999
_TINY = 1e-30

_RICHARDSON_LUCY = 10
"""Number of Richardson-Lucy steps from bands to frequencies; the bands are then matched to about 0.01 dB."""

_FADE = 0.05
"""A share of the maximum overlap of windows. Where they overlap less, at the very end, the signal fades out."""


def griffin_lim(
    frames: Tensor, features: LogMel, *, samples: int | None = None, iterations: int = 60, seed: int = 0
) -> Tensor:  # (frames, mels) -> (samples,)
    """A recording whose log-mel spectrogram is close to the given one.

    Information that the features remove can't be restored: the gain, if they scale to a peak, and everything below the
    floor. A result beyond full scale is scaled down.

    Arguments:
        frames: the spectrogram in dB, as the features returned it.
        features: the features that computed it.
        samples: the length of the result; by default the smallest with this number of frames (at least one sample).
        iterations: number of iterations; more sound better and take longer.
        seed: the seed of the initial phases. torch's global generator is not used.
    """
    length = _length(frames, features, samples)
    check_finite(frames, "frames")
    check_size(iterations, "iterations", least=0)
    fft = _sufficient_fft(features)
    # A transform of half the length has every second frequency.
    amplitudes = linear_amplitudes(frames, features)[:, :: features.fft // fft]
    transform = _Transform(replace(features, fft=fft), len(frames), length, frames.device)
    generator = torch.Generator().manual_seed(seed)
    turns = torch.rand(amplitudes.shape, generator=generator).to(frames.device)
    phases = torch.polar(torch.ones_like(turns), 2 * math.pi * turns)
    previous = torch.zeros_like(phases)
    for _ in range(iterations):
        rebuilt = transform.spectrum(transform.signal(amplitudes * phases))
        phases = rebuilt + _MOMENTUM * (rebuilt - previous)
        phases = phases / phases.abs().clamp_min(_TINY)
        previous = rebuilt
    wave = _deemphasised(transform.signal(amplitudes * phases), features.preemphasis or 0.0)
    return wave * (_LOUDEST / wave.abs().max().clamp_min(_LOUDEST))


def _sufficient_fft(features: LogMel) -> int:
    """The transform length, halved while windows fit: several times faster, with about 10% more spectral error."""
    fft = features.fft
    while fft % 4 == 0 and fft // 2 >= features.window:
        fft //= 2
    return fft


def linear_amplitudes(frames: Tensor, features: LogMel) -> Tensor:  # (frames, mels) -> (frames, fft // 2 + 1)
    r"""Amplitudes :math:`S \ge 0` at each frequency, with :math:`S M` close to the amplitudes :math:`m` in the bands.

    Computed by Richardson-Lucy steps, which keep amplitudes positive and smooth, from :math:`m M^\top`:

    .. math:: S \leftarrow S \odot \frac{(m \oslash S M)\, M^\top}{1 M^\top}
    """
    filters = mel_filters(features).to(frames.device, torch.float32)
    m = 10 ** (frames.float() / 20)
    amplitudes = m @ filters.T
    for _ in range(_RICHARDSON_LUCY):
        ratio = m / (amplitudes @ filters).clamp_min(_TINY)
        amplitudes = amplitudes * (ratio @ filters.T) / filters.sum(1).clamp_min(_TINY)
    return amplitudes


class _Transform:
    """The short-time Fourier transform of a signal of a given length, and its least-squares inverse."""

    def __init__(self, features: LogMel, frames: int, length: int, device: torch.device) -> None:
        self.features, self.frames, self.length = features, frames, length
        self.window = torch.hann_window(features.window, device=device)
        weight = self._overlapped((self.window**2).expand(frames, -1))
        self.weight = weight.clamp_min(_FADE * float(weight.max()))

    def spectrum(self, wave: Tensor) -> Tensor:  # (length,) -> (frames, fft // 2 + 1)
        lead, window = self.features.lead, self.features.window
        windows = reflect(wave, lead, window - lead).unfold(0, window, self.features.shift)
        spectrum: Tensor = torch.fft.rfft(windows * self.window, n=self.features.fft)
        return spectrum

    def signal(self, spectrum: Tensor) -> Tensor:  # (frames, fft // 2 + 1) -> (length,)
        windows: Tensor = torch.fft.irfft(spectrum, n=self.features.fft)[:, : self.features.window]
        return self._overlapped(windows * self.window) / self.weight

    def _overlapped(self, windows: Tensor) -> Tensor:  # (frames, window) -> (length,)
        """The sum of the windows, each at its position."""
        whole = (self.frames - 1) * self.features.shift + self.features.window
        wave = fold(windows.T[None], (1, whole), (1, self.features.window), stride=(1, self.features.shift)).flatten()
        lead = self.features.lead
        return pad(wave[lead : lead + self.length], (0, max(0, lead + self.length - whole)))


def _deemphasised(wave: Tensor, a: float) -> Tensor:  # (samples,) -> (samples,)
    r"""Undo pre-emphasis, :math:`x_n = y_n + a x_{n-1}`, without a loop over samples.

    .. math:: \frac{1}{1 - a z} = (1 + a z)(1 + a^2 z^2)(1 + a^4 z^4) \cdots
    """
    step = 1
    while step < len(wave) and a**step > 1e-12:
        wave = wave + a**step * pad(wave[:-step], (step, 0))
        step *= 2
    return wave


def _length(frames: Tensor, features: LogMel, samples: int | None) -> int:
    if frames.ndim != 2 or len(frames) == 0 or frames.shape[1] != features.mels:
        raise ValueError(f"frames must be (frames, {features.mels}), at least one frame, got {tuple(frames.shape)}")
    least = max(1, (len(frames) - 1) * features.shift)
    if samples is None:
        return least
    if features.frames_of(samples) != len(frames):
        raise ValueError(
            f"{len(frames):,} frames correspond to {least:,} to {len(frames) * features.shift - 1:,} samples, got "
            f"samples={samples:,}, which give {features.frames_of(samples):,} frames"
        )
    return samples
