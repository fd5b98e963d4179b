"""Run commands as parallel processes. A job may wait for another one, and a failed job does not stop the others.

All processes end with this one: their standard input is a pipe that closes when this process exits or is killed.
"""

from __future__ import annotations

import ctypes
import logging
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyelmo.errors import GPU_FULL
from pyelmo.parallel import end_with_stdin

log = logging.getLogger("pyelmo")
JOB = "PYELMO_JOB"  # environment variable of the processes that `run_jobs` starts
BLOCKING = 4  # cudaDeviceScheduleBlockingSync
STOP_SECONDS = 20.0  # time for a process to end after SIGTERM, before it is killed
POLL = 0.1
COMMAND, ERROR = "$ ", "elmo: "  # the beginnings of log lines with a command and with an error


@dataclass(frozen=True)
class Job:
    """A command to run in a process."""

    name: str
    command: tuple[str, ...]
    log: Path
    after: str | None = None  # the name of a job that must succeed first
    mark: Path | None = None  # a file to create when this job has succeeded


@dataclass(frozen=True)
class FinishedJob:
    """A finished job; `error` says why it failed, and is None if it succeeded."""

    job: Job
    seconds: float
    error: str | None = None


@dataclass
class _Running:
    job: Job
    process: subprocess.Popen[bytes]
    began: float


def run_jobs(
    jobs: Sequence[Job],
    *,
    at_once: int,
    folder: Path,
    on_finish: Callable[[FinishedJob], None] = lambda finished: None,
) -> list[FinishedJob]:
    """Run jobs in their order, up to `at_once` in parallel, with `folder` as their working directory.

    If a GPU runs out of memory, fewer jobs run at once from then on, and the job that found no memory runs again.
    `on_finish` is called after each job.
    """
    waiting, running, finished = list(jobs), [], []  # type: list[Job], list[_Running], list[FinishedJob]

    def finish(job: Job, seconds: float, error: str | None) -> None:
        finished.append(FinishedJob(job, seconds, error))
        on_finish(finished[-1])

    try:
        while waiting or running:
            for job in _ready(waiting, finished, at_once - len(running)):
                waiting.remove(job)
                running.append(_start(job, folder))
            for job in _blocked(waiting, finished):
                waiting.remove(job)
                finish(job, 0.0, f"not started, because it needs {job.after!r}, which failed")
            for ended in [ended for ended in running if ended.process.poll() is not None]:
                running.remove(ended)
                job, status = ended.job, ended.process.returncode
                if status == GPU_FULL and running:  # it runs again when one of the others has finished
                    at_once = len(running)
                    waiting.insert(0, job)
                    log.warning("%s: GPU out of memory; from now on %d processes run at once", job.name, at_once)
                    continue
                error = None if status == 0 else _last_error(job.log, status)
                if job.mark and error is None:
                    job.mark.touch()
                finish(job, time.monotonic() - ended.began, error)
            time.sleep(POLL if running else 0)
    finally:  # after Ctrl-C or an exception, processes may still be running
        _stop([job.process for job in running])
    return finished


def _ready(waiting: Sequence[Job], finished: Sequence[FinishedJob], free: int) -> list[Job]:
    done = {result.job.name for result in finished if result.error is None}
    return [job for job in waiting if job.after is None or job.after in done][: max(free, 0)]


def _blocked(waiting: Sequence[Job], finished: Sequence[FinishedJob]) -> list[Job]:
    """Return the waiting jobs that can never start."""
    failed = {result.job.name for result in finished if result.error is not None}
    return [job for job in waiting if job.after in failed]


def _start(job: Job, folder: Path) -> _Running:
    package = str(Path(__file__).resolve().parents[2])
    search_path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
    # With PYTHONSAFEPATH no module is imported from the working directory, which belongs to the user.
    environment = {"PYTHONPATH": search_path, "PYTHONSAFEPATH": "1", "PYTHONUNBUFFERED": "1", JOB: "1"}
    job.log.parent.mkdir(parents=True, exist_ok=True)
    with open(job.log, "ab") as log:
        log.write(f"{COMMAND}{shlex.join(job.command)}\n".encode())
        log.flush()
        process = subprocess.Popen(
            job.command, cwd=folder, env={**os.environ, **environment}, stdin=subprocess.PIPE, stdout=log,
            stderr=log, start_new_session=True,
        )  # fmt: skip
    return _Running(job, process, time.monotonic())


def _stop(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + STOP_SECONDS
    for process in processes:
        try:
            process.wait(max(deadline - time.monotonic(), 0.1))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _last_error(log: Path, status: int) -> str:
    """Return the last error that a failed process wrote to its log, or how it ended."""
    if status < 0:
        return f"was killed by {signal.Signals(-status).name}"
    lines: list[str] = []
    for line in log.read_text("utf-8", "replace").splitlines():
        if line.startswith(COMMAND):  # a new process of the same job: forget what earlier ones wrote
            lines = []
        elif line.strip():
            lines.append(line)
    errors = [line.removeprefix(ERROR) for line in lines if line.startswith(ERROR)]
    return (errors or lines or [f"exited with status {status}"])[-1]


def begin_job(device: str | None = None) -> bool:
    """Prepare a command that may be a job of `run_jobs`, before it uses a GPU; return whether it is one.

    A job ends with the process that started it, and its waits for a GPU do not use a CPU core. `run_jobs` marks its
    processes with the environment variable PYELMO_JOB, because they are ordinary commands. Only this module reads it.
    """
    if not os.environ.get(JOB):
        return False
    end_with_stdin()
    if device == "cuda":
        sleep_in_gpu_waits()
    return True


def sleep_in_gpu_waits() -> bool:
    """Let CUDA sleep while it waits for the GPU instead of using a CPU core; return False if that is not possible.

    A wait takes some microseconds longer, but many processes that share a GPU do not need a core each.
    """
    import torch

    if not torch.version.cuda:
        return False
    try:  # this name finds the library that torch has loaded, wherever it is installed
        library = ctypes.CDLL(f"libcudart.so.{torch.version.cuda.split('.')[0]}")
        return int(library.cudaSetDeviceFlags(BLOCKING)) == 0
    except (OSError, AttributeError):
        return False
