"""A range coder: codes to bytes and back, given the interval of each code within 0 ... `TOTAL`, without rounding.

The coder is constriction's. It takes probabilities as floats, distributes :math:`2^{24} - n` over n symbols in
proportion, and adds 1 to each. It is given frequencies minus 1, whose sum is exactly that: its factor is exactly 1, and
its sums are of integers far below 2^53. So the frequency of a symbol is the given one, on every machine.

Encoding needs three symbols only: everything below the code, the code, and everything above. The guards at either end
ensure that there is always something below and above; they also make a codebook of one code an ordinary case.
"""

from typing import Any

import numpy as np
from constriction import stream
from numpy.typing import NDArray

from sqvae.codec.frequencies import TOTAL, Integers
from sqvae.codec.writing import DamageError

_WORD, _STATE = 4, 8
_FAMILY = stream.model.Categorical(perfect=False)


def range_encode(left: Integers, right: Integers) -> bytes:  # (N,), (N,)
    """The bytes of a sequence of codes, from the start and end of the interval of each code."""
    encoder = stream.queue.RangeEncoder()
    shares = np.stack([left, right - left, TOTAL - right], axis=1) - 1
    encoder.encode(np.ones(len(left), dtype=np.int32), _FAMILY, shares.astype(np.float64))
    return _shortest(encoder)


def _shortest(encoder: Any) -> bytes:
    """The fewest bytes that, followed by zeros, lie in the encoder's interval.

    The interval begins at the encoder's state, after the words that are final. The encoder's own words are a point of
    the interval: if the state seems to be beyond that point, a carry has gone into the words, and is undone.
    """
    words: NDArray[np.uint32] = encoder.get_compressed()
    settled: int
    settled, (lower, width) = encoder.pos()
    length = _WORD * settled + _STATE
    point = int.from_bytes(words.astype(">u4").tobytes().ljust(length, b"\0"), "big")
    low: int = (point >> 8 * _STATE << 8 * _STATE) + lower
    if low > point:
        low -= 1 << 8 * _STATE
    kept, number = length, low
    while kept:
        shorter = -(-low >> 8 * (length - kept + 1))  # rounded up
        if shorter << 8 * (length - kept + 1) >= low + width:
            break
        kept, number = kept - 1, shorter
    return number.to_bytes(kept, "big")


class RangeSource:
    """Reads the output of `range_encode` in the same order.

    Arguments:
        payload: the bytes.
    """

    def __init__(self, payload: bytes) -> None:
        padded = payload.ljust(-(-len(payload) // _WORD) * _WORD, b"\0")
        self._decoder = stream.queue.RangeDecoder(np.frombuffer(padded, dtype=">u4").astype(np.uint32))

    def take(self, edges: Integers) -> Integers:  # (N, K + 1) -> (N,)
        """The next codes, each with its own edges."""
        return self._checked(edges.shape[-1] - 1, _FAMILY, _shares(edges))

    def take_alike(self, edges: Integers, count: int) -> Integers:  # (K + 1,) -> (count,)
        """The next `count` codes, all with the same edges."""
        model = stream.model.Categorical(_shares(edges), lazy=False, perfect=False)
        return self._checked(len(edges) - 1, model, count)

    def _checked(self, size: int, *model: object) -> Integers:
        try:
            codes = self._decoder.decode(*model).astype(np.int64) - 1
        except AssertionError as failure:  # raised by constriction for bytes that no encoder writes
            raise DamageError("its bytes don't encode any codes") from failure
        if bool(((codes < 0) | (codes >= size)).any()):
            raise DamageError("its bytes encode codes that don't exist")
        return codes  # type: ignore[no-any-return]


def _shares(edges: Integers) -> NDArray[np.float64]:  # (..., K + 1) -> (..., K + 2)
    """The frequencies of the guard below, the codes and the guard above, minus 1 each."""
    shares = np.diff(edges, axis=-1, prepend=0, append=TOTAL) - 1
    return np.ascontiguousarray(shares, dtype=np.float64)
