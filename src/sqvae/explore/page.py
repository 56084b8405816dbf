"""The page: its frame, its parts, and what belongs to one tab of a browser."""

from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from nicegui import Client, ui
from nicegui.events import ValueChangeEventArguments

from sqvae.explore.codebook import Codebook
from sqvae.explore.explorer import Explorer
from sqvae.explore.guard import MOST_BYTES
from sqvae.explore.looking import Looking
from sqvae.explore.making import Making
from sqvae.explore.parts import box, card, markup, text
from sqvae.explore.session import Session
from sqvae.reports.page import warned, words
from sqvae.reports.run_page import Drawn

LONGEST_NAME = 120
"""Letters of a file's name that are shown."""

_HERE = Path(__file__).parent
_STYLE = (_HERE / "page.css").read_text("utf-8")
_SCRIPT = (_HERE / "page.js").read_text("utf-8").replace("MOST_BYTES", str(MOST_BYTES))


class Tab:
    """One tab of a browser: what it looks at, and what it shows. It lives as long as the browser shows it."""

    def __init__(self, explorer: Explorer, client: Client) -> None:
        self.explorer = explorer
        self.client = client
        self.session = Session(explorer)
        self.codebook: Codebook | None = None
        self._build()

    def _build(self) -> None:
        ui.colors(primary="#1f4e79")
        ui.add_head_html(f"<style>{_STYLE}</style><script>{_SCRIPT}</script>")
        with box("", "header"):
            markup(f"<h1>{words(self.explorer.run.resolve().name or str(self.explorer.run))}</h1>")
            text(self.explorer.described(), "quiet")
            markup(warned(self.explorer.warnings))
        with ui.tabs().props("no-caps align=left inline-label active-color=primary outside-arrows") as tabs:
            look, codes = ui.tab("look", label="Look"), ui.tab("codes", label="Codes")
            training, make = ui.tab("training", label="Training"), ui.tab("make", label="Make")
        with ui.tab_panels(tabs, value=look, animated=False, on_change=self._turned):
            with ui.tab_panel(look):
                self.looking = Looking(self.session, self._address("first"))
            self._codes_panel = ui.tab_panel(codes)
            with ui.tab_panel(training):
                self._training()
            with ui.tab_panel(make):
                self.making = Making(self.session, self._address("second"))

    def _address(self, slot: str) -> str:
        return f"/upload/{self.client.id}/{slot}"

    def _training(self) -> None:
        curves = self.explorer.curves
        if not curves:
            text(
                "Nothing is recorded of the training here: this is no folder of a run, or its log is missing.", "quiet"
            )
        with box("columns"):
            for curve in curves:
                with card(curve.name[0].upper() + curve.name[1:]):
                    markup(Drawn(*curve).chart())
                    text(curve.sentence, "quiet small")

    async def _turned(self, event: ValueChangeEventArguments[Any]) -> None:
        """The codes are drawn when they are first looked at, for there may be many."""
        if event.value == "make":
            await self.making.refresh()  # another example may be looked at by now
        if event.value == "codes" and self.codebook is None:
            with self._codes_panel:
                self.codebook = Codebook(self.explorer)
            await self.codebook.refresh()
            await self.codebook.look_at(0 if self.explorer.counts is None else int(self.explorer.counts.argmax()))

    async def begin(self) -> None:
        """Show a first example, if there is one."""
        if self.explorer.held_out is not None and len(self.explorer.held_out):
            await self.looking.another()
        else:
            await self.looking.refresh()

    async def take(self, content: bytes, name: str, slot: str) -> str:
        """Look at what a person has sent; returns what to say of it. Raises :class:`RefusedError`."""
        shown = name[-LONGEST_NAME:]
        example = await self.explorer.work(self.explorer.kind.read, content, shown)
        with self.client:
            if slot == "second":
                self.making.end = example
            else:
                await self.explorer.work(self.session.show, example)
                await self.looking.refresh()
            await self.making.refresh()
        return f"{shown}: " + (example.note or "here it is")


def register(explorer: Explorer) -> "WeakValueDictionary[str, Tab]":
    """Make the page known to the framework; returns the tabs that are open, by their clients' names."""
    open_tabs: WeakValueDictionary[str, Tab] = WeakValueDictionary()

    @ui.page("/", title=f"{explorer.run.resolve().name} - sqvae explore", language="en-US", response_timeout=60)
    async def show(client: Client) -> None:
        tab = Tab(explorer, client)
        client.on_delete(lambda: open_tabs.pop(client.id, None))
        client.storage["tab"] = tab
        open_tabs[client.id] = tab
        await tab.begin()

    return open_tabs
