r"""Gumbel noise in blocks, reproducible from one seed, as fast as the arithmetic around it.

A relaxed categorical sample needs one Gumbel variable per position and code. On the CPU, torch draws uniform numbers
one after the other from a Mersenne twister, which costs as much as three matrix products of the same size. So there
each cell of a block runs a SplitMix generator of its own (Steele, Lea and Flood, 2014: a Weyl sequence behind a mixing
function) that starts at a word of torch's generator, and all cells advance together in vector instructions. The mixing
constants are those of Wellons' search for 32-bit functions of low bias. Accelerators draw in parallel as they are.
"""

import torch
from torch import Tensor

_WEYL = -1640531527  # 2^32 / golden ratio, made odd, as a signed word
_MIX = (2146121005, -2073254261)  # 0x7feb352d, 0x846ca68b
_STEPS_PER_START = 16  # a cell starts anew at a fresh word after so many steps: streams stay too short to meet


def draw_seed() -> Tensor:  # -> ()
    """A seed from torch's global generator, so that `torch.manual_seed` governs everything that follows from it."""
    return torch.randint(-(2**62), 2**62, ())


class GumbelBlocks:
    r"""Successive blocks of the *negative* of standard Gumbel noise, :math:`\log(-\log U)`.

    The negative, because callers subtract it: :math:`l + g = l - \log(-\log U)`. Two objects with equal arguments give
    equal blocks in the same order, which is how a backward pass meets the noise of its forward pass again.

    Arguments:
        seed: from :func:`draw_seed`.
        rows, columns: the largest block that will be asked for.
    """

    def __init__(self, seed: int, rows: int, columns: int, dtype: torch.dtype, device: torch.device) -> None:
        self._generator = torch.Generator(device).manual_seed(seed)
        self._block = torch.empty(rows, columns, dtype=dtype, device=device)
        self._vectorized = device.type == "cpu"
        self._steps = 0
        if self._vectorized:
            self._words = torch.empty((rows * columns + 1) // 2, dtype=torch.int64)
            self._state = self._words.view(torch.int32)[: rows * columns].view(rows, columns)
            self._mixed = torch.empty_like(self._state)
            self._shifted = torch.empty_like(self._state)

    def next(self, rows: int) -> Tensor:  # -> (rows, columns)
        """The next block. It is overwritten by the call after this one, and the caller may write over it too."""
        block = self._block[:rows]
        if self._vectorized:
            self._fill_vectorized(block)
        else:
            block.uniform_(generator=self._generator).clamp_min_(2.0**-25).neg_()
        return block.log1p_().neg_().log_()

    def _fill_vectorized(self, block: Tensor) -> None:
        """Fill with :math:`-(i + 1/4) / 2^{24}` for uniform 24-bit integers i: never 0, never -1, even in float32."""
        rows = len(block)
        if self._steps % _STEPS_PER_START == 0:
            self._words.random_(-(2**63), None, generator=self._generator)
        self._steps += 1
        word = torch.add(self._state[:rows], _wrap(self._steps * _WEYL), out=self._mixed[:rows])
        shifted = self._shifted[:rows]
        for shift, factor in zip((16, 15), _MIX, strict=True):
            _xor_shift(word, shift, shifted).mul_(factor)
        _xor_shift(word, 16, shifted)
        block.copy_(torch.bitwise_right_shift(word, 8, out=shifted).bitwise_and_(0xFFFFFF))
        block.add_(0.25).mul_(-(2.0**-24))


def _wrap(value: int) -> int:
    """The signed 32-bit word that equals the value modulo 2^32."""
    return (value + 2**31) % 2**32 - 2**31


def _xor_shift(word: Tensor, shift: int, scratch: Tensor) -> Tensor:
    """word ^= word >>> shift: torch shifts signed words arithmetically, so the copies of the sign are masked away."""
    torch.bitwise_right_shift(word, shift, out=scratch).bitwise_and_(2 ** (32 - shift) - 1)
    return word.bitwise_xor_(scratch)
