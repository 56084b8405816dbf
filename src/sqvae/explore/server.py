"""The page's server: on this machine only, and for its own page only."""

import asyncio
import socket
import warnings
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import unquote

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse
from nicegui import ui
from starlette.types import ASGIApp

from sqvae.data.wording import printable
from sqvae.explore.explorer import Explorer
from sqvae.explore.guard import Guard, new_token
from sqvae.explore.page import register
from sqvae.modalities.exploring import RefusedError

HOST = "127.0.0.1"
PORTS = range(8500, 8600)
"""Where a free port is looked for."""

AT_ONCE = 2
"""Files that are received at the same time: each may take as much memory as it is allowed to."""

RECEIVED_WITHIN = 10.0
"""Seconds that a file may take to arrive, from this machine: who stalls does not keep others waiting longer."""

RECONNECT = 5.0
"""Seconds after which a tab that has gone is forgotten."""

MESSAGE = 2**20
"""Bytes of what a page says at a time, files apart."""


def free_socket(port: int | None) -> socket.socket:
    """A socket that listens on this machine: at a port, or at a free one."""
    reason = ""
    for candidate in PORTS if port is None else (port,):
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((HOST, candidate))
            listening.listen(128)
            return listening
        except OSError as failure:
            listening.close()
            reason = failure.strerror or str(failure)
    where = f"{PORTS.start} to {PORTS.stop - 1}" if port is None else str(port)
    raise OSError(f"no free port at {where} ({reason}): close what is there, or choose another with --port")


def application(explorer: Explorer, port: int, token: str) -> ASGIApp:
    """The page with all that stands before it."""
    app = FastAPI(openapi_url=None)
    tabs = register(explorer)
    receiving = 0

    @app.post("/upload/{client}/{slot}")
    async def upload(client: str, slot: str, request: Request) -> PlainTextResponse:
        nonlocal receiving
        tab = tabs.get(client)
        if tab is None:
            return PlainTextResponse("this page is no longer known to the server: load it again", 404)
        if receiving >= AT_ONCE:
            return PlainTextResponse("other files are being read: try again in a moment", 503)
        name = printable(unquote(request.headers.get("x-name", "a file"), errors="replace"))
        receiving += 1
        try:
            content = await asyncio.wait_for(request.body(), RECEIVED_WITHIN)
            return PlainTextResponse(await tab.take(content, name, slot))
        except asyncio.TimeoutError:
            text = f"{name[-100:]}: refused. It did not arrive within {RECEIVED_WITHIN:.0f} seconds: try again"
            return PlainTextResponse(text, 408, {"connection": "close"})
        except RefusedError as refused:
            return PlainTextResponse(f"{name[-100:]}: refused. {refused}", 422)
        finally:
            receiving -= 1

    ui.run_with(app, tailwind=False, reconnect_timeout=RECONNECT, show_welcome_message=False, favicon=_ICON)
    return Guard(app, port, token)


_ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 3 3">'
    '<path fill="#1f4e79" d="M0 0h1v1H0zM2 0h1v1H2zM1 1h1v1H1z"/>'
    '<path fill="#9db8d2" d="M1 0h1v1H1zM0 1h1v1H0zM2 2h1v1H2z"/>'
    '<path fill="#c03a4e" d="M2 1h1v1H2zM0 2h2v1H0z"/></svg>'
)


def serve(explorer: Explorer, listening: socket.socket, started: Callable[[str], None]) -> None:
    """Serve the page until Ctrl-C.

    Arguments:
        listening: see :func:`free_socket`.
        started: called with the page's address, in which there is a secret: who does not know it is refused.
    """
    port, token = listening.getsockname()[1], new_token()
    config = uvicorn.Config(
        application(explorer, port, token),
        log_level="warning",
        access_log=False,
        ws_max_size=MESSAGE,
        timeout_graceful_shutdown=1,
        server_header=False,
    )
    # The framework looks at every object there is as it starts, and torch has some that don't want to be looked at.
    warnings.filterwarnings("ignore", category=FutureWarning, module="nicegui")
    started(f"http://{HOST}:{port}/?token={token}")
    try:
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listening])
    finally:
        explorer.close()
