"""The beginning of a recording from the bytes of a file that a person chose, in bounded memory, or a reason why not."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from sqvae.data.speech import LogMel, audio_blocks
from sqvae.modalities.exploring import RefusedError

LONGEST = 20
"""Seconds of a recording that are looked at."""

FEWEST_FRAMES = 4
"""Of a recording."""

_BLOCK = 0.25
"""Seconds that are decoded at a time: a hostile header may have a thousand channels."""


class Recorded(NamedTuple):
    """The beginning of a recording."""

    frames: Tensor
    """(T, mels), in dB."""
    samples: NDArray[np.float32]
    """(n,), at the rate of the features."""
    longer: bool
    """Whether there is more of it."""


def sound_from(content: bytes, features: LogMel) -> Recorded:
    """The beginning of a recording."""
    most = LONGEST * features.rate
    blocks, number = [], 0
    try:
        for block in audio_blocks(content, features.rate, _BLOCK):
            blocks.append(block)
            number += len(block)
            if number > most:
                break
    except Exception as broken:
        raise RefusedError(str(broken) or type(broken).__name__) from broken
    samples = np.concatenate(blocks)[:most]
    if features.frames_of(len(samples)) < FEWEST_FRAMES:
        least = (FEWEST_FRAMES - 1) * features.seconds_per_frame
        raise RefusedError(f"it is too short: {len(samples) / features.rate:.3f} s, and {least:.2f} s are the least")
    return Recorded(features(samples), samples, number > most)
