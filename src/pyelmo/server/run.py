"""Run a server: in this process, or in several that share the port.

With several workers, this process loads the models, forks the workers, which share the memory of the models, and
replaces one that exits. SIGTERM and Ctrl-C drain: no new connection is accepted, accepted requests are answered.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from pyelmo.errors import InputError, OutputError, missing_extra
from pyelmo.server.service import Service
from pyelmo.server.settings import ServerSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastapi import FastAPI
    from uvicorn import Server

SIGNALS = (signal.SIGTERM, signal.SIGINT)
BACKLOG = 2048  # connections that wait to be accepted
KEEP_ALIVE = 75  # seconds that an idle connection stays open
GARBAGE_AFTER = 2000  # objects: those of a few requests
RESPAWN_SECONDS = 1.0  # a worker that exits sooner than this is not replaced at once


def run(settings: ServerSettings, on_listen: Callable[[str], None] = lambda address: None) -> None:
    """Serve until SIGTERM or Ctrl-C.

    Args:
        settings: What to serve, and where.
        on_listen: Called with the address of the server when it is ready.

    Raises:
        MissingExtraError: FastAPI or uvicorn is not installed.
        OutputError: The port cannot be used.
        PyelmoError: A model, an index or a task model cannot be loaded.
    """
    if settings.workers > 1 and not hasattr(os, "fork"):
        raise InputError("this system cannot fork processes. Use --workers 1")
    listener = _listen(settings)
    with listener:
        service = _Loading(settings)
        try:
            import uvicorn

            from pyelmo.server.app import create_app
        except ImportError:
            raise missing_extra("serve", "elmo serve") from None
        app = create_app(settings, service.result())

        def make_server() -> Server:
            return uvicorn.Server(_config(app, settings))

        def announce() -> None:
            listener.listen(BACKLOG)
            host, port = listener.getsockname()[:2]
            on_listen(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")

        _tune_garbage_collector()
        if settings.workers == 1:
            _serve(make_server(), listener, announce)
        else:
            _Supervisor(make_server, listener, app.state.pyelmo.metrics.use_row).run(settings.workers, announce)


def _config(app: FastAPI, settings: ServerSettings) -> Any:
    from uvicorn import Config

    from pyelmo.server.connections import limit_headers

    return Config(
        app, http=limit_headers(settings.limits.time),
        access_log=False, log_level="warning", server_header=False, proxy_headers=False, ws="none",
        lifespan="off", backlog=BACKLOG, timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=int(2 * settings.limits.time) + 1,
    )  # fmt: skip


def _tune_garbage_collector() -> None:
    """Leave out what was loaded, which is never garbage, and collect the garbage of requests often."""
    gc.freeze()
    gc.set_threshold(GARBAGE_AFTER, 10, 10)


class _Loading:
    """The service, loaded on another thread: importing FastAPI takes as long as loading a model."""

    def __init__(self, settings: ServerSettings) -> None:
        self._service: Service | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._load, args=(settings,), daemon=True)
        self._thread.start()

    def _load(self, settings: ServerSettings) -> None:
        try:
            self._service = Service(settings)
        except BaseException as error:
            self._error = error

    def result(self) -> Service:
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._service is not None
        return self._service


def _listen(settings: ServerSettings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # The protocol is named because asyncio sets TCP_NODELAY only then. Without it, small answers wait 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        raise OutputError(f"{settings.host}:{settings.port}: cannot listen there: {error.strerror or error}") from error
    return listener


def _serve(server: Server, listener: socket.socket, announce: Callable[[], None] = lambda: None) -> None:
    """Serve until a signal comes, which drains from the moment of the announcement on.

    At its end uvicorn repeats the signal with the handler that it found. That is its own one here, so nothing happens.
    """
    with contextlib.ExitStack() as stack:
        for number in SIGNALS:
            stack.callback(signal.signal, number, signal.signal(number, server.handle_exit))
        announce()
        server.run([listener])


class _Supervisor:
    """The parent of the workers."""

    def __init__(
        self, make_server: Callable[[], Server], listener: socket.socket, use_row: Callable[[int], None]
    ) -> None:
        self.make_server, self.listener, self.use_row = make_server, listener, use_row
        self.workers: dict[int, tuple[int, float]] = {}  # process id -> number, time of its start
        self.stopping = False

    def run(self, workers: int, announce: Callable[[], None]) -> None:
        previous = {number: signal.signal(number, self._stop) for number in SIGNALS}
        try:
            announce()
            for number in range(workers):
                self._start(number)
            while self.workers:
                self._wait()
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    def _stop(self, number: int, frame: object) -> None:
        self.stopping = True
        self.listener.close()
        for process in self.workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)

    def _start(self, number: int) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # until the parent knows of the child, and the child is apart
        process = None if self.stopping else os.fork()
        if process:
            self.workers[process] = number, time.monotonic()
        if process != 0:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            return
        status = 1
        try:
            for each in SIGNALS:
                signal.signal(each, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            _end_with_parent()
            self.use_row(number)
            _serve(self.make_server(), self.listener)
            status = 0
        finally:
            sys.stderr.flush()
            os._exit(status)

    def _wait(self) -> None:
        """Wait for a worker that exits, and replace it unless the server stops."""
        process, _ = os.wait()
        number, started = self.workers.pop(process)
        if self.stopping:
            return
        if time.monotonic() - started < RESPAWN_SECONDS:
            time.sleep(RESPAWN_SECONDS)
        self._start(number)


def _end_with_parent() -> None:
    """Make this worker drain and exit when its parent is gone, even if that was killed."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()
