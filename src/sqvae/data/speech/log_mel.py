r"""Log-mel spectrograms: the loudness of a recording in frequency bands over time, in decibels.

.. math:: L_{t,m} = 20 \log_{10} \sum_f M_{f,m} \Big| \sum_n w_n\, x_{ts + n - \lambda}\, e^{-2 \pi i f n / F} \Big|

with a Hann window :math:`w`, the shift :math:`s` between frames and triangular filters :math:`M` on the mel scale.
:math:`\lambda` is half the window: frame t is centred at sample t s, and the recording is reflected at its ends.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sqvae.distributions.checks import check_size
from sqvae.distributions.precision import widest_float

Samples: TypeAlias = Tensor | NDArray[np.floating[Any]]
"""(samples,) of one channel, floats with full scale at 1."""

_AT_ONCE = 256
"""Number of frames that are transformed at once: few enough for a processor's cache."""

_KEPT = 8192
"""A streamed recording with up to this number of frames is kept between the two passes, so it is read only once."""

_SILENCE = 1e-30
"""Amplitudes below this are silence, which is not scaled up."""


@dataclass(frozen=True, kw_only=True)
class LogMel:
    """The log-mel spectrogram of recordings, (samples,) -> (frames, mels), in dB.

    A recording of n samples has 1 + n // shift frames. One that is too short to reflect is reflected repeatedly (and a
    single sample is repeated), so that even one sample gives a frame.

    The steps are linear up to the logarithm, so a gain can be applied when its value is known: after the filters. They
    are in float64 if the device supports it: in float32 the transform's error, 1e-7 of a frame's loudest frequency,
    would be several decibels in quiet parts. The result is float32, on the device of the samples.

    Arguments:
        rate: the sample rate of the recordings in Hz.
        mels: the number of bands.
        fft: the length of the Fourier transform, even; windows are padded to it with zeros.
        window: the length of the Hann window in samples.
        shift: the number of samples between frames (hop length).
        low: the lowest frequency of the lowest band in Hz.
        high: the highest frequency of the highest band in Hz.
        peak: the peak amplitude that every recording is scaled to first; silence remains silence.
        preemphasis: a in y[n] = x[n] - a x[n-1]; silence precedes the first sample, so y[0] = x[0].
        floor: the minimum in dB; lower values are raised to it.
        range: the dynamic range in dB; values below the recording's maximum minus the range are raised to that.
    """

    rate: int
    mels: int = 80
    fft: int = 2048
    window: int
    shift: int
    low: float
    high: float
    peak: float | None = None
    preemphasis: float | None = None
    floor: float = -200.0
    range: float | None = None

    def __post_init__(self) -> None:
        for name in ("rate", "mels", "fft", "window", "shift"):
            check_size(getattr(self, name), name)
        if self.fft % 2 or self.fft < self.window:
            raise ValueError(f"fft must be even and at least the window of {self.window} samples, got {self.fft}")
        if not 0 <= self.low < self.high <= self.rate / 2:
            raise ValueError(
                f"low and high must be frequencies up to half the sample rate, 0 <= low < high <= {self.rate / 2:g} "
                f"Hz, got {self.low:g} and {self.high:g}"
            )

    @property
    def seconds_per_frame(self) -> float:
        return self.shift / self.rate

    @property
    def lead(self) -> int:
        """Number of samples from the start of a window to the centre of its frame."""
        return (self.window + 1) // 2

    def frames_of(self, samples: int) -> int:
        """The number of frames of a recording with this number of samples."""
        check_size(samples, "samples")
        return 1 + samples // self.shift

    def __call__(self, samples: Samples) -> Tensor:  # (samples,) -> (frames, mels)
        """The log-mel spectrogram of a recording."""
        return self.batch([samples])[0]

    def batch(self, recordings: Sequence[Samples]) -> list[Tensor]:  # (samples,) each -> (frames, mels) each
        """The log-mel spectrograms of recordings on one device, computed together: the same as one by one."""
        if not recordings:
            return []
        waves = [_wide(recording) for recording in recordings]
        # Each is reflected on its own and padded to a multiple of the shift. Then they are concatenated, and the frames
        # that overlap two recordings are dropped.
        laid = [self._laid(self._emphasised(wave, wave.new_zeros(1))) for wave in waves]
        mel = self._mel(torch.cat([*laid, laid[0].new_zeros(self.window)]))
        pieces = mel[:-1].split([len(wave) // self.shift for wave in laid])
        return [
            self._decibels(own := piece[: self.frames_of(len(wave))], _largest(wave), _largest(own))
            for wave, piece in zip(waves, pieces, strict=True)
        ]

    def stream(self, blocks: Callable[[], Iterable[Samples]]) -> Iterator[Tensor]:  # -> (frames, mels) each
        """Yield the log-mel spectrogram of a long recording in pieces, in constant memory.

        Arguments:
            blocks: returns the recording in blocks of any lengths, from the start at each call. A long recording is
                read twice if its loudest sample or value matters, because these are known only at its end.
        """
        loudest, largest, number = 0.0, 0.0, 0
        kept: list[Tensor] = []
        if self.peak is not None or self.range is not None:
            for mel, loudest in self._pieces(blocks()):  # noqa: B007 (the last one is that of the recording)
                largest = max(largest, _largest(mel))
                number += len(mel)
                kept = [*kept, mel] if number <= _KEPT else []
        for mel in kept or (mel for mel, _ in self._pieces(blocks())):
            yield self._decibels(mel, loudest, largest)

    def _pieces(self, blocks: Iterable[Samples]) -> Iterator[tuple[Tensor, float]]:
        """Yield pieces of the mel spectrogram, with the peak amplitude of the recording so far."""
        total, loudest, reflected = 0, 0.0, False
        held = before = torch.zeros(0)
        for wave in (_wide(block) for block in blocks if len(block)):
            loudest = max(loudest, _largest(wave))
            emphasised = self._emphasised(wave, before if total else wave.new_zeros(1))
            held = torch.cat([held, emphasised]) if total else emphasised
            before, total = wave[-1:], total + len(wave)
            if not reflected and total > self.window:
                held, reflected = reflect(held, self.lead, 0), True
            # One window is held back, to be reflected if this is the end.
            ready = (len(held) - self.window) // self.shift if reflected else 0
            if ready > 0:
                yield self._mel(held[: (ready - 1) * self.shift + self.window]), loudest
                held = held[ready * self.shift :]
        if not total:
            raise ValueError("a recording must have at least one sample, got none")
        yield self._mel(reflect(held, 0 if reflected else self.lead, self.window - self.lead)), loudest

    def _emphasised(self, wave: Tensor, before: Tensor) -> Tensor:  # (samples,), (1,) -> (samples,)
        if self.preemphasis is None:
            return wave
        return wave - self.preemphasis * torch.cat([before, wave[:-1]])

    def _laid(self, wave: Tensor) -> Tensor:  # (samples,) -> (samples + window, and up to a multiple of shift,)
        fill = -(len(wave) + self.window) % self.shift
        return reflect(wave, self.lead, self.window - self.lead + fill)

    def _mel(self, wave: Tensor) -> Tensor:  # (window + (frames - 1) * shift,) -> (frames, mels)
        """The amplitudes in the bands, for a signal that begins with its first window."""
        hann, filters = _constants(self, wave.device, wave.dtype)
        amplitudes = []
        for frames in wave.unfold(0, self.window, self.shift).split(_AT_ONCE):
            # Zeros follow the window instead of surrounding it: this changes the phases but not the amplitudes.
            spectrum = torch.fft.rfft(frames * hann, n=self.fft)[:, : len(filters)]
            amplitudes.append((spectrum.real**2 + spectrum.imag**2).sqrt() @ filters)
        return torch.cat(amplitudes)

    def _decibels(self, mel: Tensor, loudest: float, largest: float) -> Tensor:  # (frames, mels) -> (frames, mels)
        """Convert to decibels, given the peak sample and the largest band amplitude of the whole recording."""
        gain = 1.0 if self.peak is None or loudest < _SILENCE else self.peak / loudest
        least = 10 ** (self.floor / 20)
        decibels = 20 * (gain * mel).clamp_min(least).log10()
        if self.range is not None:
            decibels = decibels.clamp_min(20 * math.log10(max(gain * largest, least)) - self.range)
        return decibels.float()


FEATURES: Mapping[str, LogMel] = MappingProxyType(
    {
        "vctk": LogMel(rate=24_000, window=1200, shift=300, low=80, high=7600),
        "zerospeech": LogMel(
            rate=16_000, window=400, shift=160, low=50, high=8000, peak=0.999, preemphasis=0.97, floor=-100, range=80
        ),
    }
)
"""The features of the paper's two speech datasets. The second's floor is that of `librosa.amplitude_to_db`."""


def mel_filters(features: LogMel) -> Tensor:  # -> (fft // 2 + 1, mels)
    """Triangular filters with corners equally spaced on Slaney's mel scale, each of area 1 (over Hz), in float64.

    Slaney's scale is linear up to 1 kHz, at 15 mel, and logarithmic above, 27 mel for a factor of 6.4.
    """
    frequencies = torch.arange(features.fft // 2 + 1, dtype=torch.float64) * (features.rate / features.fft)
    ends = (_mel_of(features.low), _mel_of(features.high))
    mels = torch.linspace(*ends, features.mels + 2, dtype=torch.float64)
    corners = torch.where(mels < 15, mels * (200 / 3), 1000 * torch.exp((mels - 15) * (math.log(6.4) / 27)))
    left, middle, right = corners[:-2], corners[1:-1], corners[2:]
    rising = (frequencies[:, None] - left) / (middle - left)
    falling = (right - frequencies[:, None]) / (right - middle)
    filters = torch.minimum(rising, falling).clamp_min(0) * (2 / (right - left))
    if empty := int((filters.sum(0) == 0).sum()):
        raise ValueError(
            f"{empty} of the {features.mels} bands lie between two frequencies of the transform and would always be "
            f"silent: use fewer mels, or an fft above {features.fft}"
        )
    return filters


def _mel_of(frequency: float) -> float:
    return frequency * 3 / 200 if frequency < 1000 else 15 + math.log(frequency / 1000) * (27 / math.log(6.4))


@lru_cache
def _constants(features: LogMel, device: torch.device, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """The window, and the filters up to the highest frequency that any of them passes."""
    hann = torch.hann_window(features.window, dtype=torch.float64)
    filters = mel_filters(features)
    heard = int(filters.sum(1).nonzero().max()) + 1
    return hann.to(device, dtype), filters[:heard].to(device, dtype)


def reflect(wave: Tensor, left: int, right: int) -> Tensor:  # (samples,) -> (left + samples + right,)
    """Extend a signal by reflection at both ends, repeatedly if necessary."""
    period = max(1, 2 * (len(wave) - 1))
    before = torch.arange(-left, 0, device=wave.device) % period
    after = torch.arange(len(wave), len(wave) + right, device=wave.device) % period
    first, last = (wave[torch.minimum(places, period - places)] for places in (before, after))
    return torch.cat([first, wave, last])


def _wide(samples: Samples) -> Tensor:  # (samples,) -> (samples,)
    # An array is copied, because torch warns about arrays that are read-only.
    wave = samples if isinstance(samples, Tensor) else torch.from_numpy(np.array(samples))
    if wave.ndim != 1 or len(wave) == 0:
        raise ValueError(f"a recording must be (samples,) with at least one sample, got the shape {tuple(wave.shape)}")
    if not wave.is_floating_point():
        raise TypeError(f"samples must be floats with full scale at 1, got {wave.dtype}; divide them by full scale")
    wave = wave.to(widest_float(wave.device))
    if not wave.sum().isfinite():
        raise ValueError("samples must be finite, got some that are NaN or infinite")
    return wave


def _largest(values: Tensor) -> float:
    return float(values.abs().max())
