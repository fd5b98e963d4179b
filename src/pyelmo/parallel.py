"""Worker processes that exit with their parent, even if it is killed; locks after a fork; a stop by a signal."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyelmo.errors import PyelmoError

if TYPE_CHECKING:  # slow to import, and embedding needs only the locks
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing.context import SpawnContext


def spawn_context() -> SpawnContext:
    """Return the context for new processes. A forked process may hang if the parent has threads (torch)."""
    import multiprocessing

    return multiprocessing.get_context("spawn")


@contextlib.contextmanager
def process_pool(workers: int, advice: str) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool of processes; if a process dies, raise a PyelmoError that ends with `advice`."""
    from concurrent.futures.process import BrokenProcessPool, ProcessPoolExecutor

    pool = ProcessPoolExecutor(workers, mp_context=spawn_context(), initializer=end_with_parent)
    try:
        yield pool
    except BrokenProcessPool as error:
        raise PyelmoError(f"a worker process exited unexpectedly. {advice}") from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def end_with_parent() -> None:
    """Make this process of `multiprocessing` ignore Ctrl-C, and exit when its parent exits."""
    import multiprocessing

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:

        def wait() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=wait, daemon=True).start()


def end_with_stdin() -> None:
    """Make this command stop when the parent closes the pipe to its standard input, or exits."""

    def wait() -> None:
        while os.read(0, 1024):  # not sys.stdin: its lock must be free when Python exits
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()


_fork_locks: weakref.WeakSet[Any] = weakref.WeakSet()


def fork_safe_lock() -> threading.RLock:
    """Return a lock that no other thread holds while the process forks, so that it is free in the child."""
    lock = threading.RLock()
    _fork_locks.add(lock)
    return lock


if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    _held: list[Any] = []

    def _acquire() -> None:
        _held[:] = _fork_locks
        for lock in _held:
            lock.acquire()

    def _release() -> None:
        while _held:
            _held.pop().release()

    os.register_at_fork(before=_acquire, after_in_parent=_release, after_in_child=_release)


class StopRequest:
    """Whether SIGINT or SIGTERM came, for work that can stop only between two steps."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def obey(self) -> None:
        """Send the signal again, now that the work is saved: the caller's own handler decides what follows."""
        signal.raise_signal(signal.SIGTERM if self.signal is None else self.signal)


@contextlib.contextmanager
def stop_requests() -> Iterator[StopRequest]:
    """Yield a request that the first SIGINT or SIGTERM sets. A second signal has its usual effect, at once."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    handlers = {number: signal.getsignal(number) or signal.SIG_DFL for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in handlers.items():
            signal.signal(number, handler)

    def note(number: int, frame: object) -> None:
        request.signal = number
        restore()

    for number in handlers:
        signal.signal(number, note)
    try:
        yield request
    finally:
        restore()
