"""The part of the page where examples are made up: drawn from the prior, or between two pictures."""

from typing import TYPE_CHECKING

from nicegui import ui
from torch import Tensor

from sqvae.explore.drawings import picture
from sqvae.explore.parts import box, button, card, complained, drop_zone, markup, text
from sqvae.explore.session import Session

if TYPE_CHECKING:
    from sqvae.modalities.exploring import Example

NUMBERS = [4, 16, 36]
"""Of examples that are drawn at once."""

STEPS = 7
"""From one picture to another, both included."""


class Making:
    """What the model makes up.

    Arguments:
        session: whose example the way between two begins at.
        address: where the file for its end is sent.
    """

    def __init__(self, session: Session, address: str) -> None:
        self.session = session
        self.explorer = session.explorer
        self.end: Example | None = None
        self._held_out = 1
        with box("stack"):
            self._sampling()
            if not self.explorer.kind.voices:
                self._interpolation(address)

    def _sampling(self) -> None:
        kind, prior = self.explorer.kind, self.explorer.prior
        with card(f"New {kind.noun}s", "Codes drawn from the prior one after the other, and decoded."):
            if prior is None:
                command = f"sqvae train-prior {self.explorer.run}"
                text(f"There is no prior over the codes of this run: train one with `{command}`.", "quiet")
                return
            with box("line").style("margin: .6rem 0"):
                numbers = [4] if kind.wide else NUMBERS
                self.number = ui.select(numbers, value=numbers[-1] if kind.wide else 16, label="how many")
                self.temperature = ui.number("temperature", value=1.0, min=0, max=2, step=0.1)
                self.seed = ui.number("seed", value=0, min=0, precision=0)
                for field in (self.number, self.temperature, self.seed):
                    field.props("dense outlined").classes("narrow")
                self.classes = None
                if prior.class_names:
                    self.classes = ui.select(["all", *prior.class_names], value="all", label="class")
                    self.classes.props("dense outlined")
                button("Draw", self._draw, strong=True)
            text("A lower temperature draws likelier, less various ones. The same seed gives the same.", "quiet small")
            self.samples = markup(kinds="made wide" if kind.wide else "made").style("margin-top: .6rem")

    async def _draw(self) -> None:
        await complained(self.draw())

    async def draw(self) -> None:
        """Draw examples, and show them."""
        number, seed = int(self.number.value), int(self.seed.value or 0)
        temperature = min(max(float(self.temperature.value or 0), 0.0), 2.0)
        chosen = None if self.classes is None or self.classes.value == "all" else [str(self.classes.value)]
        shown = await self.explorer.work(self._drawn, number, temperature, seed, chosen)
        wide = self.explorer.kind.wide
        noun = self.explorer.kind.noun
        self.samples.set_content(
            "".join(picture(one, f"New {noun} {place}", wide=wide) for place, one in enumerate(shown, 1))
        )

    def _drawn(self, number: int, temperature: float, seed: int, classes: list[str] | None) -> list[Tensor]:
        prior, kind = self.explorer.prior, self.explorer.kind
        assert prior is not None
        codes = prior.sample(number, shape=kind.shape_drawn(), classes=classes, temperature=temperature, seed=seed)
        return [kind.decoded(one) for one in codes]

    def _interpolation(self, address: str) -> None:
        noun = self.explorer.kind.noun
        note = f"From the {noun} that you look at to another one, by the codes nearest to points between them."
        with card(f"Between two {noun}s", note), box("stack").style("margin-top: .6rem"):
            with drop_zone(address, f"Drop the second {noun} here, or choose a file.", self.explorer.kind.accept):
                if self.explorer.held_out is not None:
                    button(f"Another held-out {noun}", self._another)
            self.between = markup(kinds="between")
            self.said = text(kinds="quiet small")

    async def _another(self) -> None:
        index, self._held_out = self._held_out, self._held_out + 1
        self.end = await self.explorer.work(self.explorer.example, index)
        await self.refresh()

    async def refresh(self) -> None:
        """Show the way between the two, if both are there."""
        kind, start, end = self.explorer.kind, self.session.example, self.end
        if start is None or end is None:
            return
        shown = await self.explorer.work(kind.between, start, end, STEPS)
        if shown is None:
            return
        self.between.set_content(
            "".join(picture(one, f"Step {place} of {STEPS}") for place, one in enumerate(shown, 1))
        )
        first, second = (one.name + (f" ({one.note})" if one.note else "") for one in (start, end))
        self.said.set_text(f"From {first} to {second}, in {STEPS} steps.")
