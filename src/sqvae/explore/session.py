"""The state of one browser tab: an example, its codes, and the replacements in them."""

import math
from dataclasses import replace
from typing import NamedTuple

from torch import Tensor

from sqvae.explore.explorer import Explorer
from sqvae.metrics.meanings import bits_apart
from sqvae.modalities.exploring import Example
from sqvae.modalities.views import BY_PRIOR, CodedExample

UNDO_STEPS = 200
"""The largest number of changes that can be undone."""


class CurrentExample(NamedTuple):
    """The example of a tab."""

    example: Example
    """The example as it was loaded."""
    coded: CodedExample
    """The example with the current codes and their reconstruction."""
    own: Tensor
    """The example's own codes, before any replacement."""


class Session:
    """The state of one tab, independent of all other tabs.

    The model runs in a thread of its own. Therefore an example is always replaced together with its codes, in one
    assignment, so that the page never shows an example with the codes of another.

    Arguments:
        explorer: the state that all tabs share.
    """

    def __init__(self, explorer: Explorer) -> None:
        self.explorer = explorer
        self.current: CurrentExample | None = None
        self._selected: int | None = None
        self._history: list[Tensor] = []

    def show(self, example: Example) -> None:
        """Show another example. The selected position is kept if the example has it."""
        coded = self.explorer.viewer.view(example)
        self.current, self._history = CurrentExample(example, coded, coded.codes), []

    @property
    def example(self) -> Example | None:
        """The current example, if there is one."""
        return None if self.current is None else self.current.example

    @property
    def codes(self) -> Tensor:  # (h, w) or (n,)
        """The current codes."""
        assert self.current is not None
        return self.current.coded.codes

    @property
    def selected(self) -> int | None:
        """The selected position, as an index into the flattened codes."""
        return None if self.current is None else self.selected_in(self.current)

    def selected_in(self, current: CurrentExample) -> int | None:
        """The selected position in an example that may no longer be the current one."""
        position = self._selected
        return None if position is None or position >= current.own.numel() else position

    @property
    def changes(self) -> int:
        """The number of positions whose code is not the example's own."""
        current = self.current
        return 0 if current is None else int((current.coded.codes != current.own).sum())

    @property
    def can_undo(self) -> bool:
        """Whether there is a change to undo."""
        return bool(self._history)

    @property
    def code(self) -> int | None:
        """The code at the selected position."""
        current = self.current
        position = None if current is None else self.selected_in(current)
        return None if current is None or position is None else int(current.coded.codes.flatten()[position])

    def select(self, position: int) -> None:
        """Select a position of the map."""
        self._check_position(position)
        self._selected = position

    def _check_position(self, position: int) -> None:
        if not 0 <= position < self.codes.numel():
            raise ValueError(f"there is no position {position}: positions are 0 to {self.codes.numel() - 1:,}")

    def replace(self, code: int, position: int | None, *, everywhere: bool = False) -> None:
        """Replace the code at a position, or all codes equal to it.

        Arguments:
            code: the new code.
            position: the position that was selected at the time of the request; another may be selected now.
            everywhere: replace the code at all positions that have it.
        """
        if position is None or self.current is None:
            raise ValueError("select a position in the map first")
        self._check_position(position)
        if not 0 <= code < self.explorer.size:
            raise ValueError(f"there is no code {code}: codes are 0 to {self.explorer.size - 1:,}")
        changed = self.codes.clone()
        if everywhere:
            changed[changed == changed.view(-1)[position]] = code
        else:
            changed.view(-1)[position] = code
        if not changed.equal(self.codes):
            self._history = [*self._history, self.codes][-UNDO_STEPS:]
            self._set_codes(changed)

    def undo(self) -> None:
        """Undo the last change."""
        if self._history:
            self._set_codes(self._history.pop())

    def reset(self) -> None:
        """Restore the example's own codes. This can be undone, too."""
        if self.current is not None and self.changes:
            self._history = [*self._history, self.codes][-UNDO_STEPS:]
            self._set_codes(self.current.own)

    def _set_codes(self, codes: Tensor) -> None:
        assert self.current is not None
        example, _, own = self.current
        self.current = CurrentExample(example, self.explorer.viewer.view(example, codes), own)

    def cost_text(self) -> str:
        """The cost of the codes in bits, as text."""
        assert self.current is not None
        coded = self.current.coded
        number, size, bits = coded.codes.numel(), self.explorer.size, coded.bits
        uniform = number * math.log2(size)
        rate = self.explorer.viewer.rate(bits, coded.codes)
        if coded.bits_by == BY_PRIOR:
            without_prior = f"{uniform:,.0f} bits if all codes were equally likely"
            return f"{number:,} codes: {bits:,.0f} bits by the prior, {rate} ({without_prior})"
        return f"{number:,} codes of log2({size:,}) = {math.log2(size):.3g} bits: {bits:,.0f} bits, {rate}"

    def cost_note(self) -> str:
        """An explanation of why a file of codes can have another size."""
        likely = "the prior" if self.explorer.prior is not None else "how often each is used"
        return "" if self.explorer.size < 2 else bits_apart(self.explorer.size, likely)

    def change_voice(self, voice: str) -> None:
        """Decode the same codes in the voice of another speaker, for speech."""
        if self.current is not None:
            before, coded, own = self.current
            example = replace(before, voice=voice)
            self.current = CurrentExample(example, self.explorer.viewer.view(example, coded.codes), own)
