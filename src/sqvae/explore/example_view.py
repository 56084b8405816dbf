"""The example tab: one example with its codes and its reconstruction, and codes that can be replaced."""

from typing import TYPE_CHECKING

import torch
from nicegui import ui
from torch import Tensor

from sqvae.explore.drawings import address, code_map, image_svg, tile, time_scale
from sqvae.explore.parts import ClientEvent, box, button, caption, drop_zone, figure, heading, markup, show_errors, text
from sqvae.explore.session import Session
from sqvae.metrics.meanings import WRONG_LABELS
from sqvae.modalities.views import CodedExample
from sqvae.reports.grid import MOST_CLASSES
from sqvae.reports.page import difference_key, player, swatches, words

if TYPE_CHECKING:
    from sqvae.modalities.exploring import Example

NEAREST = 8
"""The number of nearest codes that are offered as replacements."""

NOTHING_SELECTED = "No position is selected"
"""The title of the selected code if there is none."""


class ExampleView:
    """One example: original, reconstruction, difference, and the map of codes, with the selected code below.

    Arguments:
        session: the state of the tab.
        upload: the URL that receives files.
    """

    def __init__(self, session: Session, upload: str) -> None:
        self.session = session
        self.explorer = session.explorer
        self._held_out = 0
        self._near: list[int] = []
        self._sound_of: tuple[Example, Tensor] | None = None
        viewer = self.explorer.viewer
        with box("stack"):
            with drop_zone(
                upload, f"Drop a {viewer.noun} here, or choose a file. It stays on this machine.", viewer.accept
            ):
                self._build_controls()
            if self.explorer.missing:
                text(f"Held-out {viewer.noun}s are not available: {self.explorer.missing}", "quiet small")
            with box("card stack") as self._figures_card:
                self.name = text(classes="small quiet")
                with box("figures" + (" wide" if viewer.wide else "")) as self._figures:
                    self.original, _ = figure("Original")
                    self.reconstruction, self.reconstruction_caption = figure("Reconstruction")
                    self.difference, self.difference_caption = figure("Difference")
                    with box("mapped", "figure"):
                        self._build_map()
                self.classes = markup()
                self.sounds = markup(classes="sounds")
                self.sounds.set_visibility(False)
                self.cost = text(classes="small").props("aria-live=polite")
                self.cost_note = text(classes="small quiet")
            with box("details") as self._details:
                self._build_selected_code()
                self._build_replacement()

    def _build_controls(self) -> None:
        """The buttons for held-out examples and sound, and the choice of the voice."""
        if self.explorer.held_out is not None:
            button(f"Another held-out {self.explorer.viewer.noun}", self.another)
        if self.explorer.viewer.voices:
            voices = list(self.explorer.viewer.voices)
            self.voice = ui.select(voices, label="voice", on_change=lambda event: self._change_voice(event.value))
            self.voice.props("dense outlined")
            button("Listen", self._listen)

    def _build_map(self) -> None:
        self.map = markup(classes="map").props('tabindex=0 role=grid aria-label="Map of codes: arrow keys and Enter"')
        self.map.on("click", self._clicked, js_handler="(event) => explore.point(event, emit)")
        self.map.on("keydown", self._clicked, js_handler="(event) => explore.press(event, emit)")
        self.seconds = markup()
        note = "Each cell is one code, below its part of the spectrogram. " if self.explorer.viewer.wide else ""
        markup(caption("Codes", f"{note}Select a cell by a click, or with arrow keys and Enter."), tag="figcaption")

    def _build_selected_code(self) -> None:
        with box("card", "section"):
            self.title = heading(NOTHING_SELECTED).props("aria-live=polite")
            with box("code"):
                self.image = markup()
                with box(""):
                    self.occurrences = text(classes="small")
                    self.usage = text(classes="small quiet")

    def _build_replacement(self) -> None:
        with box("card", "section") as self._replacement_card:
            heading("Replace the code")
            images = self.explorer.viewer.replacement_caption
            text(f"The nearest codes with {images}, and below each its number and distance.", "quiet small")
            with box("near tiles").style("margin: .6rem 0 .9rem"):
                self.near = [self._near_button(rank) for rank in range(min(NEAREST, self.explorer.size - 1))]
            with box("line"):
                self.number = ui.number("code", min=0, max=self.explorer.size - 1, precision=0)
                self.number.props("dense outlined").classes("narrow").on("keydown.enter", self._replace_by_number)
                button("Replace", self._replace_by_number, strong=True)
                self.everywhere = ui.checkbox("wherever it occurs")
                self.undo = button("Undo", self._undo)
                self.reset = button("Reset", self._reset)

    def _near_button(self, rank: int) -> ui.html:
        with ui.element("button").props("type=button") as near:
            near.on("click", lambda: self._replace_by_nearest(rank))
            return markup()

    def _replacement_images(self, codes: Tensor, position: int, others: list[int]) -> dict[int, str]:
        """The images of other codes at a position, or by themselves where that would take too long."""
        if not others:
            return {}
        images = self.explorer.viewer.replacements(codes, position, torch.tensor(others))
        return self.explorer.tiles(others) if images is None else dict(zip(others, map(address, images), strict=True))

    async def another(self) -> None:
        """Show the next held-out example."""
        # The index is advanced before the first await, because a second click may come during it.
        index, self._held_out = self._held_out, self._held_out + 1
        example = await self.explorer.in_worker(self.explorer.example, index)
        await self.explorer.in_worker(self.session.show, example)
        await self.refresh()

    async def _clicked(self, event: ClientEvent) -> None:
        await show_errors(self._select(int(event.args)))

    async def _select(self, position: int) -> None:
        self.session.select(position)
        await self.refresh()

    async def _replace_by_nearest(self, rank: int) -> None:
        if rank < len(self._near):
            await show_errors(self._replace(self._near[rank]))

    async def _replace_by_number(self) -> None:
        if self.number.value is not None:
            await show_errors(self._replace(int(self.number.value)))

    async def _replace(self, code: int) -> None:
        position, everywhere = self.session.selected, bool(self.everywhere.value)
        await self.explorer.in_worker(lambda: self.session.replace(code, position, everywhere=everywhere))
        await self.refresh()

    async def _undo(self) -> None:
        await self.explorer.in_worker(self.session.undo)
        await self.refresh()

    async def _reset(self) -> None:
        await self.explorer.in_worker(self.session.reset)
        await self.refresh()

    async def _change_voice(self, voice: str) -> None:
        if self.session.example is None or voice == (self.session.example.voice or self.explorer.viewer.voices[0]):
            return
        await self.explorer.in_worker(self.session.change_voice, voice)
        await self.refresh()

    async def _listen(self) -> None:
        viewer = self.explorer.viewer
        if not viewer.voices or self.session.example is None:
            return
        ui.notify("Synthesizing the sound...", position="top")
        example, codes = self.session.example, self.session.codes
        original = await self.explorer.in_worker(viewer.original, example)
        sound = await self.explorer.in_worker(viewer.sound, example, codes) or b""
        if self.session.example is not example or self.session.codes is not codes:
            return  # the example or its codes have changed since
        self._sound_of = example, codes
        self.sounds.set_visibility(True)
        voice = example.voice or viewer.voices[0]
        recording = "" if original is None else player(original, "Original, as recorded")
        synthesized = player(
            sound, f"Reconstruction from the codes, {_changed(self.session.changes)}, in the voice {voice}"
        )
        self.sounds.set_content(recording + synthesized)

    async def refresh(self) -> None:
        """Show the current state of the session."""
        session, current = self.session, self.session.current
        self._figures_card.set_visibility(current is not None)
        self._details.set_visibility(current is not None)
        if current is None:
            return
        viewer, (example, coded, own) = self.explorer.viewer, current
        if self._sound_of is not None and (self._sound_of[0] is not example or self._sound_of[1] is not coded.codes):
            self._sound_of = None
            self.sounds.set_visibility(False)
            self.sounds.set_content("")
        selected = session.selected_in(current)  # None if it belongs to the next example
        framed = None if selected is None else viewer.box(coded.codes, selected)
        for element, image, description in (
            (self.original, coded.original, f"Original: {example.name}"),
            (self.reconstruction, coded.reconstruction, f"Reconstruction from the codes, {_changed(session.changes)}"),
            (self.difference, coded.difference, f"Difference: {coded.error}"),
        ):
            element.set_content(image_svg(image, description, framed, wide=viewer.wide))
        self.name.set_text(example.name + (f" ({example.note})" if example.note else ""))
        self.reconstruction_caption.set_content(caption("Reconstruction", _changed(session.changes)))
        self.difference_caption.set_content(caption("Difference", coded.error) + _key(coded))
        self.classes.set_visibility(bool(coded.classes))
        self.classes.set_content(swatches(coded.classes, MOST_CLASSES))
        names = [viewer.position_name(coded.codes, position) for position in range(coded.codes.numel())]
        columns = viewer.columns(coded.codes)
        boxes = [viewer.box(coded.codes, position) for position in range(coded.codes.numel())]
        height, width = coded.original.shape[1:]
        self.map.set_content(
            code_map(
                coded.codes,
                own,
                columns,
                boxes,
                (width, height),
                self.explorer.colours,
                names,
                selected,
                wide=viewer.wide,
            )
        )
        seconds = viewer.seconds(width)
        if seconds is not None:
            self.seconds.set_content(time_scale(seconds))
            self._figures.style(f"--codes: {columns}")
        self.cost.set_text(session.cost_text())
        self.cost_note.set_text(session.cost_note())
        if viewer.voices:
            self.voice.set_value(example.voice or viewer.voices[0])
        self.undo.set_enabled(session.can_undo)
        self.reset.set_enabled(session.changes > 0)
        await self._refresh_code()

    async def _refresh_code(self) -> None:
        session, current = self.session, self.session.current
        selected = None if current is None else session.selected_in(current)
        self._replacement_card.set_visibility(selected is not None)
        if current is None or selected is None:
            self.title.set_content(f"<h2>{NOTHING_SELECTED}</h2>")
            self.occurrences.set_text(
                "Select a position in the map to see its code, the image of the code, and where else it is used. "
                "Then you can replace it."
            )
            return
        codes = current.coded.codes
        code = int(codes.flatten()[selected])
        nearest = await self.explorer.in_worker(self.explorer.nearest, code, NEAREST)
        near = [other for other, _ in nearest]
        own_image = await self.explorer.in_worker(self.explorer.tiles, [code])
        images = await self.explorer.in_worker(self._replacement_images, codes, selected, near)
        if session.codes is not codes or session.selected != selected:
            return  # another position was selected since, and has a refresh of its own
        self._near = near
        where = self.explorer.viewer.position_name(codes, selected)
        count = int((codes == code).sum())
        self.title.set_content(f"<h2>Code {code}, {words(where)}</h2>")
        self.image.set_content(tile(own_image[code], f"The image of code {code}"))
        self.occurrences.set_text(f"This code occurs {_elsewhere(count - 1)} in this {self.explorer.viewer.noun}.")
        self.usage.set_text(self.explorer.usage_text(code))
        for element, (other, distance) in zip(self.near, nearest, strict=True):
            image = tile(images[other], f"Put code {other} here, distance {distance:.3g}")
            element.set_content(f"{image}{other}<span>{distance:.3g}</span>")


def _key(coded: CodedExample) -> str:
    """The key to the colours of a difference."""
    if coded.key is None:
        return f"<br>{WRONG_LABELS.capitalize()}."
    return difference_key(coded.key.colours, coded.key.less, coded.key.more, coded.key.full)


def _changed(number: int) -> str:
    if not number:
        return "as encoded"
    return f"{number} position{'' if number == 1 else 's'} changed"


def _elsewhere(number: int) -> str:
    if not number:
        return "nowhere else"
    return f"at {number} more position{'' if number == 1 else 's'}, highlighted in the map,"
