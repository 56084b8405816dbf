"""Checks of every request to the page: its host, its origin, a secret token, and its size.

The server listens on this machine only. But any page that is open in a browser here can send requests to it, and an
attacker can make a domain name resolve to 127.0.0.1. Therefore a request must name this server as its host, and must
not come from another page. Other users of this machine can send requests, too. Therefore a request must contain a
secret token, which is in the printed address, and after the first request in a cookie.
"""

import hmac
import secrets
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qs

from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY_BYTES = 32 * 2**20
"""The largest size of the body of a request."""

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
"""A content security policy that keeps the page from sending requests to other hosts."""

HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)

UNIQUE_HEADERS = ("host", "origin", "cookie", "content-length", "sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest")
"""Headers that may occur only once, because programs differ in whether they use the first or the last one."""


def new_token() -> str:
    """A random secret token."""
    return secrets.token_urlsafe(24)


class Guard:
    """Refuses requests for other hosts, from other pages, without the token, and with bodies that are too large.

    Arguments:
        app: the application that gets all other requests.
        port: the port of the server.
        token: the secret, from :func:`new_token`.
        max_bytes: the largest size of the body of a request.
    """

    def __init__(self, app: ASGIApp, port: int, token: str, max_bytes: int = MAX_BODY_BYTES) -> None:
        self.app = app
        self.token = token
        self.cookie = f"sqvae-{port}"  # cookies belong to a host, regardless of the port
        self.hosts = (f"127.0.0.1:{port}", f"localhost:{port}")
        self.max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        names = [name.decode("latin-1") for name, _ in scope["headers"]]
        if repeated := [name for name in UNIQUE_HEADERS if names.count(name) > 1]:
            await _refuse(
                scope, send, 400, f"a request may have only one header {repeated[0]}, and this one has several"
            )
        elif (reason := self._refusal(headers)) is not None:
            await _refuse(scope, send, 403, reason)
        elif self._is_token(parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [""])[0]):
            await self._set_cookie(scope, send)
        elif not self._is_token(self._token_in(headers.get("cookie", ""))):
            await _refuse(scope, send, 403, "open the page with the address that `sqvae explore` has printed")
        elif int(headers.get("content-length", "0")) > self.max_bytes:  # uvicorn has checked that it is a number
            await _refuse(scope, send, 413, self._too_large())
        else:
            await self._forward(scope, receive, send)

    def _refusal(self, headers: dict[str, str]) -> str | None:
        """The reason to refuse a request because of its host or its origin; None if both are valid."""
        address = f"http://{self.hosts[0]}"
        host, origin = headers.get("host", ""), headers.get("origin")
        if host not in self.hosts:
            return f"this server answers to {address} only, and the request was for the host {host[:100]!r}"
        if origin is not None and origin.removeprefix("http://") not in self.hosts:
            return f"this server answers to pages of {address} only, and the request came from {origin[:100]!r}"
        # Without an origin, a browser still says whether a request is from another site. Links to the page are allowed.
        cross_site = headers.get("sec-fetch-site", "none") in ("cross-site", "same-site")
        linked = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        if cross_site and not linked:
            return f"this server answers to pages of {address} only, and the request came from another site"
        return None

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(), self.token.encode())

    def _token_in(self, cookies: str) -> str:
        """The token in the cookies of a request."""
        pairs = (pair.strip().partition("=") for pair in cookies.split(";"))
        return next((value for name, _, value in pairs if name == self.cookie), "")

    async def _set_cookie(self, scope: Scope, send: Send) -> None:
        """Store the token in a cookie, and redirect to the address without the token."""
        cookie = f"{self.cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"
        headers = ((b"location", b"/"), (b"set-cookie", cookie.encode()), (b"content-length", b"0"), *HEADERS)
        prefix = "websocket.http" if scope["type"] == "websocket" else "http"
        await send({"type": f"{prefix}.response.start", "status": 303, "headers": list(headers)})
        await send({"type": f"{prefix}.response.body", "body": b""})

    def _too_large(self) -> str:
        return f"a file may have at most {self.max_bytes // 2**20} MB, and this one is larger: make it smaller"

    async def _forward(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on to the application. If its body gets too large, refuse it, and report a disconnect to the
        application."""
        received, refused = 0, False

        async def receive_counted() -> Message:
            nonlocal received, refused
            message = await receive()
            received += len(message.get("body", b"")) if message["type"] == "http.request" else 0
            if received <= self.max_bytes:
                return message
            if not refused:
                refused = True
                await _refuse(scope, send, 413, self._too_large())
            return {"type": "http.disconnect"}

        async def send_with_headers(message: Message) -> None:
            if refused:
                return
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *HEADERS]}
            await send(message)

        try:
            await self.app(scope, receive_counted, send_with_headers)
        except Exception:
            if not refused:
                raise


async def _refuse(scope: Scope, send: Send, status: int, reason: str) -> None:
    """Refuse a request with a reason, also a request to open a web socket."""
    if scope["type"] == "websocket" and "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1008, "reason": reason[:120]})
        return
    prefix = "websocket.http" if scope["type"] == "websocket" else "http"
    content = f"{status}: {reason}\n".encode()
    headers: Iterable[Any] = (
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(content)).encode()),
        (b"connection", b"close"),  # the rest of the body is not read
        *HEADERS,
    )
    await send({"type": f"{prefix}.response.start", "status": status, "headers": list(headers)})
    await send({"type": f"{prefix}.response.body", "body": content})
