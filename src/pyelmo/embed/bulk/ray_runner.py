"""Run the parts of a bulk job on the actors of a Ray Data job. The parts have the same bytes as without Ray.

The machines of the cluster must see the input, the model and the output folder under the same names.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pyelmo import errors
from pyelmo.embed.bulk.job import RESUME, Advance, BulkJob, BulkPart, RunParts
from pyelmo.embed.embedder import Embedder
from pyelmo.errors import PyelmoError, missing_extra


@contextlib.contextmanager
def ray_workers(job: BulkJob, count: int) -> Iterator[RunParts]:
    """Connect to Ray, or start it, and yield the function that runs parts on `count` actors."""
    ray = import_ray()
    with _ray_session(ray, cpus=count * (job.worker_threads or 1)):
        yield functools.partial(_run_parts, ray, job, count)


def _run_parts(ray: Any, job: BulkJob, count: int, parts: Sequence[BulkPart], advance: Advance) -> None:
    items = [{"number": number} for number in range(len(parts))]
    results = ray.data.from_items(items, override_num_blocks=len(parts)).map_batches(
        RayWorker,
        fn_constructor_args=(job, list(parts)),
        batch_size=1,
        concurrency=count,
        num_cpus=job.worker_threads or 1,
        num_gpus=1 if job.settings.device.startswith("cuda") else 0,
    )
    try:
        for row in results.iter_rows():
            if row["error"]:
                raise getattr(errors, row["kind"])(row["error"])
            advance(int(row["count"]))
    except PyelmoError:
        raise
    except Exception as error:  # Ray's own errors quote long tracebacks; their last line says what happened
        reason = str(error).strip().splitlines()[-1:]
        raise PyelmoError(f"Ray stopped: {type(error).__name__}: {''.join(reason)}. {RESUME}") from error


class RayWorker:
    """A Ray actor: it loads one model and writes one part at a time."""

    def __init__(self, job: BulkJob, parts: list[BulkPart]) -> None:
        self._job, self._parts = job, parts
        self._embedder: Embedder | None = None

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, list[Any]]:
        part = self._parts[int(batch["number"][0])]
        try:
            if self._embedder is None:
                self._embedder = self._job.load_model()
                self._embedder.word_table().load(self._job.common_words_path)
            self._job.write_part(self._embedder, part, lambda count: None)
        except PyelmoError as error:  # returned as data, because Ray would wrap an exception in its own
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
    """Use the running Ray or the cluster at RAY_ADDRESS; otherwise start Ray on this machine and stop it afterwards."""
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    if ray.is_initialized():
        yield
        return
    quiet = {"logging_level": logging.ERROR, "log_to_driver": False}
    in_main_thread = threading.current_thread() is threading.main_thread()
    terminate = signal.getsignal(signal.SIGTERM)
    if address := os.environ.get("RAY_ADDRESS"):
        try:
            ray.init(address, **quiet)
        except Exception as error:
            reason = str(error).partition("\n")[0]
            raise PyelmoError(f"no Ray cluster answers at RAY_ADDRESS={address}: {reason}. Is it running?") from error
    else:
        ray.init("local", num_cpus=cpus, include_dashboard=False, **quiet)
    if in_main_thread:
        signal.signal(signal.SIGTERM, terminate)  # Ray installs its own handler
    try:
        yield
    finally:
        ray.shutdown()
