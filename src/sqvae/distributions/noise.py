r"""Fast Gumbel noise in blocks of rows, each of which depends only on a seed and its position.

A relaxed categorical sample needs one Gumbel variable per position and code. On the CPU, torch draws uniform numbers
one after the other from a Mersenne twister, which costs as much as three matrix products of the same size. Therefore
only every sixteenth block is drawn that way on the CPU. In between, each cell of the block runs its own linear
congruential generator, in vector instructions for all cells. The map is one-to-one on 32-bit words, so the cells of a
block remain exactly as independent and as uniform as torch's own words. What the generator must ensure is that the few
successive values of a cell are independent. Its multiplier was chosen by a search for that: at every distance that
occurs, the lattice of pairs is within 25% of the finest possible (the spectral test in two dimensions), and only the
upper 24 bits are used. Accelerators draw every block directly, in parallel.

Every draw has its own seed, so a process that works on the later rows of a batch need not draw the earlier ones.
"""

import torch
from torch import Tensor

MULTIPLIER = 764243973
BLOCKS_PER_DRAW = 16
_INCREMENT = 1013904223  # any odd number


def draw_seed() -> Tensor:  # -> ()
    """A seed from torch's global generator, so that `torch.manual_seed` determines all of the noise."""
    return torch.randint(-(2**62), 2**62, (), device="cpu")


def scrambled(seed: int, index: int) -> int:
    """Word number `index` of SplitMix64 (Steele et al., 2014) from a seed. Neighbouring indices or seeds are unrelated.

    On a CPU, torch's generator uses its lower 32 bits.
    """
    mask = 2**64 - 1
    word = (seed + (index + 1) * 0x9E3779B97F4A7C15) & mask
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & mask
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB & mask
    return word ^ (word >> 31)


class GumbelBlocks:
    r"""Rows of the *negative* of standard Gumbel noise, :math:`\log(-\log U)`.

    It is negative because callers subtract it: :math:`l + g = l - \log(-\log U)`. Two objects with equal arguments give
    equal rows, in whichever order they are requested. So a backward pass can reproduce the noise of its forward pass,
    and each of several processes gets the rows of its own slice of a batch.

    Arguments:
        seed: a seed from :func:`draw_seed`.
        rows, columns: the shape of all of the noise.
        height: number of rows in a block; the last block may have fewer.
    """

    def __init__(
        self, seed: int, rows: int, columns: int, dtype: torch.dtype, device: torch.device, *, height: int
    ) -> None:
        self._seed = seed
        self._rows = rows
        self._height = height
        self._generator = torch.Generator(device)
        self._noise = torch.empty(height, columns, dtype=dtype, device=device)
        self._vectorized = device.type == "cpu"
        self._block = -1  # the block that the state (or, on accelerators, the noise) belongs to
        if self._vectorized:
            self._words = torch.empty((height * columns + 1) // 2, dtype=torch.int64, device=device)
            self._state = self._words.view(torch.int32)[: height * columns].view(height, columns)
            self._upper = torch.empty_like(self._state)

    def rows(self, start: int, stop: int) -> Tensor:  # -> (stop - start, columns)
        """Rows of one block. The next call overwrites them; ascending order is fastest."""
        block, first = divmod(start, self._height)
        last = first + stop - start
        if self._vectorized:
            self._move_to(block)
            return self._from_state(self._noise[first:last], self._state[first:last], self._upper[first:last])
        if block != self._block:
            self._draw(block)
        return self._noise[first:last]

    def _draw(self, block: int) -> None:
        """Draw a whole block, because the value of a cell depends on how many are drawn at once."""
        self._block = block
        noise = self._noise[: self._rows - block * self._height]
        noise.uniform_(generator=self._generator.manual_seed(scrambled(self._seed, block)))
        noise.clamp_min_(2.0**-25).neg_().log1p_().neg_().log_()

    def _move_to(self, block: int) -> None:
        """Advance every cell's generator to a block. A draw gives the state before the first of sixteen blocks."""
        if block == self._block:
            return
        draw, place = divmod(block, BLOCKS_PER_DRAW)
        steps = block - self._block
        if draw != self._block // BLOCKS_PER_DRAW or steps < 0:
            self._words.random_(-(2**63), None, generator=self._generator.manual_seed(scrambled(self._seed, draw)))
            steps = place + 1
        multiplier, increment = _after(steps)
        self._state.mul_(multiplier).add_(increment)
        self._block = block

    def _from_state(self, noise: Tensor, state: Tensor, upper: Tensor) -> Tensor:
        """Compute noise from :math:`-(i + 1/4) / 2^{24}` for uniform 24-bit integers i, never 0 or -1 in float32."""
        noise.copy_(torch.bitwise_right_shift(state, 8, out=upper).bitwise_and_(0xFFFFFF))
        return noise.add_(0.25).mul_(-(2.0**-24)).log1p_().neg_().log_()


def _after(steps: int) -> tuple[int, int]:
    """Multiplier and increment of several steps of the generator in one, as signed 32-bit words."""
    multiplier, increment = 1, 0
    for _ in range(steps):
        multiplier, increment = multiplier * MULTIPLIER, increment * MULTIPLIER + _INCREMENT
    return _signed(multiplier), _signed(increment)


def _signed(word: int) -> int:
    return (word + 2**31) % 2**32 - 2**31
