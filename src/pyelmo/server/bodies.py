"""The body of a request, and of its answer, within limits of size and time; a handler ends when its client is gone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pyelmo.server.problems import problem
from pyelmo.server.settings import Limits

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

CHUNK = 2**18  # bytes of an answer that are sent at once; the rest waits until the client has read most of them


class LimitBody:
    """ASGI middleware that reads bodies within limits, and cancels the handler of a client that is gone."""

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self.app, self.limits = app, limits
        self.running = 0  # requests
        self.unsent = 0  # bytes of answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        if self.running >= self.limits.requests or self.unsent >= self.limits.unsent:
            message = "too many requests are being answered. Try again in a second"
            headers = {"retry-after": "1", "connection": "close"}  # the body is not read
            await problem(429, message, code="queue_full", headers=headers)(scope, receive, send)
            return
        self.running += 1
        try:
            body = await self._read(scope, receive)
            if isinstance(body, bytes):
                await _Exchange(self, body, receive, send).run(scope)
            elif body is not None:
                await body(scope, receive, send)
        finally:
            self.running -= 1

    async def _read(self, scope: Scope, receive: Receive) -> bytes | Response | None:
        """Return the whole body, or the answer if it is too long or too slow, or None if the client is gone."""
        limit = self.limits.body
        length = dict(scope["headers"]).get(b"content-length", b"")
        more = not (length.isdigit() and int(length) > limit)
        parts, size = [], 0 if more else limit + 1
        try:
            async with asyncio.timeout(self.limits.time):
                while more and size <= limit:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    more = message.get("more_body", False)
        except TimeoutError:
            text = f"the body did not arrive within {self.limits.time:g} seconds"
            return problem(408, text, headers={"connection": "close"})
        if size > limit:
            text = f"the body is longer than {limit} bytes. Send several requests"
            return problem(413, text, headers={"connection": "close"})
        return parts[0] if len(parts) == 1 else b"".join(parts)


class _Exchange:
    """One request with its body, and its answer."""

    def __init__(self, middleware: LimitBody, body: bytes, receive: Receive, send: Send) -> None:
        self.middleware, self.body, self.receive, self.send = middleware, body, receive, send
        self.given = self.answered = self.gone = False

    async def run(self, scope: Scope) -> None:
        """Run the app, and cancel it when the client is gone."""
        handler = asyncio.current_task()
        assert handler is not None
        watcher = asyncio.create_task(self._watch(handler))
        try:
            await self.middleware.app(scope, self._receive_body, self._send_parts)
        except asyncio.CancelledError:
            if not self.gone:
                raise
        finally:
            watcher.cancel()

    async def _watch(self, handler: asyncio.Task[object]) -> None:
        while (await self.receive())["type"] != "http.disconnect":
            pass
        if not self.answered:
            self.gone = True
            handler.cancel()

    async def _receive_body(self) -> Message:
        if self.given:
            await asyncio.Event().wait()  # nothing more comes, and `_watch` hears of the end
        self.given = True
        return {"type": "http.request", "body": self.body, "more_body": False}

    async def _send_parts(self, message: Message) -> None:
        """Send an answer in parts, each when the client has read the one before."""
        content = message.get("body", b"")
        self.answered = message["type"] == "http.response.body" and not message.get("more_body")
        if len(content) <= CHUNK:
            await self.send(message)
            return
        self.answered = False
        unsent = len(content)
        self.middleware.unsent += unsent
        try:
            async with asyncio.timeout(self.middleware.limits.time):
                while unsent > CHUNK:
                    part = content[-unsent : CHUNK - unsent]
                    await self.send({"type": "http.response.body", "body": part, "more_body": True})
                    unsent -= CHUNK
                    self.middleware.unsent -= CHUNK
                self.answered = not message.get("more_body")
                await self.send({**message, "body": content[-unsent:]})
        except TimeoutError:  # the client reads too slowly
            self.gone = True
            raise asyncio.CancelledError from None
        finally:
            self.middleware.unsent -= unsent
