"""Worker processes that exit together with their parent, even if the parent is killed."""

from __future__ import annotations

import concurrent.futures
import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.context import SpawnContext

from pyelmo.errors import PyelmoError


def spawn_context() -> SpawnContext:
    """Return the context for new processes. A forked process may hang if the parent has threads (torch)."""
    return multiprocessing.get_context("spawn")


@contextlib.contextmanager
def process_pool(workers: int, advice: str) -> Iterator[concurrent.futures.ProcessPoolExecutor]:
    """Yield a pool of processes; if a process dies, raise a PyelmoError that ends with `advice`."""
    pool = concurrent.futures.ProcessPoolExecutor(workers, mp_context=spawn_context(), initializer=end_with_parent)
    try:
        yield pool
    except BrokenProcessPool as error:
        raise PyelmoError(f"a worker process exited unexpectedly. {advice}") from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def end_with_parent() -> None:
    """Make this process of `multiprocessing` ignore Ctrl-C, and exit when its parent exits."""
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
