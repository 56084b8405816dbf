"""Who may ask for the page, and how much they may send: what stands before everything else.

The server listens on this machine only, but any page that is open in a browser here can send requests to it, and a name
that an attacker owns can be made to mean 127.0.0.1. So a request must name this server as its host, and must not come
from another page. And other users of this machine can send requests, too: so it must bring a secret, which is in the
address that is printed, and after that in a cookie.
"""

import hmac
import secrets
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qs

from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BYTES = 32 * 2**20
"""Of a request's body."""

POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self' 'unsafe-inline' 'unsafe-eval'",  # the framework compiles its templates in the browser
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "media-src 'self' data:",
        "font-src 'self' data:",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
"""By this the browser itself keeps the page from asking other hosts."""

HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)


SINGLE = ("host", "origin", "cookie", "content-length", "sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest")
"""Headers of which there may be one: of two, one program would look at the first, and another at the last."""


def new_token() -> str:
    """A secret that nobody guesses."""
    return secrets.token_urlsafe(24)


class Guard:
    """Refuses requests for other hosts, from other pages, without the secret, and with too much in them.

    Arguments:
        app: what the others go on to.
        port: that the server listens on.
        token: the secret: see :func:`new_token`.
        most: bytes of a body.
    """

    def __init__(self, app: ASGIApp, port: int, token: str, most: int = MOST_BYTES) -> None:
        self.app = app
        self.token = token
        self.cookie = f"sqvae-{port}"  # cookies are of a host, whatever the port
        self.hosts = (f"127.0.0.1:{port}", f"localhost:{port}")
        self.most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        given = [name.decode("latin-1") for name, _ in scope["headers"]]
        if twice := [name for name in SINGLE if given.count(name) > 1]:
            await _refuse(scope, send, 400, f"a request has one header {twice[0]}, and this one has several")
        elif (reason := self._stranger(headers)) is not None:
            await _refuse(scope, send, 403, reason)
        elif self._is_secret(parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [""])[0]):
            await self._admit(scope, send)
        elif not self._is_secret(self._kept(headers.get("cookie", ""))):
            await _refuse(scope, send, 403, "open the page by the address that `sqvae explore` has printed")
        elif int(headers.get("content-length", "0")) > self.most:  # uvicorn has seen that it is a number
            await _refuse(scope, send, 413, self._too_large())
        else:
            await self._bounded(scope, receive, send)

    def _stranger(self, headers: dict[str, str]) -> str | None:
        """Why a request is not from this page, or None if it may be."""
        address = f"http://{self.hosts[0]}"
        host, origin = headers.get("host", ""), headers.get("origin")
        if host not in self.hosts:
            return f"this server answers to {address} only, and the request was for the host {host[:100]!r}"
        if origin is not None and origin.removeprefix("http://") not in self.hosts:
            return f"this server answers to pages of {address} only, and the request came from {origin[:100]!r}"
        # A browser says so, too, where it sends no origin; to open the page by a link is all right.
        foreign = headers.get("sec-fetch-site", "none") in ("cross-site", "same-site")
        linked = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        if foreign and not linked:
            return f"this server answers to pages of {address} only, and the request came from another site"
        return None

    def _is_secret(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(), self.token.encode())

    def _kept(self, cookies: str) -> str:
        """The secret among the cookies."""
        pairs = (pair.strip().partition("=") for pair in cookies.split(";"))
        return next((value for name, _, value in pairs if name == self.cookie), "")

    async def _admit(self, scope: Scope, send: Send) -> None:
        """Give the browser the secret to keep, and the page without it in the address."""
        cookie = f"{self.cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"
        headers = ((b"location", b"/"), (b"set-cookie", cookie.encode()), (b"content-length", b"0"), *HEADERS)
        prefix = "websocket.http" if scope["type"] == "websocket" else "http"
        await send({"type": f"{prefix}.response.start", "status": 303, "headers": list(headers)})
        await send({"type": f"{prefix}.response.body", "body": b""})

    def _too_large(self) -> str:
        return f"a file may have {self.most // 2**20} MB, and this one has more: make it smaller"

    async def _bounded(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Go on, but only as long as the body is not too large: beyond that, the others see that nobody is there."""
        got, refused = 0, False

        async def counted() -> Message:
            nonlocal got, refused
            message = await receive()
            got += len(message.get("body", b"")) if message["type"] == "http.request" else 0
            if got <= self.most:
                return message
            if not refused:
                refused = True
                await _refuse(scope, send, 413, self._too_large())
            return {"type": "http.disconnect"}

        async def with_headers(message: Message) -> None:
            if refused:
                return
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *HEADERS]}
            await send(message)

        try:
            await self.app(scope, counted, with_headers)
        except Exception:
            if not refused:
                raise


async def _refuse(scope: Scope, send: Send, status: int, reason: str) -> None:
    """Answer with a sentence, also to a web socket that is not yet one."""
    if scope["type"] == "websocket" and "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1008, "reason": reason[:120]})
        return
    prefix = "websocket.http" if scope["type"] == "websocket" else "http"
    content = f"{status}: {reason}\n".encode()
    headers: Iterable[Any] = (
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(content)).encode()),
        (b"connection", b"close"),  # what is left of the body is not read
        *HEADERS,
    )
    await send({"type": f"{prefix}.response.start", "status": status, "headers": list(headers)})
    await send({"type": f"{prefix}.response.body", "body": content})
