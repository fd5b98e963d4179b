"""The body of a request within limits of size and time, and a handler that ends when its client is gone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pyelmo.server.problems import problem
from pyelmo.server.settings import Limits

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


class BodyError(Exception):
    """The body is too long or too slow; `status` says which."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class LimitBody:
    """ASGI middleware that reads the body within limits, and cancels the handler when the client is gone."""

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self.app, self.limits = app, limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        try:
            body = await self._read(scope, receive)
        except BodyError as error:
            # The rest of the body is not read, so the connection cannot be used again.
            answer = problem(error.status, str(error), headers={"connection": "close"})
            await answer(scope, receive, send)
            return
        if body is None:
            return
        await self._run(body, scope, receive, send)

    async def _read(self, scope: Scope, receive: Receive) -> bytes | None:
        """Return the whole body; None if the client is gone."""
        too_long = f"the body is longer than {self.limits.body} bytes. Send several requests"
        length = dict(scope["headers"]).get(b"content-length", b"")
        if length.isdigit() and int(length) > self.limits.body:
            raise BodyError(413, too_long)
        parts, size, more = [], 0, True
        try:
            async with asyncio.timeout(self.limits.time):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > self.limits.body:
                        raise BodyError(413, too_long)
                    more = message.get("more_body", False)
        except TimeoutError:
            raise BodyError(408, f"the body did not arrive within {self.limits.time:g} seconds") from None
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def _run(self, body: bytes, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the app with a body, and cancel it when the client is gone."""
        given = False
        forever: asyncio.Future[Message] = asyncio.get_running_loop().create_future()

        async def receive_body() -> Message:
            nonlocal given
            if given:
                return await forever
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        handler = asyncio.current_task()
        assert handler is not None
        gone = False

        async def watch() -> None:
            nonlocal gone
            while (await receive())["type"] != "http.disconnect":
                pass
            gone = True
            handler.cancel()

        watcher = asyncio.create_task(watch())
        try:
            await self.app(scope, receive_body, send)
        except asyncio.CancelledError:
            if not gone:
                raise
        finally:
            watcher.cancel()
