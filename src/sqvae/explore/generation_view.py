"""The generation tab: samples of the prior, and interpolations between two examples."""

from typing import TYPE_CHECKING

from nicegui import ui
from torch import Tensor

from sqvae.explore.drawings import image_svg
from sqvae.explore.parts import box, button, card, drop_zone, markup, show_errors, text
from sqvae.explore.session import Session

if TYPE_CHECKING:
    from sqvae.modalities.exploring import Example

NUMBERS = [4, 16, 36]
"""The numbers of samples that can be drawn at once."""

STEPS = 7
"""The number of images of an interpolation, including both ends."""


class GenerationView:
    """Samples of a model and interpolations.

    Arguments:
        session: the session of the tab, whose example is the first end of an interpolation.
        address: the URL that receives files for the second end.
    """

    def __init__(self, session: Session, address: str) -> None:
        self.session = session
        self.explorer = session.explorer
        self.end: Example | None = None
        self._held_out = 1
        with box("stack"):
            self._build_sampling()
            if not self.explorer.viewer.voices:
                self._build_interpolation(address)

    def _build_sampling(self) -> None:
        viewer, prior = self.explorer.viewer, self.explorer.prior
        with card(f"New {viewer.noun}s", "Decoded from codes that are sampled from the prior."):
            if prior is None:
                command = f"sqvae train-prior {self.explorer.run}"
                text(f"This run has no prior over its codes. Train one with `{command}`.", "quiet")
                return
            with box("line").style("margin: .6rem 0"):
                numbers = [4] if viewer.wide else NUMBERS
                self.number = ui.select(numbers, value=numbers[-1] if viewer.wide else 16, label="number")
                self.temperature = ui.number("temperature", value=1.0, min=0, max=2, step=0.1)
                self.seed = ui.number("seed", value=0, min=0, precision=0)
                for field in (self.number, self.temperature, self.seed):
                    field.props("dense outlined").classes("narrow")
                self.classes = None
                if prior.class_names:
                    self.classes = ui.select(["all", *prior.class_names], value="all", label="class")
                    self.classes.props("dense outlined")
                button("Sample", self._sample, strong=True)
            text(
                "A lower temperature gives likelier and less diverse samples. The same seed gives the same samples.",
                "quiet small",
            )
            self.samples = markup(classes="made wide" if viewer.wide else "made").style("margin-top: .6rem")

    async def _sample(self) -> None:
        await show_errors(self.sample())

    async def sample(self) -> None:
        """Draw samples from the prior and show them."""
        number, seed = int(self.number.value), int(self.seed.value or 0)
        temperature = min(max(float(self.temperature.value or 0), 0.0), 2.0)
        classes = None if self.classes is None or self.classes.value == "all" else [str(self.classes.value)]
        images = await self.explorer.in_worker(self._sampled_images, number, temperature, seed, classes)
        wide = self.explorer.viewer.wide
        noun = self.explorer.viewer.noun
        self.samples.set_content(
            "".join(image_svg(image, f"New {noun} {number}", wide=wide) for number, image in enumerate(images, 1))
        )

    def _sampled_images(self, number: int, temperature: float, seed: int, classes: list[str] | None) -> list[Tensor]:
        prior, viewer = self.explorer.prior, self.explorer.viewer
        assert prior is not None
        codes = prior.sample(number, shape=viewer.sample_shape(), classes=classes, temperature=temperature, seed=seed)
        return [viewer.decoded(one) for one in codes]

    def _build_interpolation(self, address: str) -> None:
        noun = self.explorer.viewer.noun
        note = f"From the current {noun} to a second one, decoded from the codes nearest to interpolated encodings."
        with card(f"Interpolation between two {noun}s", note), box("stack").style("margin-top: .6rem"):
            with drop_zone(address, f"Drop the second {noun} here, or choose a file.", self.explorer.viewer.accept):
                if self.explorer.held_out is not None:
                    button(f"Another held-out {noun}", self._another)
            self.images = markup(classes="between")
            self.summary = text(classes="quiet small")

    async def _another(self) -> None:
        index, self._held_out = self._held_out, self._held_out + 1
        self.end = await self.explorer.in_worker(self.explorer.example, index)
        await self.refresh()

    async def refresh(self) -> None:
        """Show the interpolation, if both ends are there."""
        viewer, start, end = self.explorer.viewer, self.session.example, self.end
        if start is None or end is None:
            return
        images = await self.explorer.in_worker(viewer.interpolation, start, end, STEPS)
        if images is None:
            return
        self.images.set_content(
            "".join(image_svg(image, f"Step {step} of {STEPS}") for step, image in enumerate(images, 1))
        )
        first, second = (one.name + (f" ({one.note})" if one.note else "") for one in (start, end))
        self.summary.set_text(f"From {first} to {second}, in {STEPS} steps.")
