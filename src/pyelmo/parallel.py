"""Processes that share work and end with their parent, however that ends."""

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
    """Return the context that new processes start in: a fork of a program with threads (torch) may hang."""
    return multiprocessing.get_context("spawn")


@contextlib.contextmanager
def process_pool(workers: int, advice: str) -> Iterator[concurrent.futures.ProcessPoolExecutor]:
    """Give a pool of processes; if one dies, raise an error that ends in `advice`."""
    pool = concurrent.futures.ProcessPoolExecutor(workers, mp_context=spawn_context(), initializer=end_with_parent)
    try:
        yield pool
    except BrokenProcessPool as error:
        raise PyelmoError(f"a worker process exited unexpectedly. {advice}") from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def end_with_parent() -> None:
    """In a process of `multiprocessing`: leave Ctrl-C to the parent, and exit when the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:

        def wait() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=wait, daemon=True).start()


def end_with_stdin() -> None:
    """In a command whose standard input is a pipe from its parent: stop when the parent closes it or dies."""

    def wait() -> None:
        while os.read(0, 1024):  # not sys.stdin: a thread must not hold its lock when Python exits
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()
