"""What one tab of the page looks at: an example, its codes, and the changes that were made to them."""

import math
from dataclasses import replace
from typing import NamedTuple

from torch import Tensor

from sqvae.explore.explorer import Explorer
from sqvae.metrics.meanings import bits_apart
from sqvae.modalities.exploring import Example
from sqvae.modalities.views import BY_PRIOR, Seen

REMEMBERED = 200
"""Changes that can be undone."""


class Looked(NamedTuple):
    """An example as it is looked at."""

    example: Example
    seen: Seen
    """The example through the codes as they are now."""
    own: Tensor
    """The example's own codes."""


class Session:
    """One tab's state. Tabs don't know of each other.

    The model answers in a thread of its own, and what it shows is put in place at once, so that nobody finds an example
    beside the codes of another.

    Arguments:
        explorer: what all of them share.
    """

    def __init__(self, explorer: Explorer) -> None:
        self.explorer = explorer
        self.looked: Looked | None = None
        self._selected: int | None = None
        self._past: list[Tensor] = []

    def show(self, example: Example) -> None:
        """Look at another example; the selected place stays, if there is one like it."""
        seen = self.explorer.kind.see(example)
        self.looked, self._past = Looked(example, seen, seen.codes), []

    @property
    def example(self) -> Example | None:
        """What is looked at."""
        return None if self.looked is None else self.looked.example

    @property
    def codes(self) -> Tensor:  # (h, w) or (n,)
        """As they are now."""
        assert self.looked is not None
        return self.looked.seen.codes

    @property
    def selected(self) -> int | None:
        """A place in the map, counted row by row."""
        return None if self.looked is None else self.selected_in(self.looked)

    def selected_in(self, looked: Looked) -> int | None:
        """The same for what was looked at when the caller asked: something else may be by now."""
        place = self._selected
        return None if place is None or place >= looked.own.numel() else place

    @property
    def changes(self) -> int:
        """How many places have another code than the example's own."""
        looked = self.looked
        return 0 if looked is None else int((looked.seen.codes != looked.own).sum())

    @property
    def can_undo(self) -> bool:
        """Whether there is a change to take back."""
        return bool(self._past)

    @property
    def code(self) -> int | None:
        """At the selected place."""
        looked = self.looked
        place = None if looked is None else self.selected_in(looked)
        return None if looked is None or place is None else int(looked.seen.codes.flatten()[place])

    def select(self, place: int) -> None:
        """Choose a place of the map."""
        self._check_place(place)
        self._selected = place

    def _check_place(self, place: int) -> None:
        if not 0 <= place < self.codes.numel():
            raise ValueError(f"there is no place {place} among {self.codes.numel():,}")

    def replace(self, code: int, place: int | None, *, everywhere: bool = False) -> None:
        """Put another code at a place, or wherever the code of that place stands.

        Arguments:
            place: that was selected when it was asked for; another may be by now.
        """
        if place is None or self.looked is None:
            raise ValueError("choose a place in the map first")
        self._check_place(place)
        if not 0 <= code < self.explorer.size:
            raise ValueError(f"there is no code {code}: they are 0 to {self.explorer.size - 1:,}")
        changed = self.codes.clone()
        if everywhere:
            changed[changed == changed.view(-1)[place]] = code
        else:
            changed.view(-1)[place] = code
        if not changed.equal(self.codes):
            self._past = [*self._past, self.codes][-REMEMBERED:]
            self._look_at(changed)

    def undo(self) -> None:
        """Take the last change back."""
        if self._past:
            self._look_at(self._past.pop())

    def reset(self) -> None:
        """Go back to the example's own codes; this can be undone, too."""
        if self.looked is not None and self.changes:
            self._past = [*self._past, self.codes][-REMEMBERED:]
            self._look_at(self.looked.own)

    def _look_at(self, codes: Tensor) -> None:
        assert self.looked is not None
        example, _, own = self.looked
        self.looked = Looked(example, self.explorer.kind.see(example, codes), own)

    def cost(self) -> str:
        """What the codes cost, in words."""
        assert self.looked is not None
        seen = self.looked.seen
        number, size, bits = seen.codes.numel(), self.explorer.size, seen.bits
        uniform = number * math.log2(size)
        rate = self.explorer.kind.rate(bits, seen.codes)
        if seen.bits_by == BY_PRIOR:
            without = f"{uniform:,.0f} if all codes were equally likely"
            return f"{number:,} codes: {bits:,.0f} bits by the prior, {rate} ({without})"
        return f"{number:,} codes of log2({size:,}) = {math.log2(size):.3g} bits: {bits:,.0f} bits, {rate}"

    def cost_apart(self) -> str:
        """Why that is not what a file takes."""
        likely = "the prior" if self.explorer.prior is not None else "how often each is used"
        return "" if self.explorer.size < 2 else bits_apart(self.explorer.size, likely)

    def spoken(self, voice: str) -> None:
        """Of speech: hear the same codes in another voice."""
        if self.looked is not None:
            before, seen, own = self.looked
            example = replace(before, voice=voice)
            self.looked = Looked(example, self.explorer.kind.see(example, seen.codes), own)
