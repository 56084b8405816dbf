"""The page of `sqvae explore`, and its state in one browser tab."""

from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from nicegui import Client, ui
from nicegui.events import ValueChangeEventArguments

from sqvae.explore.codebook_view import CodebookView
from sqvae.explore.example_view import ExampleView
from sqvae.explore.explorer import Explorer
from sqvae.explore.generation_view import GenerationView
from sqvae.explore.guard import MAX_BODY_BYTES
from sqvae.explore.parts import box, card, markup, text
from sqvae.explore.session import Session
from sqvae.reports.page import warned, words
from sqvae.reports.run_page import Drawn

MAX_NAME_LENGTH = 120
"""The largest number of characters of a file name that are displayed."""

_HERE = Path(__file__).parent
_STYLE = (_HERE / "page.css").read_text("utf-8")
_SCRIPT = (_HERE / "page.js").read_text("utf-8").replace("MAX_BODY_BYTES", str(MAX_BODY_BYTES))


class Tab:
    """One browser tab with its session and its elements. It exists as long as the browser shows it."""

    def __init__(self, explorer: Explorer, client: Client) -> None:
        self.explorer = explorer
        self.client = client
        self.session = Session(explorer)
        self.codebook_view: CodebookView | None = None
        self._build()

    def _build(self) -> None:
        ui.colors(primary="#1f4e79")
        ui.add_head_html(f"<style>{_STYLE}</style><script>{_SCRIPT}</script>")
        with box("", "header"):
            markup(f"<h1>{words(self.explorer.run.resolve().name or str(self.explorer.run))}</h1>")
            text(self.explorer.description(), "quiet")
            markup(warned(self.explorer.warnings))
        with ui.tabs().props("no-caps align=left inline-label active-color=primary outside-arrows") as tabs:
            example, codebook = ui.tab("example", label="Example"), ui.tab("codebook", label="Codebook")
            training, generation = ui.tab("training", label="Training"), ui.tab("generation", label="Generation")
        with ui.tab_panels(tabs, value=example, animated=False, on_change=self._switched):
            with ui.tab_panel(example):
                self.example_view = ExampleView(self.session, self._address("first"))
            self._codebook_panel = ui.tab_panel(codebook)
            with ui.tab_panel(training):
                self._build_training()
            with ui.tab_panel(generation):
                self.generation_view = GenerationView(self.session, self._address("second"))

    def _address(self, slot: str) -> str:
        return f"/upload/{self.client.id}/{slot}"

    def _build_training(self) -> None:
        curves = self.explorer.curves
        if not curves:
            text("There are no training curves: this is not the folder of a run, or its log is missing.", "quiet")
        with box("columns"):
            for curve in curves:
                with card(curve.name[0].upper() + curve.name[1:]):
                    markup(Drawn(*curve).chart())
                    text(curve.sentence, "quiet small")

    async def _switched(self, event: ValueChangeEventArguments[Any]) -> None:
        """Build the codebook tab when it is first opened, because there may be many codes."""
        if event.value == "generation":
            await self.generation_view.refresh()  # the current example may have changed
        if event.value == "codebook" and self.codebook_view is None:
            with self._codebook_panel:
                self.codebook_view = CodebookView(self.explorer)
            await self.codebook_view.refresh()
            await self.codebook_view.select(0 if self.explorer.counts is None else int(self.explorer.counts.argmax()))

    async def begin(self) -> None:
        """Show the first held-out example, if there is one."""
        if self.explorer.held_out is not None and len(self.explorer.held_out):
            await self.example_view.another()
        else:
            await self.example_view.refresh()

    async def receive(self, content: bytes, name: str, slot: str) -> str:
        """Show an uploaded file, and return a message about it. Raises :class:`RefusedError` if it can't be used."""
        displayed_name = name[-MAX_NAME_LENGTH:]
        example = await self.explorer.in_worker(self.explorer.viewer.read, content, displayed_name)
        with self.client:
            if slot == "second":
                self.generation_view.end = example
            else:
                await self.explorer.in_worker(self.session.show, example)
                await self.example_view.refresh()
            await self.generation_view.refresh()
        return f"{displayed_name}: " + (example.note or "loaded")


def register(explorer: Explorer) -> "WeakValueDictionary[str, Tab]":
    """Register the page with NiceGUI, and return the open tabs by the ids of their clients."""
    open_tabs: WeakValueDictionary[str, Tab] = WeakValueDictionary()

    @ui.page("/", title=f"{explorer.run.resolve().name} - sqvae explore", language="en-US", response_timeout=60)
    async def show(client: Client) -> None:
        tab = Tab(explorer, client)
        client.on_delete(lambda: open_tabs.pop(client.id, None))
        client.storage["tab"] = tab
        open_tabs[client.id] = tab
        await tab.begin()

    return open_tabs
