r"""Gumbel noise in blocks, reproducible from one seed, as fast as the arithmetic around it.

A relaxed categorical sample needs one Gumbel variable per position and code. On the CPU, torch draws uniform numbers
one after the other from a Mersenne twister, which costs as much as three matrix products of the same size. So there
only every sixteenth block is drawn that way, and in between each cell of the block runs a linear congruential generator
of its own, all of them together in vector instructions. The map is one-to-one on 32-bit words, so the cells of a block
remain exactly as independent and as uniform as torch's own words; what the generator must do well is to make a cell's
few successive values independent. Its multiplier was searched for that: at every distance that occurs, the pairs'
lattice is within 25% of the finest there is (the spectral test in two dimensions), and only the upper 24 bits are used.
Accelerators draw in parallel as they are.
"""

import torch
from torch import Tensor

MULTIPLIER = 764243973
BLOCKS_PER_DRAW = 16
_INCREMENT = 1013904223  # any odd number


def draw_seed() -> Tensor:  # -> ()
    """A seed from torch's global generator, so that `torch.manual_seed` governs everything that follows from it."""
    return torch.randint(-(2**62), 2**62, (), device="cpu")


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
        self._blocks = 0
        if self._vectorized:
            self._words = torch.empty((rows * columns + 1) // 2, dtype=torch.int64, device=device)
            self._state = self._words.view(torch.int32)[: rows * columns].view(rows, columns)
            self._upper = torch.empty_like(self._state)

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
        if self._blocks % BLOCKS_PER_DRAW == 0:
            self._words.random_(-(2**63), None, generator=self._generator)
        self._blocks += 1
        state, upper = self._state[: len(block)], self._upper[: len(block)]
        state.mul_(MULTIPLIER).add_(_INCREMENT)
        block.copy_(torch.bitwise_right_shift(state, 8, out=upper).bitwise_and_(0xFFFFFF))
        block.add_(0.25).mul_(-(2.0**-24))
