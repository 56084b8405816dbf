r"""Sound from log-mel frames, which have no phases: Griffin and Lim's algorithm, the fast variant.

A spectrogram :math:`c` is projected in turn onto those that some signal has, :math:`P_1 = \mathrm{STFT} \circ
\mathrm{STFT}^{-1}`, and onto those of the wanted amplitudes :math:`S`, with momentum :math:`\alpha` between
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
"""Steps from bands to frequencies; the bands are met to about 0.01 dB by then."""

_FADE = 0.05
"""Of the most that windows overlap: where they overlap less, at the very end, the signal fades rather than bursts."""


def griffin_lim(
    frames: Tensor, features: LogMel, *, samples: int | None = None, iterations: int = 60, seed: int = 0
) -> Tensor:  # (frames, mels) -> (samples,)
    """A recording whose log-mel spectrogram is near the one given.

    What the features take away stays away: the gain, where they scale to a peak, and what is below their floor. A
    result beyond full scale is scaled down to it.

    Arguments:
        frames: in dB, as the features gave them.
        features: what gave them.
        samples: the length of the result; by default the least that has so many frames (and at least one sample).
        iterations: more sound better, and slower.
        seed: of the phases at the start; torch's global generator is left alone.
    """
    length = _length(frames, features, samples)
    check_finite(frames, "frames")
    check_size(iterations, "iterations", least=0)
    fft = _sufficient_fft(features)
    # The frequencies of a transform of half the length are every second one.
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
    """The transform halved as long as windows fit: several times as fast, for about a tenth more of spectral error."""
    fft = features.fft
    while fft % 4 == 0 and fft // 2 >= features.window:
        fft //= 2
    return fft


def linear_amplitudes(frames: Tensor, features: LogMel) -> Tensor:  # (frames, mels) -> (frames, fft // 2 + 1)
    r"""Amplitudes :math:`S \ge 0` at each frequency, with :math:`S M` near the amplitudes :math:`m` in the bands.

    By Richardson and Lucy's steps, which keep amplitudes positive and smooth, from :math:`m M^\top`:

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
    """The windowed Fourier transform of a signal of some length, and its inverse by least squares."""

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
        """The sum of the windows, each at its place."""
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
        raise ValueError(f"frames must be (frames, {features.mels}) and at least one, got {tuple(frames.shape)}")
    least = max(1, (len(frames) - 1) * features.shift)
    if samples is None:
        return least
    if features.frames_of(samples) != len(frames):
        raise ValueError(
            f"{len(frames):,} frames are those of {least:,} to {len(frames) * features.shift - 1:,} samples, got "
            f"samples={samples:,}, which have {features.frames_of(samples):,}"
        )
    return samples
