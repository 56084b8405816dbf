"""Small elements of the page."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from nicegui import events, ui

from sqvae.reports.page import words


def box(classes: str = "", tag: str = "div") -> ui.element:
    """An element that contains others."""
    return ui.element(tag).classes(classes)


@contextmanager
def card(title: str, note: str = "") -> Iterator[None]:
    """A section of the page with a heading."""
    with box("card", "section"):
        heading(title)
        if note:
            text(note, "quiet small")
        yield


def heading(title: str) -> ui.html:
    """The heading of a section."""
    return markup(f"<h2>{words(title)}</h2>")


def text(content: str = "", classes: str = "") -> ui.label:
    """A text, which may contain any characters."""
    return ui.label(content).classes(f"words {classes}")


def markup(content: str = "", classes: str = "", tag: str = "div") -> ui.html:
    """HTML in which the caller has escaped all text from outside."""
    return ui.html(content, sanitize=False, tag=tag).classes(classes)


def figure(title: str, classes: str = "") -> tuple[ui.html, ui.html]:
    """An element for an image, and one for its caption."""
    with box(classes, "figure"):
        return markup(), markup(caption(title), tag="figcaption")


def caption(title: str, note: str = "") -> str:
    """A caption with a title and a note."""
    return f"<b>{words(title)}</b>" + (f"<br>{words(note)}" if note else "")


def button(label: str, action: Callable[[], Awaitable[None] | None], *, strong: bool = False) -> ui.button:
    """A button."""
    return ui.button(label, on_click=action).props("no-caps " + ("unelevated" if strong else "outline"))


def drop_zone(address: str, invitation: str, accept: str) -> ui.element:
    """An area where a file can be dropped or chosen. `page.js` sends it to the address and displays the answer."""
    with box("drop").props(f'data-address="{address}"') as zone:
        button("Choose a file", lambda: None, strong=True).on("click", js_handler="(event) => explore.choose(event)")
        markup(
            f'<input type="file" accept="{words(accept)}" aria-label="{words(invitation)}" tabindex="-1" hidden>'
            f'<div class="message" role="status" aria-live="polite">{words(invitation)}</div>'
        ).style("display: contents")
    return zone


async def show_errors(action: Awaitable[None]) -> None:
    """Await an action, and display a `ValueError` as a notification."""
    try:
        await action
    except ValueError as failure:
        ui.notify(str(failure), type="negative", position="top")


ClientEvent = events.GenericEventArguments
"""An event from the browser. Its `args` are the number of a position or of a code."""
