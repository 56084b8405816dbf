"""What one tab of the page looks at: an example, its codes, and the changes that were made to them."""

import math

from torch import Tensor

from sqvae.experiment.views import BY_PRIOR, Seen
from sqvae.explore.explorer import Explorer
from sqvae.explore.kinds import Example

REMEMBERED = 200
"""Changes that can be undone."""


class Session:
    """One tab's state. Tabs don't know of each other.

    Arguments:
        explorer: what all of them share.
    """

    def __init__(self, explorer: Explorer) -> None:
        self.explorer = explorer
        self.example: Example | None = None
        self.seen: Seen | None = None
        """The example through the codes as they are now."""
        self.own: Tensor | None = None
        """The example's own codes."""
        self.selected: int | None = None
        """A place in the map, counted row by row."""
        self._past: list[Tensor] = []

    def show(self, example: Example) -> None:
        """Look at another example; the selected place stays, if there is one like it."""
        self.seen = self.explorer.kind.see(example)
        self.example, self.own, self._past = example, self.seen.codes, []
        if self.selected is not None and self.selected >= self.own.numel():
            self.selected = None

    @property
    def codes(self) -> Tensor:  # (h, w) or (n,)
        """As they are now."""
        assert self.seen is not None
        return self.seen.codes

    @property
    def changes(self) -> int:
        """How many places have another code than the example's own."""
        return 0 if self.own is None else int((self.codes != self.own).sum())

    @property
    def can_undo(self) -> bool:
        """Whether there is a change to take back."""
        return bool(self._past)

    @property
    def code(self) -> int | None:
        """At the selected place."""
        return None if self.selected is None or self.seen is None else int(self.codes.flatten()[self.selected])

    def select(self, place: int) -> None:
        """Choose a place of the map."""
        if not 0 <= place < self.codes.numel():
            raise ValueError(f"there is no place {place} among {self.codes.numel():,}")
        self.selected = place

    def replace(self, code: int, *, everywhere: bool = False) -> None:
        """Put another code at the selected place, or wherever the code of that place stands."""
        if self.selected is None or self.code is None:
            raise ValueError("choose a place in the map first")
        if not 0 <= code < self.explorer.size:
            raise ValueError(f"there is no code {code}: they are 0 to {self.explorer.size - 1:,}")
        changed = self.codes.clone()
        if everywhere:
            changed[changed == self.code] = code
        else:
            changed.view(-1)[self.selected] = code
        if not changed.equal(self.codes):
            self._past = [*self._past, self.codes][-REMEMBERED:]
            self._look_at(changed)

    def undo(self) -> None:
        """Take the last change back."""
        if self._past:
            self._look_at(self._past.pop())

    def reset(self) -> None:
        """Go back to the example's own codes; this can be undone, too."""
        if self.own is not None and self.changes:
            self._past = [*self._past, self.codes][-REMEMBERED:]
            self._look_at(self.own)

    def _look_at(self, codes: Tensor) -> None:
        assert self.example is not None
        self.seen = self.explorer.kind.see(self.example, codes)

    def cost(self) -> str:
        """What the codes cost, in words."""
        assert self.seen is not None
        number, size, bits = self.codes.numel(), self.explorer.size, self.seen.bits
        alike = number * math.log2(size)
        rate = self.explorer.kind.rate(bits, self.codes)
        if self.seen.bits_by == BY_PRIOR:
            return f"{number:,} codes: {bits:,.0f} bits by the prior, {rate} ({alike:,.0f} if all were alike)"
        return f"{number:,} codes of log2({size:,}) = {math.log2(size):.3g} bits: {bits:,.0f} bits, {rate}"

    def spoken(self, voice: str) -> None:
        """Of speech: hear the same codes in another voice."""
        if self.example is not None:
            self.example = Example(self.example.data, self.example.name, voice, self.example.note)
            self._look_at(self.codes)
