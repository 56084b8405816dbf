"""The part of the page about all codes: how they are used, how they lie, and what each draws alone."""

from nicegui import ui
from torch import Tensor

from sqvae.distributions import perplexity
from sqvae.explore.drawings import tile
from sqvae.explore.explorer import Explorer
from sqvae.explore.parts import Chosen, box, button, card, complained, heading, markup, text
from sqvae.metrics.meanings import CODES
from sqvae.reports.charts import Dot, scatter
from sqvae.reports.codebook import counted, percent
from sqvae.reports.run_codebook import use_chart

PAGE = 64
"""Codes that are shown at a time, one by one."""

NAMED = 20
"""Dead codes that are named."""

NEAREST = 8


class Codebook:
    """All codes.

    Arguments:
        explorer: what is shown.
    """

    def __init__(self, explorer: Explorer) -> None:
        self.explorer = explorer
        self._order = _by_use(explorer.counts, explorer.size)
        self._first = 0
        with box("stack"):
            with box("columns"):
                self._use()
                self._places()
            self._one()
            self._all()

    def _use(self) -> None:
        with card("How often each code is used"):
            counts = self.explorer.counts
            if counts is None:
                text("Nothing is recorded: the run has no log of a validation, and its data is not at hand.", "quiet")
                return
            text(f"{use_in_words(counts)} Counted on {self.explorer.counted_on}.", "small")
            text(CODES, "small quiet")
            markup(use_chart(counts.numpy()))

    def _places(self) -> None:
        note = "The two directions in which the codes are spread most: near codes have like colours. Larger: used more."
        with card("A map of the codes", note):
            counts, positions = self.explorer.counts, self.explorer.positions.tolist()
            most = 1 if counts is None else max(1, int(counts.max()))
            dots = []
            for code, (x, y) in enumerate(positions):
                share = 0.3 if counts is None else int(counts[code]) / most
                dead = counts is not None and not counts[code]
                dots.append(Dot(x, y, self.explorer.colours[code], f"code {code}", 3 + 6 * share**0.5, dead))
            shown = markup(scatter("Map of the codes; choose one by its number below", dots), "dots")
            shown.on("click", self._chosen, js_handler="(event) => explore.dot(event, emit)")

    def _one(self) -> None:
        with box("card", "section"):
            self.title = heading("One code")
            with box("line").style("margin-bottom: .6rem"):
                self.number = ui.number("code", min=0, max=self.explorer.size - 1, precision=0)
                self.number.props("dense outlined").classes("narrow").on("keydown.enter", self._by_number)
                button("Look at it", self._by_number)
                self.use = text(kinds="small quiet")
            self.near = markup(kinds="near tiles")
            self.near.on("click", self._chosen, js_handler="(event) => explore.code(event, emit)")

    def _all(self) -> None:
        with card(
            "What each code draws alone",
            "The decoder's answer where no other code stands around it. The most used come first, with how often.",
        ):
            self.tiles = markup(kinds="tiles").style("margin: .6rem 0")
            self.tiles.on("click", self._chosen, js_handler="(event) => explore.code(event, emit)")
            with box("line"):
                self.before = button("Before", lambda: self._turn(-PAGE))
                self.after = button("More", lambda: self._turn(PAGE))
                self.which = text(kinds="small quiet")

    async def _by_number(self) -> None:
        if self.number.value is not None:
            await complained(self.look_at(int(self.number.value)))

    async def _chosen(self, event: Chosen) -> None:
        await complained(self.look_at(int(event.args)))

    async def _turn(self, by: int) -> None:
        self._first = min(max(0, self._first + by), max(0, self.explorer.size - 1) // PAGE * PAGE)
        await self.refresh()

    async def look_at(self, code: int) -> None:
        """Show one code with those nearest to it."""
        if not 0 <= code < self.explorer.size:
            raise ValueError(f"there is no code {code}: they are 0 to {self.explorer.size - 1:,}")
        nearest = await self.explorer.work(self.explorer.nearest, code, NEAREST - 1)
        tiles = await self.explorer.work(self.explorer.tiles, [code, *(other for other, _ in nearest)])
        self.title.set_content(f"<h2>Code {code}, and those nearest to it</h2>")
        self.number.set_value(code)
        self.use.set_text(self.explorer.use_in_words(code))
        notes = {code: "itself", **{other: f"{distance:.3g}" for other, distance in nearest}}
        self.near.set_content(_buttons(tiles, notes))

    async def refresh(self) -> None:
        """Show the codes from the place that was turned to."""
        codes = self._order[self._first : self._first + PAGE]
        tiles = await self.explorer.work(self.explorer.tiles, codes)
        counts = self.explorer.counts
        total = 1 if counts is None else max(1, int(counts.sum()))
        notes = {code: "" if counts is None else _share(int(counts[code]), total) for code in codes}
        self.tiles.set_content(_buttons(tiles, notes))
        self.which.set_text(f"{self._first + 1:,} to {self._first + len(codes):,} of {counted(self.explorer.size)}")
        self.before.set_enabled(self._first > 0)
        self.after.set_enabled(self._first + PAGE < self.explorer.size)


def _by_use(counts: Tensor | None, size: int) -> list[int]:
    if counts is None:
        return list(range(size))
    order: list[int] = counts.sort(descending=True, stable=True).indices.tolist()
    return order


def use_in_words(counts: Tensor) -> str:  # (K,)
    """How many codes are used, and which are not."""
    dead = (counts == 0).nonzero().flatten().tolist()
    spread = f"Perplexity {float(perplexity(counts.double())):.1f} of {len(counts):,}."
    if not dead:
        return f"{spread} All {counted(len(counts))} are used."
    named = ", ".join(map(str, dead[:NAMED])) + (f" and {len(dead) - NAMED:,} more" if len(dead) > NAMED else "")
    return f"{spread} {counted(len(dead))} never used (dead): {named}."


def _share(taken: int, total: int) -> str:
    return percent(taken / total) if taken else "dead"


def _buttons(tiles: dict[int, str], notes: dict[int, str]) -> str:
    """A button a code."""
    return "".join(
        f'<button type="button" data-code="{code}">{tile(tiles[code], f"Code {code}")}{code}'
        f"<span>{note}</span></button>"
        for code, note in notes.items()
    )
