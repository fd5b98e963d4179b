"""Connections whose request line and headers do not arrive in time are closed.

uvicorn limits only the time between two requests, so without this a client that sends nothing, or half of a header,
would keep its connection, and a file descriptor of the server, for ever.
"""

from __future__ import annotations

from asyncio import TimerHandle, Transport
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol


def limit_headers(seconds: float) -> type[Any]:
    """Return the HTTP protocol of uvicorn with a limit on the time from the first byte of a request to its headers.

    Args:
        seconds: The limit, also for a new connection on which nothing is sent.

    Returns:
        A class for `uvicorn.Config(http=...)`.
    """
    base: Any = AutoHTTPProtocol

    class LimitHeaders(base):  # type: ignore[misc]
        timer: TimerHandle | None = None

        def connection_made(self, transport: Transport) -> None:
            super().connection_made(transport)
            self._wait()

        def data_received(self, data: bytes) -> None:
            before = self.cycle  # the last request whose headers have arrived
            super().data_received(data)
            if self.cycle is not before:
                self._stop()
            elif self.timer is None and before.response_complete:
                self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop()
            super().connection_lost(exc)

        def _wait(self) -> None:
            self.timer = self.loop.call_later(seconds, self.transport.close)

        def _stop(self) -> None:
            if self.timer is not None:
                self.timer.cancel()
                self.timer = None

    return LimitHeaders
