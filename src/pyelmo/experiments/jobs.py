"""Commands as processes side by side: some wait for others, one that fails stops no other, and none outlives us."""

from __future__ import annotations

import ctypes
import logging
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyelmo.errors import GPU_FULL
from pyelmo.parallel import end_with_stdin

log = logging.getLogger("pyelmo")
JOB = "PYELMO_JOB"  # set in the environment of a process that `run_jobs` started
BLOCKING = 4  # cudaDeviceScheduleBlockingSync
PATIENCE = 20.0  # seconds that a process has to end when it is told to
POLL = 0.1
COMMAND, HEAD = "$ ", "elmo: "  # how a log's lines begin that have a command, and those that have an error


@dataclass(frozen=True)
class Job:
    """A command, and the job that must have succeeded before it begins."""

    name: str
    command: tuple[str, ...]
    log: Path
    after: str | None = None
    mark: Path | None = None  # a file that is made when it has succeeded


@dataclass(frozen=True)
class FinishedJob:
    """A job that is done; `error` says why it failed."""

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
    environment: Mapping[str, str],
    tell: Callable[[FinishedJob], None] = lambda ended: None,
) -> list[FinishedJob]:
    """Run them in their order, `at_once` together, in a folder; `tell` hears of each that ends.

    Where a GPU has too little memory for so many, fewer run at once, and those for which there was no room run again.
    """
    waiting, running, ended = list(jobs), [], []  # type: list[Job], list[_Running], list[FinishedJob]

    def end(job: Job, seconds: float, error: str | None) -> None:
        ended.append(FinishedJob(job, seconds, error))
        tell(ended[-1])

    try:
        while waiting or running:
            for job in _ready(waiting, ended, at_once - len(running)):
                waiting.remove(job)
                running.append(_start(job, folder, environment))
            for job in _hopeless(waiting, ended):
                waiting.remove(job)
                end(job, 0.0, f"{job.after} failed, which must come before it")
            for each in [each for each in running if each.process.poll() is not None]:
                running.remove(each)
                status = each.process.returncode
                if status == GPU_FULL and running:  # there is room for so many, and this one goes on when one ends
                    at_once = len(running)
                    waiting.insert(0, each.job)
                    log.warning("%s: the GPU's memory is full; %d processes at once from here", each.job.name, at_once)
                    continue
                error = None if status == 0 else _last_error(each.job.log, status)
                if each.job.mark and error is None:
                    each.job.mark.touch()
                end(each.job, time.monotonic() - each.began, error)
            time.sleep(POLL if running else 0)
    finally:  # Ctrl-C, or an error of ours
        _stop([each.process for each in running])
    return ended


def _ready(waiting: Sequence[Job], ended: Sequence[FinishedJob], free: int) -> list[Job]:
    done = {each.job.name for each in ended if each.error is None}
    return [job for job in waiting if job.after is None or job.after in done][: max(free, 0)]


def _hopeless(waiting: Sequence[Job], ended: Sequence[FinishedJob]) -> list[Job]:
    failed = {each.job.name for each in ended if each.error is not None}
    return [job for job in waiting if job.after in failed]


def _start(job: Job, folder: Path, environment: Mapping[str, str]) -> _Running:
    """The process of a job, which ends when its standard input does: with us, however we end."""
    package = str(Path(__file__).resolve().parents[2])
    search = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
    # The folder is the user's: no module is to be taken from it.
    own = {"PYTHONPATH": search, "PYTHONSAFEPATH": "1", "PYTHONUNBUFFERED": "1", JOB: "1"}
    job.log.parent.mkdir(parents=True, exist_ok=True)
    with open(job.log, "ab") as log:
        log.write(f"{COMMAND}{shlex.join(job.command)}\n".encode())
        log.flush()
        process = subprocess.Popen(
            job.command, cwd=folder, env={**os.environ, **own, **environment}, stdin=subprocess.PIPE, stdout=log,
            stderr=log, start_new_session=True,
        )  # fmt: skip
    return _Running(job, process, time.monotonic())


def _stop(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + PATIENCE
    for process in processes:
        try:
            process.wait(max(deadline - time.monotonic(), 0.1))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _last_error(log: Path, status: int) -> str:
    """What a failed process said last; one that was killed says nothing."""
    if status < 0:
        return f"was ended by {signal.Signals(-status).name}"
    lines: list[str] = []
    for line in log.read_text("utf-8", "replace").splitlines():
        if line.startswith(COMMAND):  # what an earlier process of the same job said is of no use
            lines = []
        elif line.strip():
            lines.append(line)
    errors = [line.removeprefix(HEAD) for line in lines if line.startswith(HEAD)]
    return (errors or lines or [f"ended with status {status}"])[-1]


def begin_job(device: str | None = None) -> bool:
    """In a process that `run_jobs` started, before a GPU is used: True there, anywhere else nothing is done."""
    if not os.environ.get(JOB):
        return False
    end_with_stdin()
    if device == "cuda":
        wait_without_work()
    return True


def wait_without_work() -> bool:
    """Let waits for a GPU sleep, where CUDA would use a whole core to look again and again; False where it cannot.

    It costs some microseconds a wait, and many processes on one GPU would else need as many cores.
    """
    import torch

    if not torch.version.cuda:
        return False
    try:  # by this name the library that torch has loaded is found, wherever it lies
        library = ctypes.CDLL(f"libcudart.so.{torch.version.cuda.split('.')[0]}")
        return int(library.cudaSetDeviceFlags(BLOCKING)) == 0
    except (OSError, AttributeError):
        return False
