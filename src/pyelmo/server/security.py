"""Who may ask, and what a browser may do with an answer.

    Guard: host name, API key, content type --> app --> security headers

A web page of another site cannot use a server on this machine: a request that is not JSON is refused, JSON needs the
permission of CORS, and a host name that was bent to a loopback address (DNS rebinding) is not accepted.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

from pyelmo.server.problems import problem
from pyelmo.server.settings import LOOPBACK, ServerSettings

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-cache"),
)
# Computation and texts need the key; the page itself, the description of the API and the checks of a load balancer do
# not.
PROTECTED = ("/v1/", "/embed", "/predict", "/score", "/similarity", "/neighbours", "/task/", "/explore", "/metrics")


class Guard:
    """ASGI middleware that refuses who may not ask, and adds the security headers to every answer."""

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self.app = app
        self.key = None if settings.api_key is None else f"Bearer {settings.api_key}".encode("ascii")
        # With a key, or on a public address, the names under which the server is reached are not known here.
        self.names = {name.encode() for name in LOOPBACK} if settings.local and self.key is None else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = {name for name, _ in message["headers"]}
                message["headers"] += [header for header in HEADERS if header[0] not in own]
            await send(message)

        refusal = self._refuse(scope)
        await (refusal or self.app)(scope, receive, send_with_headers)

    def _refuse(self, scope: Scope) -> Response | None:
        """Return the answer to a request that is refused, else None."""
        headers = dict(scope["headers"])
        if self.names is not None and _host_name(headers.get(b"host", b"")) not in self.names:
            return problem(403, "the host name of this request is not one of this machine. Use 127.0.0.1 or localhost")
        method, path = scope["method"], scope["path"]
        if self.key is not None and path.startswith(PROTECTED):
            given = headers.get(b"authorization", b"")
            if not hmac.compare_digest(given, self.key):
                message = "the API key is missing or wrong. Send it as the header 'Authorization: Bearer KEY'"
                return problem(401, message, code="invalid_api_key", headers={"www-authenticate": "Bearer"})
        if (
            method == "POST"
            and headers.get(b"content-type", b"").partition(b";")[0].strip().lower() != b"application/json"
        ):
            return problem(415, "the body must be JSON. Send it with the header 'Content-Type: application/json'")
        return None


def _host_name(host: bytes) -> bytes:
    """Return the name in a Host header, without the port and the brackets of an IPv6 address."""
    if host.startswith(b"["):
        return host[1:].partition(b"]")[0]
    return host.partition(b":")[0].lower()
