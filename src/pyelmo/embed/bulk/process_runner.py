"""Run the parts of a bulk job on processes of this machine.

The main process sends each worker one part at a time over a pipe. A worker answers with numbers of finished sentences,
then with None when the part is complete, or with a failure. A worker may die at any moment: an unfinished part has a
temporary name.
"""

from __future__ import annotations

import contextlib
import functools
import pickle
import signal
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from pyelmo.embed.bulk.job import RESUME, Advance, BulkJob, BulkPart, RunParts
from pyelmo.errors import PyelmoError
from pyelmo.parallel import end_with_parent, spawn_context

REPORT_SECONDS = 0.5  # how often a worker reports its progress

Workers = dict[Any, BaseProcess]  # the processes by the main process's end of their pipe


@dataclass(frozen=True)
class WorkerFailure:
    """An error that a worker sends to the main process, with its traceback as text."""

    error: BaseException
    traceback: str


class WorkerError(Exception):
    """The traceback of a worker's error, shown as the cause of that error in the main process."""


@contextlib.contextmanager
def process_workers(job: BulkJob, count: int) -> Iterator[RunParts]:
    """Start worker processes, which load their models at once, and yield the function that runs parts on them."""
    context = spawn_context()
    workers: Workers = {}
    try:
        for number in range(count):
            connection, worker_end = context.Pipe()
            workers[connection] = context.Process(target=_work, args=(worker_end, job, number), daemon=True)
            workers[connection].start()
            worker_end.close()  # so that reading from `connection` ends when the worker dies
        yield functools.partial(_run_parts, workers)
    finally:
        for process in workers.values():  # before the connections are closed, which a live worker would report
            if process.pid is not None:
                process.kill()
        for connection, process in workers.items():
            if process.pid is not None:
                process.join()
            connection.close()


def _run_parts(workers: Workers, parts: Sequence[BulkPart], advance: Advance) -> None:
    """Send each worker one part after another, until all are written or one fails."""
    remaining = iter(parts)
    current: dict[Any, BulkPart] = {}  # what each busy worker writes
    connection: Any

    def send_next(connection: Any) -> None:
        part = next(remaining, None)
        if part is None:
            current.pop(connection, None)
        else:
            current[connection] = part
            with _reporting_death(workers[connection], part):
                connection.send(part)

    for connection in workers:
        send_next(connection)
    while current:
        for connection in wait(list(current)):
            with _reporting_death(workers[connection], current[connection]):
                message = connection.recv()
            if isinstance(message, WorkerFailure):
                raise message.error from WorkerError(message.traceback)
            if isinstance(message, int):
                advance(message)
            else:
                send_next(connection)


@contextlib.contextmanager
def _reporting_death(process: BaseProcess, part: BulkPart) -> Iterator[None]:
    """Raise a clear error if the worker at the other end of a connection has died."""
    try:
        yield
    except (EOFError, OSError) as error:
        process.join()
        code = process.exitcode or 0
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with status {code}"
        raise PyelmoError(
            f"a worker (process {process.pid}) {how} while it wrote part {part.number}. Was there too little memory? "
            f"{RESUME}"
        ) from error


def _work(connection: Connection, job: BulkJob, number: int) -> None:
    """Write parts, as a worker process, until the main process ends it."""
    end_with_parent()
    progress = ProgressReporter(connection)
    try:
        embedder = job.load_model(number)
        part = connection.recv()  # arrives after the main process has saved the frequent words
        embedder.word_table().load(job.common_words_path)
        while True:
            job.write_part(embedder, part, progress.advance)
            progress.flush()
            connection.send(None)
            part = connection.recv()
    except BaseException as error:
        connection.send(WorkerFailure(_picklable(error), traceback.format_exc()))


def _picklable(error: BaseException) -> BaseException:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


class ProgressReporter:
    """Sends the number of finished sentences to the main process, not more often than every REPORT_SECONDS."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._count = 0
        self._last_report = time.monotonic()

    def advance(self, count: int) -> None:
        self._count += count
        if time.monotonic() - self._last_report > REPORT_SECONDS:
            self.flush()

    def flush(self) -> None:
        self._connection.send(self._count)
        self._count = 0
        self._last_report = time.monotonic()
