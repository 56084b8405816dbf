"""Audio files of any format and sample rate, read as one channel of samples, and written."""

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import soxr
from numpy.typing import ArrayLike, NDArray

from sqvae.files import written

EXTENSIONS = frozenset(
    f".{ending}"
    for endings in ("wav wave flac ogg oga opus mp3", "aiff aif aifc au snd caf w64 rf64 sph")
    for ending in endings.split()
)
"""File extensions of recordings, in the formats that libsndfile reads."""

_RATES = range(1_000, 1_000_001)
"""Valid sample rates in Hz; a rate outside this range means a damaged header."""

_WRITTEN = {".wav": "WAV", ".flac": "FLAC"}

_UNRECOGNISED = 1  # libsndfile's error code for an unknown format


class AudioError(ValueError):
    """A recording can't be used; the message says why."""


class _ForwardFile(soundfile.SoundFile):  # type: ignore[misc]
    """A file that is read from its beginning to its end.

    soundfile seeks to the current position after every read. For MP3 and Opus this changes the position: decoders lose
    the state that they carry between packets, and blocks begin with a burst of noise.
    """

    def seekable(self) -> bool:
        return False


def is_audio_name(name: str) -> bool:
    """Whether a file name has an extension of recordings."""
    return os.path.splitext(name)[1].lower() in EXTENSIONS


def audio_blocks(source: str | Path | bytes, rate: int, seconds: float = 20.0) -> Iterator[NDArray[np.float32]]:
    """Yield the samples of a recording in blocks, (samples,): the mean of its channels, resampled, in constant memory.

    The concatenation of the blocks does not depend on their length. Samples are as in the file, with full scale at 1;
    those beyond full scale are not clipped.

    A truncated FLAC is an error, because its header contains its length. For other formats, all samples of the file
    are used: their headers may be wrong even in complete files (a streamed WAV) or contain no length (MP3).

    Arguments:
        source: the file, or its bytes.
        rate: the sample rate of the result in Hz.
        seconds: the approximate length of a block; the resampler delays some samples.

    Raises:
        AudioError: if it is not a recording, is damaged or empty, or contains NaN or infinite samples. Blocks before
            the damage have been yielded by then.
    """
    if rate < 1:
        raise ValueError(f"rate must be at least 1 Hz, got {rate}")
    if not seconds > 0:
        raise ValueError(f"seconds must be more than 0, got {seconds}")
    return _blocks(source, rate, seconds)


def read_audio(source: str | Path | bytes, rate: int) -> NDArray[np.float32]:  # -> (samples,)
    """A whole recording: the concatenation of its :func:`audio_blocks`, with at least one sample."""
    return np.concatenate(list(audio_blocks(source, rate)))


def resampled(samples: NDArray[np.float32], rate: int, wanted: int) -> NDArray[np.float32]:  # (n,) -> (m,)
    """Samples at another sample rate, equal to what :func:`read_audio` returns for a file of them."""
    for name, value in (("rate", rate), ("wanted", wanted)):
        if value not in _RATES:
            raise ValueError(f"{name} must be between {_RATES[0]:,} and {_RATES[-1]:,} Hz, got {value}")
    stream = soxr.ResampleStream(rate, wanted, 1, quality="HQ")
    pieces = [stream.resample_chunk(samples), stream.resample_chunk(np.empty(0, np.float32), last=True)]
    made: NDArray[np.float32] = np.concatenate(pieces)
    if not len(made):
        raise AudioError(f"it is so short that no sample is left at {wanted:,} Hz")
    return made


def duration(source: str | Path | bytes) -> float:
    """The length of a recording in seconds, from its header alone.

    It is infinite if the header does not contain it (a streamed FLAC), and an estimate for an MP3 without a table of
    contents.
    """
    with _opened(source) as file:
        return math.inf if _is_unknown(file.frames) else file.frames / file.samplerate


def write_audio(path: str | Path, samples: ArrayLike, rate: int) -> None:  # (samples,)
    """Write a recording with one channel and 16 bits, as WAV or FLAC depending on the file extension.

    Samples beyond full scale, [-1, 1], are clipped. Samples that were read from 16 bits are reproduced exactly.
    """
    path = Path(path).expanduser()
    form = _WRITTEN.get(path.suffix.lower())
    if form is None:
        raise ValueError(f"{path.name} must end in {' or '.join(_WRITTEN)}, which selects the format")
    values = np.asarray(samples, dtype=np.float64)
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"samples must be (samples,) with at least one sample, got the shape {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError(f"samples must be finite, got {np.count_nonzero(~np.isfinite(values)):,} that are not")
    integers = np.rint(values * 32768).clip(-32768, 32767).astype(np.int16)
    with written(path, lasting=False) as temporary, temporary.open("wb") as file:
        soundfile.write(file, integers, rate, format=form, subtype="PCM_16")


def _blocks(source: str | Path | bytes, rate: int, seconds: float) -> Iterator[NDArray[np.float32]]:
    given = 0
    with _opened(source) as file:
        resampler = None if file.samplerate == rate else soxr.ResampleStream(file.samplerate, rate, 1, quality="HQ")
        # Not more than the file contains: a damaged header could ask for all memory.
        for block in _decoded(file, max(1, min(round(seconds * file.samplerate), file.frames))):
            resampled = block if resampler is None else resampler.resample_chunk(block)
            given += len(resampled)
            if len(resampled):
                yield resampled
        if resampler is not None:
            # The samples that the filter still holds.
            rest = resampler.resample_chunk(np.empty(0, np.float32), last=True)
            given += len(rest)
            if len(rest):
                yield rest
    if not given:
        raise AudioError(f"it is so short that no sample is left at {rate:,} Hz")


def _decoded(file: Any, length: int) -> Iterator[NDArray[np.float32]]:
    """Yield the mean of the channels, in blocks of a given length; at least one sample."""
    start = 0
    while len(samples := _decode(file, length, start)):
        _check_finite(samples, file, start)
        start += len(samples)
        # A single channel needs no mean, which could overflow in float32.
        yield samples[:, 0] if samples.shape[1] == 1 else samples.mean(1, dtype=np.float64).astype(np.float32)
    if start == 0:
        raise AudioError("it has no samples")
    if file.format == "FLAC" and start < file.frames and not _is_unknown(file.frames):
        raise AudioError(f"it is cut short: it has {start:,} of the {file.frames:,} samples that its header states")


def _decode(file: Any, length: int, start: int) -> NDArray[np.float32]:  # -> (samples, channels)
    try:
        samples: NDArray[np.float32] = file.read(length, dtype="float32", always_2d=True)
    except soundfile.LibsndfileError as failure:
        raise AudioError(
            f"it is damaged or cut short, at or soon after {start / file.samplerate:.1f} s: {failure.error_string}"
        ) from failure
    return samples


def _check_finite(samples: NDArray[np.float32], file: Any, start: int) -> None:
    """Raise AudioError if there are NaN or infinite samples, with their total number in the rest of the file."""
    wrong = ~np.isfinite(samples)
    if not wrong.any():
        return
    first = start + int(wrong.any(1).argmax())
    number, total = np.count_nonzero(wrong), start * samples.shape[1] + samples.size
    while len(samples := _decode(file, len(samples), start)):
        number, total = number + np.count_nonzero(~np.isfinite(samples)), total + samples.size
    raise AudioError(
        f"{number:,} of its {total:,} samples are NaN or infinite; the first is sample {first:,}, at "
        f"{first / file.samplerate:.3f} s"
    )


@contextmanager
def _opened(source: str | Path | bytes) -> Iterator[Any]:
    # Opened here because libsndfile does not accept all file names.
    with BytesIO(source) if isinstance(source, bytes) else Path(source).open("rb") as stream:
        if stream.seek(0, os.SEEK_END) == 0:
            raise AudioError("the file is empty")
        stream.seek(0)
        with _recognised(stream) as file:
            if file.samplerate not in _RATES:
                raise AudioError(f"its header is damaged: it gives a sample rate of {file.samplerate:,} Hz")
            yield file


def _recognised(stream: Any) -> Any:
    try:
        return _ForwardFile(stream)
    except soundfile.LibsndfileError as failure:
        if failure.code == _UNRECOGNISED:
            raise AudioError("not a recording that can be read (supported: WAV, FLAC, OGG, MP3 and AIFF)") from failure
        raise AudioError(f"it is damaged or cut short: {failure.error_string}") from failure
    except TypeError as failure:
        # soundfile treats every file that ends in .raw as samples without a header.
        raise AudioError("a .raw file does not contain its sample rate: save it as WAV or FLAC") from failure


def _is_unknown(frames: int) -> bool:
    return frames >= 2**62
