"""Small parts that the page is put together from."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from nicegui import events, ui

from sqvae.reports.page import words


def box(kinds: str = "", tag: str = "div") -> ui.element:
    """An element for others to lie in."""
    return ui.element(tag).classes(kinds)


@contextmanager
def card(title: str, note: str = "") -> Iterator[None]:
    """A part of the page with a heading."""
    with box("card", "section"):
        heading(title)
        if note:
            text(note, "quiet small")
        yield


def heading(title: str) -> ui.html:
    """Of a part of the page."""
    return markup(f"<h2>{words(title)}</h2>")


def text(content: str = "", kinds: str = "") -> ui.label:
    """Words, whatever they hold."""
    return ui.label(content).classes(f"words {kinds}")


def markup(content: str = "", kinds: str = "", tag: str = "div") -> ui.html:
    """HTML of ours, in which every text of others is escaped."""
    return ui.html(content, sanitize=False, tag=tag).classes(kinds)


def figure(title: str, kinds: str = "") -> tuple[ui.html, ui.html]:
    """A place for a picture, and one for the words below it."""
    with box(kinds, "figure"):
        return markup(), markup(caption(title), tag="figcaption")


def caption(title: str, note: str = "") -> str:
    """A figure's title, and what is to be said of it."""
    return f"<b>{words(title)}</b>" + (f"<br>{words(note)}" if note else "")


def button(label: str, action: Callable[[], Awaitable[None] | None], *, strong: bool = False) -> ui.button:
    """Something to press."""
    return ui.button(label, on_click=action).props("no-caps " + ("unelevated" if strong else "outline"))


def drop_zone(address: str, invitation: str, accept: str) -> ui.element:
    """Where a file can be dropped, or chosen; `page.js` sends it to the address and shows what is answered."""
    with box("drop").props(f'data-address="{address}"') as zone:
        button("Choose a file", lambda: None, strong=True).on("click", js_handler="(event) => explore.choose(event)")
        markup(
            f'<input type="file" accept="{words(accept)}" aria-label="{words(invitation)}" tabindex="-1" hidden>'
            f'<div class="say" role="status" aria-live="polite">{words(invitation)}</div>'
        ).style("display: contents")
    return zone


async def complained(doing: Awaitable[None]) -> None:
    """Do something, and say so where it can't be done."""
    try:
        await doing
    except ValueError as failure:
        ui.notify(str(failure), type="negative", position="top")


Chosen = events.GenericEventArguments
"""What the browser says was chosen: its `args` are the number of a place, or of a code."""
