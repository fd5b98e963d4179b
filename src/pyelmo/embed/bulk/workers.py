"""The parts of a bulk job -> files: here, in several processes, or on Ray. A part comes out the same wherever it ran.

Each worker holds one model and takes one part after another. A part's file takes its name when it is whole, so that a
worker may end at any moment.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import logging
import os
import pickle
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pyelmo import errors
from pyelmo.embed.embedder import Embedder
from pyelmo.embed.files.inputs import InputPosition, read
from pyelmo.embed.files.store import part_name
from pyelmo.embed.settings import EmbedSettings
from pyelmo.errors import PyelmoError, missing_extra
from pyelmo.parallel import end_with_parent, spawn_context

KEPT = "What is done is kept: run the command again, without --force, to go on."
REPORT_SECONDS = 0.5  # between two words of a worker about its progress

Advance = Callable[[int], object]


@dataclass(frozen=True)
class BulkPart:
    """Some consecutive sentences, and where the input holds them."""

    number: int
    first: int
    count: int
    place: InputPosition


RunParts = Callable[[Sequence[BulkPart], Advance], None]


@dataclass(frozen=True, kw_only=True)
class Work:
    """What every worker of a job knows."""

    task: EmbedSettings
    inputs: list[str]
    column: str | None
    folder: str

    @property
    def words(self) -> Path:
        """Where the vectors of the commonest words lie, so that no worker encodes them itself."""
        return Path(self.folder) / ".words.part"

    def load(self, number: int = 0) -> Embedder:
        """The model for the worker of this number; several GPUs are taken in turn."""
        task = self.task
        if task.device == "cuda" and torch.cuda.device_count() > 1:
            task = dataclasses.replace(task, device=f"cuda:{number % torch.cuda.device_count()}")
        if task.threads is not None:
            torch.set_num_threads(task.threads)
        return task.load()

    def run(self, embedder: Embedder, part: BulkPart, advance: Advance) -> None:
        sentences = itertools.islice(read(self.inputs, self.column, part.place), part.count)
        path = Path(self.folder) / part_name(part.number, self.task.format)
        self.task.write(
            embedder, sentences, path, first=part.first, count=part.count, force=True, advance=advance
        )  # fmt: skip


# --- processes -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Failure:
    """An error on its way from a worker, with where it was raised, as text."""

    error: BaseException
    where: str


class WorkerError(Exception):
    """Where a worker's error was raised."""


@contextlib.contextmanager
def processes(work: Work, workers: int) -> Iterator[RunParts]:
    """Workers as processes of this machine, which load their models from now on."""
    context = spawn_context()
    crew: dict[Any, BaseProcess] = {}  # by the connections to them
    try:
        for number in range(workers):
            here, there = context.Pipe()
            crew[here] = context.Process(target=_serve, args=(there, work, number), daemon=True)
            crew[here].start()
            there.close()  # so that the worker's death is the end of what can be read from `here`
        yield functools.partial(_share_out, crew)
    finally:
        for process in crew.values():  # before the connections close, so that no worker complains of that
            if process.pid is not None:
                process.kill()
        for connection, process in crew.items():
            if process.pid is not None:
                process.join()
            connection.close()


def _share_out(crew: dict[Any, BaseProcess], parts: Sequence[BulkPart], advance: Advance) -> None:
    """Give each worker one part after another; the first error, or the death of a process, is the end."""
    waiting = iter(parts)
    at: dict[Any, BulkPart] = {}
    ready: Any

    def give(connection: Any) -> None:
        part = next(waiting, None)
        if part is None:
            at.pop(connection, None)
        else:
            at[connection] = part
            with _alive(crew[connection], part):
                connection.send(part)

    for connection in crew:
        give(connection)
    while at:
        for ready in wait(list(at)):
            with _alive(crew[ready], at[ready]):
                message = ready.recv()
            if isinstance(message, Failure):
                raise message.error from WorkerError(message.where)
            if isinstance(message, int):
                advance(message)
            else:
                give(ready)


@contextlib.contextmanager
def _alive(process: BaseProcess, part: BulkPart) -> Iterator[None]:
    """Talking to a worker that is no more is one clear error."""
    try:
        yield
    except (EOFError, OSError) as error:
        process.join()
        code = process.exitcode or 0
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
        raise PyelmoError(
            f"a worker (process {process.pid}) {how} while it was at part {part.number}. Was there too little memory? "
            f"{KEPT}"
        ) from error


def _serve(connection: Connection, work: Work, number: int) -> None:
    """A worker process: takes parts until it is ended."""
    end_with_parent()
    report = Reporter(connection)
    try:
        embedder = work.load(number)
        part = connection.recv()  # comes when the words are there
        embedder.words.load(work.words)
        while True:
            work.run(embedder, part, report.advance)
            report.flush()
            connection.send(None)
            part = connection.recv()
    except BaseException as error:
        connection.send(Failure(_portable(error), traceback.format_exc()))


def _portable(error: BaseException) -> BaseException:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


class Reporter:
    """Sums up the sentences that are done, so that one message serves for many."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._count, self._told = 0, time.monotonic()

    def advance(self, count: int) -> None:
        self._count += count
        if time.monotonic() - self._told > REPORT_SECONDS:
            self.flush()

    def flush(self) -> None:
        self._connection.send(self._count)
        self._count, self._told = 0, time.monotonic()


# --- Ray -----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def on_ray(work: Work, workers: int) -> Iterator[RunParts]:
    """Workers as Ray's actors; their machines must see the input, the model and the output folder."""
    ray = import_ray()
    with _ray_session(ray, cpus=workers * (work.task.threads or 1)):
        yield functools.partial(_share_out_on_ray, ray, work, workers)


def _share_out_on_ray(ray: Any, work: Work, workers: int, parts: Sequence[BulkPart], advance: Advance) -> None:
    rows = [{"number": number} for number in range(len(parts))]
    done = ray.data.from_items(rows, override_num_blocks=len(parts)).map_batches(
        RayWorker,
        fn_constructor_args=(work, list(parts)),
        batch_size=1,
        concurrency=workers,
        num_cpus=work.task.threads or 1,
        num_gpus=1 if work.task.device.startswith("cuda") else 0,
    )
    try:
        for row in done.iter_rows():
            if row["error"]:
                raise getattr(errors, row["kind"])(row["error"])
            advance(int(row["count"]))
    except PyelmoError:
        raise
    except Exception as error:  # Ray's own, which quote the whole story
        reason = str(error).strip().splitlines()[-1:]
        raise PyelmoError(f"Ray stopped: {type(error).__name__}: {''.join(reason)}. {KEPT}") from error


class RayWorker:
    """An actor: one model, one part at a time."""

    def __init__(self, work: Work, parts: list[BulkPart]) -> None:
        self._work, self._parts = work, parts
        self._embedder: Embedder | None = None

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, list[Any]]:
        part = self._parts[int(batch["number"][0])]
        try:
            if self._embedder is None:
                self._embedder = self._work.load()
                self._embedder.words.load(self._work.words)
            self._work.run(self._embedder, part, lambda count: None)
        except PyelmoError as error:  # told as data: Ray would wrap it in a report of its own
            return {"count": [0], "kind": [type(error).__name__], "error": [str(error)]}
        return {"count": [part.count], "kind": [""], "error": [""]}


def import_ray() -> Any:
    for name, value in (("RAY_USAGE_STATS_ENABLED", "0"), ("RAY_BACKEND_LOG_LEVEL", "fatal")):
        os.environ.setdefault(name, value)
    try:
        import ray
        import ray.data
    except ImportError:
        raise missing_extra("ray", "embedding on Ray") from None
    return ray


@contextlib.contextmanager
def _ray_session(ray: Any, cpus: int) -> Iterator[None]:
    """The Ray that runs already, the cluster at RAY_ADDRESS, or one of our own on this machine, ended afterwards."""
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    if ray.is_initialized():
        yield
        return
    quiet = {"logging_level": logging.ERROR, "log_to_driver": False}
    in_main = threading.current_thread() is threading.main_thread()
    terminate = signal.getsignal(signal.SIGTERM)
    if address := os.environ.get("RAY_ADDRESS"):
        try:
            ray.init(address, **quiet)
        except Exception as error:
            reason = str(error).partition("\n")[0]
            raise PyelmoError(f"no Ray cluster answers at RAY_ADDRESS={address}: {reason}. Is it up?") from error
    else:
        ray.init("local", num_cpus=cpus, include_dashboard=False, **quiet)
    if in_main:
        signal.signal(signal.SIGTERM, terminate)  # Ray puts its own there
    try:
        yield
    finally:
        ray.shutdown()
