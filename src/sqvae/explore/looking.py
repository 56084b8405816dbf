"""The part of the page where one example is seen through its codes, and codes are changed."""

from typing import TYPE_CHECKING

import torch
from nicegui import ui
from torch import Tensor

from sqvae.explore.drawings import address, code_map, picture, seconds_below, tile
from sqvae.explore.parts import Chosen, box, button, caption, complained, drop_zone, figure, heading, markup, text
from sqvae.explore.session import Session
from sqvae.metrics.meanings import WRONG_LABELS
from sqvae.modalities.views import Seen
from sqvae.reports.grid import MOST_CLASSES
from sqvae.reports.page import difference_key, player, swatches, words

if TYPE_CHECKING:
    from sqvae.modalities.exploring import Example

NEAREST = 8
"""Codes that are offered in place of one."""


class Looking:
    """One example: original, reconstruction, difference, map of codes; and below, the code that was chosen.

    Arguments:
        session: what is looked at.
        upload: where files are sent.
    """

    def __init__(self, session: Session, upload: str) -> None:
        self.session = session
        self.explorer = session.explorer
        self._held_out = 0
        self._near: list[int] = []
        self._of_sound: tuple[Example, Tensor] | None = None
        kind = self.explorer.kind
        with box("stack"):
            with drop_zone(
                upload, f"Drop a {kind.noun} here, or choose a file. It stays on this machine.", kind.accept
            ):
                self._offers()
            if self.explorer.missing:
                text(f"No held-out {kind.noun}s are shown: {self.explorer.missing}", "quiet small")
            with box("card stack") as self._shown:
                self.name = text(kinds="small quiet")
                with box("figures" + (" wide" if kind.wide else "")) as self._figures:
                    self.original, _ = figure("Original")
                    self.reconstruction, self.remade = figure("Reconstruction")
                    self.difference, self.error = figure("Difference")
                    with box("mapped", "figure"):
                        self._map()
                self.classes = markup()
                self.heard = markup(kinds="sounds")
                self.heard.set_visibility(False)
                self.cost = text(kinds="small").props("aria-live=polite")
                self.apart = text(kinds="small quiet")
            with box("details") as self._details:
                self._chosen_code()
                self._replacement()

    def _offers(self) -> None:
        """Other ways to an example than a file."""
        if self.explorer.held_out is not None:
            button(f"Another held-out {self.explorer.kind.noun}", self.another)
        if self.explorer.kind.voices:
            voices = list(self.explorer.kind.voices)
            self.voice = ui.select(voices, label="voice", on_change=lambda event: self._speak(event.value))
            self.voice.props("dense outlined")
            button("Listen", self._listen)

    def _map(self) -> None:
        self.map = markup(kinds="map").props('tabindex=0 role=grid aria-label="Map of codes: arrow keys and Enter"')
        self.map.on("click", self._point, js_handler="(event) => explore.point(event, emit)")
        self.map.on("keydown", self._point, js_handler="(event) => explore.press(event, emit)")
        self.seconds = markup()
        note = "One code a cell, below its own part of the sound. " if self.explorer.kind.wide else ""
        markup(caption("Codes", f"{note}Click, or arrow keys and Enter."), tag="figcaption")

    def _chosen_code(self) -> None:
        with box("card", "section"):
            self.title = heading("No place is chosen yet").props("aria-live=polite")
            with box("code"):
                self.alone = markup()
                with box(""):
                    self.here = text(kinds="small")
                    self.use = text(kinds="small quiet")

    def _replacement(self) -> None:
        with box("card", "section") as self._changing:
            heading("Put another code there")
            text(
                f"The nearest codes, with {self.explorer.kind.nearest_shown}. Below each: its number and distance.",
                "quiet small",
            )
            with box("near tiles").style("margin: .6rem 0 .9rem"):
                self.near = [self._near_button(place) for place in range(min(NEAREST, self.explorer.size - 1))]
            with box("line"):
                self.number = ui.number("code", min=0, max=self.explorer.size - 1, precision=0)
                self.number.props("dense outlined").classes("narrow").on("keydown.enter", self._replace_by_number)
                button("Replace", self._replace_by_number, strong=True)
                self.everywhere = ui.checkbox("wherever it stands")
                self.undo = button("Undo", self._undo)
                self.reset = button("Reset", self._reset)

    def _near_button(self, place: int) -> ui.html:
        with ui.element("button").props("type=button") as near:
            near.on("click", lambda: self._replace_by(place))
            return markup()

    def _drawn_there(self, codes: Tensor, place: int, others: list[int]) -> dict[int, str]:
        """What each of some other codes would draw at a place; or alone, where it takes long to tell."""
        if not others:
            return {}
        drawn = self.explorer.kind.tried(codes, place, torch.tensor(others))
        return self.explorer.tiles(others) if drawn is None else dict(zip(others, map(address, drawn), strict=True))

    async def another(self) -> None:
        """Look at the next held-out example."""
        # Counted on before anything is waited for: a second click may come meanwhile.
        index, self._held_out = self._held_out, self._held_out + 1
        example = await self.explorer.work(self.explorer.example, index)
        await self.explorer.work(self.session.show, example)
        await self.refresh()

    async def _point(self, event: Chosen) -> None:
        await complained(self._select(int(event.args)))

    async def _select(self, place: int) -> None:
        self.session.select(place)
        await self.refresh()

    async def _replace_by(self, place: int) -> None:
        if place < len(self._near):
            await complained(self._replace(self._near[place]))

    async def _replace_by_number(self) -> None:
        if self.number.value is not None:
            await complained(self._replace(int(self.number.value)))

    async def _replace(self, code: int) -> None:
        place, everywhere = self.session.selected, bool(self.everywhere.value)
        await self.explorer.work(lambda: self.session.replace(code, place, everywhere=everywhere))
        await self.refresh()

    async def _undo(self) -> None:
        await self.explorer.work(self.session.undo)
        await self.refresh()

    async def _reset(self) -> None:
        await self.explorer.work(self.session.reset)
        await self.refresh()

    async def _speak(self, voice: str) -> None:
        if self.session.example is None or voice == (self.session.example.voice or self.explorer.kind.voices[0]):
            return
        await self.explorer.work(self.session.spoken, voice)
        await self.refresh()

    async def _listen(self) -> None:
        kind = self.explorer.kind
        if not kind.voices or self.session.example is None:
            return
        ui.notify("making sound of the codes...", position="top")
        example, codes = self.session.example, self.session.codes
        original = await self.explorer.work(kind.original, example)
        sound = await self.explorer.work(kind.sound, example, codes) or b""
        if self.session.example is not example or self.session.codes is not codes:
            return  # what it is the sound of was changed meanwhile
        self._of_sound = example, codes
        self.heard.set_visibility(True)
        voice = example.voice or kind.voices[0]
        first = "" if original is None else player(original, "Original, as recorded")
        made = player(sound, f"Reconstruction from the codes, {_changed(self.session.changes)}, in the voice {voice}")
        self.heard.set_content(first + made)

    async def refresh(self) -> None:
        """Show what the session holds."""
        session, looked = self.session, self.session.looked
        self._shown.set_visibility(looked is not None)
        self._details.set_visibility(looked is not None)
        if looked is None:
            return
        kind, (example, seen, own) = self.explorer.kind, looked
        if self._of_sound is not None and (self._of_sound[0] is not example or self._of_sound[1] is not seen.codes):
            self._of_sound = None
            self.heard.set_visibility(False)
            self.heard.set_content("")
        selected = session.selected_in(looked)  # None if it was chosen in what is shown next
        framed = None if selected is None else kind.box(seen.codes, selected)
        for place, shown, words_for in (
            (self.original, seen.original, f"Original: {example.name}"),
            (self.reconstruction, seen.reconstruction, f"Reconstruction from the codes, {_changed(session.changes)}"),
            (self.difference, seen.difference, f"Difference: {seen.error}"),
        ):
            place.set_content(picture(shown, words_for, framed, wide=kind.wide))
        self.name.set_text(example.name + (f" ({example.note})" if example.note else ""))
        self.remade.set_content(caption("Reconstruction", _changed(session.changes)))
        self.error.set_content(caption("Difference", seen.error) + _key(seen))
        self.classes.set_visibility(bool(seen.classes))
        self.classes.set_content(swatches(seen.classes, MOST_CLASSES))
        names = [kind.place_name(seen.codes, place) for place in range(seen.codes.numel())]
        columns = kind.columns(seen.codes)
        boxes = [kind.box(seen.codes, place) for place in range(seen.codes.numel())]
        height, width = seen.original.shape[1:]
        self.map.set_content(
            code_map(
                seen.codes,
                own,
                columns,
                boxes,
                (width, height),
                self.explorer.colours,
                names,
                selected,
                wide=kind.wide,
            )
        )
        seconds = kind.seconds(width)
        if seconds is not None:
            self.seconds.set_content(seconds_below(seconds))
            self._figures.style(f"--codes: {columns}")
        self.cost.set_text(session.cost())
        self.apart.set_text(session.cost_apart())
        if kind.voices:
            self.voice.set_value(example.voice or kind.voices[0])
        self.undo.set_enabled(session.can_undo)
        self.reset.set_enabled(session.changes > 0)
        await self._refresh_code()

    async def _refresh_code(self) -> None:
        session, looked = self.session, self.session.looked
        selected = None if looked is None else session.selected_in(looked)
        self._changing.set_visibility(selected is not None)
        if looked is None or selected is None:
            self.title.set_content("<h2>No place is chosen yet</h2>")
            self.here.set_text(
                "Choose a place in the map to see which code stands there, what it draws, where else it "
                "is used, and to put another in its place."
            )
            return
        codes = looked.seen.codes
        code = int(codes.flatten()[selected])
        nearest = await self.explorer.work(self.explorer.nearest, code, NEAREST)
        near = [other for other, _ in nearest]
        alone = await self.explorer.work(self.explorer.tiles, [code])
        drawn = await self.explorer.work(self._drawn_there, codes, selected, near)
        if session.codes is not codes or session.selected != selected:
            return  # something else was chosen meanwhile, and what belongs to that is on its way
        self._near = near
        where = self.explorer.kind.place_name(codes, selected)
        count = int((codes == code).sum())
        self.title.set_content(f"<h2>Code {code}, {words(where)}</h2>")
        self.alone.set_content(tile(alone[code], f"What code {code} draws alone"))
        self.here.set_text(f"It stands {_elsewhere(count - 1)} in this {self.explorer.kind.noun}.")
        self.use.set_text(self.explorer.use_in_words(code))
        for place, (other, distance) in zip(self.near, nearest, strict=True):
            shown = tile(drawn[other], f"Put code {other} here, distance {distance:.3g}")
            place.set_content(f"{shown}{other}<span>{distance:.3g}</span>")


def _key(seen: Seen) -> str:
    """How to read the colours of a difference."""
    if seen.key is None:
        return f"<br>{WRONG_LABELS.capitalize()}."
    return difference_key(seen.key.colours, seen.key.less, seen.key.more, seen.key.full)


def _changed(number: int) -> str:
    if not number:
        return "as encoded"
    return f"{number} place{'' if number == 1 else 's'} changed"


def _elsewhere(number: int) -> str:
    if not number:
        return "nowhere else"
    return f"at {number} more place{'' if number == 1 else 's'}, marked in the map,"
