"""The codebook tab: codebook usage, a map of the codes, and the image of each code."""

from nicegui import ui
from torch import Tensor

from sqvae.distributions import perplexity
from sqvae.explore.drawings import tile
from sqvae.explore.explorer import Explorer
from sqvae.explore.parts import ClientEvent, box, button, card, heading, markup, show_errors, text
from sqvae.metrics.meanings import CODES
from sqvae.reports.charts import Dot, scatter
from sqvae.reports.codebook import counted, percent
from sqvae.reports.run_codebook import use_chart

CODES_PER_PAGE = 64
"""The number of codes whose images are shown at once."""

MAX_LISTED = 20
"""The largest number of unused codes that are listed."""

TILES_IN_ROW = 8
"""The number of images in the row of one code and its nearest codes."""


class CodebookView:
    """The codebook of a model.

    Arguments:
        explorer: the run to show.
    """

    def __init__(self, explorer: Explorer) -> None:
        self.explorer = explorer
        self._order = _by_usage(explorer.counts, explorer.size)
        self._first = 0  # the index in this order of the first code on the current page
        with box("stack"):
            with box("columns"):
                self._build_usage()
                self._build_map()
            self._build_code()
            self._build_images()

    def _build_usage(self) -> None:
        with card("Codebook usage"):
            counts = self.explorer.counts
            if counts is None:
                text("The usage is not known: no validation is logged, and the data is not available.", "quiet")
                return
            text(f"{usage_summary(counts)} Counted on {self.explorer.counted_on}.", "small")
            text(CODES, "small quiet")
            markup(use_chart(counts.numpy()))

    def _build_map(self) -> None:
        note = (
            "The two principal components of the codebook. Near codes have similar colours, and codes that are used "
            "more often have larger dots."
        )
        with card("A map of the codes", note):
            counts, positions = self.explorer.counts, self.explorer.map_positions.tolist()
            most = 1 if counts is None else max(1, int(counts.max()))
            dots = []
            for code, (x, y) in enumerate(positions):
                share = 0.3 if counts is None else int(counts[code]) / most
                unused = counts is not None and not counts[code]
                dots.append(Dot(x, y, self.explorer.colours[code], f"code {code}", 3 + 6 * share**0.5, unused))
            chart = markup(scatter("Map of the codes; codes can also be selected by their numbers below", dots), "dots")
            chart.on("click", self._chosen, js_handler="(event) => explore.dot(event, emit)")

    def _build_code(self) -> None:
        with box("card", "section"):
            self.title = heading("One code")
            with box("line").style("margin-bottom: .6rem"):
                self.number = ui.number("code", min=0, max=self.explorer.size - 1, precision=0)
                self.number.props("dense outlined").classes("narrow").on("keydown.enter", self._select_by_number)
                button("Show", self._select_by_number)
                self.usage = text(classes="small quiet")
            self.near = markup(classes="near tiles")
            self.near.on("click", self._chosen, js_handler="(event) => explore.code(event, emit)")

    def _build_images(self) -> None:
        with card(
            "The image of each code",
            "The output of the decoder for each code by itself. The most used codes come first, each with its share of "
            "all positions.",
        ):
            self.tiles = markup(classes="tiles").style("margin: .6rem 0")
            self.tiles.on("click", self._chosen, js_handler="(event) => explore.code(event, emit)")
            with box("line"):
                self.previous = button("Previous", lambda: self._turn(-CODES_PER_PAGE))
                self.next = button("Next", lambda: self._turn(CODES_PER_PAGE))
                self.range = text(classes="small quiet")

    async def _select_by_number(self) -> None:
        if self.number.value is not None:
            await show_errors(self.select(int(self.number.value)))

    async def _chosen(self, event: ClientEvent) -> None:
        await show_errors(self.select(int(event.args)))

    async def _turn(self, step: int) -> None:
        self._first = min(max(0, self._first + step), max(0, self.explorer.size - 1) // CODES_PER_PAGE * CODES_PER_PAGE)
        await self.refresh()

    async def select(self, code: int) -> None:
        """Show one code and its nearest codes."""
        if not 0 <= code < self.explorer.size:
            raise ValueError(f"there is no code {code}: codes are 0 to {self.explorer.size - 1:,}")
        nearest = await self.explorer.in_worker(self.explorer.nearest, code, TILES_IN_ROW - 1)
        tiles = await self.explorer.in_worker(self.explorer.tiles, [code, *(other for other, _ in nearest)])
        self.title.set_content(f"<h2>Code {code} and its nearest codes</h2>")
        self.number.set_value(code)
        self.usage.set_text(self.explorer.usage_text(code))
        notes = {code: "this code", **{other: f"{distance:.3g}" for other, distance in nearest}}
        self.near.set_content(_buttons(tiles, notes))

    async def refresh(self) -> None:
        """Show the images of the current page of codes."""
        codes = self._order[self._first : self._first + CODES_PER_PAGE]
        tiles = await self.explorer.in_worker(self.explorer.tiles, codes)
        counts = self.explorer.counts
        total = 1 if counts is None else max(1, int(counts.sum()))
        notes = {code: "" if counts is None else _share(int(counts[code]), total) for code in codes}
        self.tiles.set_content(_buttons(tiles, notes))
        self.range.set_text(f"{self._first + 1:,} to {self._first + len(codes):,} of {counted(self.explorer.size)}")
        self.previous.set_enabled(self._first > 0)
        self.next.set_enabled(self._first + CODES_PER_PAGE < self.explorer.size)


def _by_usage(counts: Tensor | None, size: int) -> list[int]:
    if counts is None:
        return list(range(size))
    order: list[int] = counts.sort(descending=True, stable=True).indices.tolist()
    return order


def usage_summary(counts: Tensor) -> str:  # (K,)
    """The perplexity of the codes, and which codes are unused."""
    unused = (counts == 0).nonzero().flatten().tolist()
    summary = f"Perplexity {float(perplexity(counts.double())):.1f} of {len(counts):,}."
    if not unused:
        return f"{summary} All {counted(len(counts))} are used."
    listed = ", ".join(map(str, unused[:MAX_LISTED]))
    more = f" and {len(unused) - MAX_LISTED:,} more" if len(unused) > MAX_LISTED else ""
    return f"{summary} {counted(len(unused))} never used: {listed}{more}."


def _share(count: int, total: int) -> str:
    return percent(count / total) if count else "unused"


def _buttons(tiles: dict[int, str], notes: dict[int, str]) -> str:
    """A button for each code, with its image and a note."""
    return "".join(
        f'<button type="button" data-code="{code}">{tile(tiles[code], f"Code {code}")}{code}'
        f"<span>{note}</span></button>"
        for code, note in notes.items()
    )
