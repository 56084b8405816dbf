"""The server of the page. It listens on this machine only, and answers only to its own page."""

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
"""The ports among which a free one is chosen."""

MAX_UPLOADS = 2
"""The largest number of simultaneous uploads, because each may need the full memory for a file."""

UPLOAD_SECONDS = 10.0
"""The time limit of an upload in seconds, so that a stalled upload does not block others for longer."""

RECONNECT_SECONDS = 5.0
"""The time in seconds after which the state of a closed tab is discarded."""

MAX_MESSAGE_BYTES = 2**20
"""The largest size in bytes of a message on the web socket; uploads don't use it."""


def free_socket(port: int | None) -> socket.socket:
    """A socket that listens on this machine, at the given port or at a free one."""
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
    raise OSError(
        f"no free port at {where} ({reason}): stop the program that uses it, or choose another port with --port"
    )


def application(explorer: Explorer, port: int, token: str) -> ASGIApp:
    """The web application of the page, behind its guard."""
    app = FastAPI(openapi_url=None)
    tabs = register(explorer)
    receiving = 0

    @app.post("/upload/{client}/{slot}")
    async def upload(client: str, slot: str, request: Request) -> PlainTextResponse:
        nonlocal receiving
        tab = tabs.get(client)
        if tab is None:
            return PlainTextResponse("the server has discarded the state of this page: reload it", 404)
        if receiving >= MAX_UPLOADS:
            return PlainTextResponse("too many uploads at once: try again in a moment", 503)
        name = printable(unquote(request.headers.get("x-name", "a file"), errors="replace"))
        receiving += 1
        try:
            content = await asyncio.wait_for(request.body(), UPLOAD_SECONDS)
            return PlainTextResponse(await tab.receive(content, name, slot))
        except asyncio.TimeoutError:
            text = f"{name[-100:]}: refused. The upload took longer than {UPLOAD_SECONDS:.0f} seconds: try again"
            return PlainTextResponse(text, 408, {"connection": "close"})
        except RefusedError as refused:
            return PlainTextResponse(f"{name[-100:]}: refused. {refused}", 422)
        finally:
            receiving -= 1

    ui.run_with(app, tailwind=False, reconnect_timeout=RECONNECT_SECONDS, show_welcome_message=False, favicon=_ICON)
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
        explorer: the run to show.
        listening: the socket, from :func:`free_socket`.
        started: called with the address of the page. The address contains a secret token, without which requests are
            refused.
    """
    port, token = listening.getsockname()[1], new_token()
    config = uvicorn.Config(
        application(explorer, port, token),
        log_level="warning",
        access_log=False,
        ws_max_size=MAX_MESSAGE_BYTES,
        timeout_graceful_shutdown=1,
        server_header=False,
    )
    # NiceGUI inspects every object in memory as it starts, and some objects of torch warn when they are inspected.
    warnings.filterwarnings("ignore", category=FutureWarning, module="nicegui")
    started(f"http://{HOST}:{port}/?token={token}")
    try:
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listening])
    finally:
        explorer.close()
