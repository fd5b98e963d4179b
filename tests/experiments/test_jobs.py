"""Parallel jobs: their order, what a failure stops, and that no process outlives the one that started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from pyelmo.experiments import jobs
from pyelmo.experiments.jobs import FinishedJob, Job, run_jobs

NOTE = """
import sys, time
open("order", "a").write(sys.argv[1])
time.sleep(float(sys.argv[2]))
sys.exit("".join(sys.argv[3:]) or 0)
"""
WAIT_FOR_FILE = """
import os, sys, time
for _ in range(6000):
    if os.path.exists(sys.argv[1]):
        sys.exit(0)
    time.sleep(0.01)
sys.exit("waited in vain")
"""


def job(folder: Path, name: str, *error: str, seconds: float = 0, after: str | None = None, mark: str = "") -> Job:
    command = (sys.executable, "-S", "-c", NOTE, name, str(seconds), *error)
    return Job(name, command, folder / "logs" / f"{name}.log", after, folder / mark if mark else None)


def run(folder: Path, *given: Job, at_once: int = 1) -> dict[str, str | None]:
    found = run_jobs(given, at_once=at_once, folder=folder)
    return {each.job.name: each.error for each in found}


def test_jobs_run_in_their_order_and_after_those_they_need(tmp_path):
    given = [job(tmp_path, "a"), job(tmp_path, "b", after="d"), job(tmp_path, "c"), job(tmp_path, "d", mark="done")]
    assert run(tmp_path, *given) == dict.fromkeys("acdb")
    assert (tmp_path / "order").read_text() == "acdb"
    assert (tmp_path / "done").exists()


def test_at_once_is_the_number_of_parallel_jobs(tmp_path):
    wait = (sys.executable, "-S", "-c", WAIT_FOR_FILE, str(tmp_path / "c is done"))
    first = Job("a", wait, tmp_path / "logs" / "a.log")  # ends only if c runs beside it
    given = [first, job(tmp_path, "b", after="a"), job(tmp_path, "c", mark="c is done")]
    assert list(run(tmp_path, *given, at_once=2).items()) == [("c", None), ("a", None), ("b", None)]
    assert (tmp_path / "order").read_text() == "cb"


def test_a_failure_has_its_last_error_and_stops_only_jobs_that_need_it(tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.log").write_text("$ before\nelmo: of an earlier process\n")
    given = [job(tmp_path, "a", "lost", mark="done"), job(tmp_path, "b", after="a"), job(tmp_path, "c")]
    assert run(tmp_path, *given) == {"a": "lost", "b": "not started, because it needs 'a', which failed", "c": None}
    assert not (tmp_path / "done").exists()
    own = Job("k", (sys.executable, "-S", "-c", "import os; os.kill(os.getpid(), 9)"), tmp_path / "k.log")
    assert run(tmp_path, own) == {"k": "was killed by SIGKILL"}
    said = "import sys; print('elmo: no file\\nmore', file=sys.stderr); sys.exit(1)"
    assert run(tmp_path, Job("s", (sys.executable, "-S", "-c", said), tmp_path / "s.log")) == {"s": "no file"}


FULL_ONCE = """
import os, sys, time
again = os.path.exists("b")
open("b", "a").write(str(len(os.listdir("running"))))
sys.exit(0 if again else 75)
"""
LONG = """
import os, sys, time
open("running/" + sys.argv[1], "w").close()
time.sleep(float(sys.argv[2]))
os.remove("running/" + sys.argv[1])
"""


def test_a_job_without_gpu_memory_runs_again_when_another_has_finished(tmp_path, caplog):
    (tmp_path / "running").mkdir()
    given = [
        Job("a", (sys.executable, "-S", "-c", LONG, "a", "1.5"), tmp_path / "a.log"),
        Job("c", (sys.executable, "-S", "-c", LONG, "c", "2.5"), tmp_path / "c.log"),
        Job("b", (sys.executable, "-S", "-c", "import time; time.sleep(1)\n" + FULL_ONCE), tmp_path / "b.log"),
    ]
    assert run(tmp_path, *given, at_once=3) == dict.fromkeys("abc")
    assert (tmp_path / "b").read_text() in {"21", "20"}  # first beside two others, then beside at most one
    assert "out of memory; from now on 2 processes" in caplog.text


def test_a_single_job_without_gpu_memory_has_failed(tmp_path):
    full = "import sys; print('elmo: the memory is full', file=sys.stderr); sys.exit(75)"
    assert run(tmp_path, Job("a", (sys.executable, "-c", full), tmp_path / "a.log")) == {"a": "the memory is full"}


def test_an_interrupt_ends_the_processes(tmp_path, monkeypatch):
    started = []
    start = jobs._start
    monkeypatch.setattr(jobs, "_start", lambda *given: started.append(start(*given)) or started[-1])

    def stop(ended: FinishedJob) -> None:
        raise KeyboardInterrupt

    given = [job(tmp_path, "a", seconds=60), job(tmp_path, "b")]
    with pytest.raises(KeyboardInterrupt):
        run_jobs(given, at_once=2, folder=tmp_path, on_finish=stop)
    assert started[0].process.returncode == -signal.SIGTERM


def test_a_job_ends_with_the_process_that_started_it(tmp_path):
    code = "from pyelmo.experiments.jobs import begin_job; import time; assert begin_job(); print('on', flush=True); time.sleep(60)"
    environment = {**os.environ, jobs.JOB: "1"}
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    )
    assert process.stdout.readline() == b"on\n"
    process.stdin.close()  # as if the parent was killed
    assert process.wait(30) == -signal.SIGTERM
    process.stdout.close()


def test_outside_of_a_job_nothing_is_changed(monkeypatch):
    monkeypatch.delenv(jobs.JOB, raising=False)
    monkeypatch.setattr(jobs, "sleep_in_gpu_waits", lambda: pytest.fail("called"))
    assert jobs.begin_job("cuda") is False


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_wait_for_the_gpu_blocks_instead_of_spinning():
    code = """
import ctypes, torch
from pyelmo.experiments.jobs import BLOCKING, sleep_in_gpu_waits
assert sleep_in_gpu_waits()
torch.zeros(1, device="cuda")
flags = ctypes.c_uint()
library = ctypes.CDLL(f"libcudart.so.{torch.version.cuda.split('.')[0]}")
assert library.cudaGetDeviceFlags(ctypes.byref(flags)) == 0
assert flags.value & BLOCKING
"""
    subprocess.run([sys.executable, "-c", code], check=True)
