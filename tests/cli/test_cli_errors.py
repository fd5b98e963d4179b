"""Bad input, full disks, interrupts and bugs: one line on stderr, and no file half written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from pyelmo.cli import main

BAD = {
    "no input": (["embed", "nothing.txt", "-o", "out.hdf5", "--model", "MODEL"], "nothing.txt: not found"),
    "no model": (["embed", "sentences.txt", "-o", "out.hdf5", "--model", "nowhere"], "nowhere: no such file or folder"),
    "a language without a bundled model": (["inspect", "de"], "no bundled model of that name (bundled: en, ko)"),
    "a folder as input": (["embed", ".", "-o", "out.hdf5", "--model", "MODEL"], "is a folder"),
    "no suffix": (["embed", "sentences.txt", "-o", "out", "--model", "MODEL"], "--format"),
    "existing output": (
        ["embed", "sentences.txt", "-o", "sentences.txt", "--format", "npz", "--model", "MODEL"],
        "--force",
    ),
    "existing folder": (["convert", "MODEL", "options_and_weights"], "--force"),
    "no folder": (["embed", "sentences.txt", "-o", "a/b.npz", "--model", "MODEL"], "does not exist"),
    "not UTF-8": (
        ["embed", "latin.txt", "-o", "out.hdf5", "--model", "MODEL"],
        "latin.txt, line 2: not UTF-8 at byte 4",
    ),
    "odd layers": (
        ["embed", "sentences.txt", "-o", "out.hdf5", "--model", "MODEL", "--layers", "a,b"],
        "numbers with commas",
    ),
    "odd layer": (["embed", "sentences.txt", "-o", "out.hdf5", "--model", "MODEL", "--layers", "7"], "layers 0 to 2"),
    "odd language": (["embed", "sentences.txt", "-o", "out.hdf5", "--model", "MODEL", "--language", "xx"], "xx"),
    "odd device": (["embed", "sentences.txt", "-o", "out.hdf5", "--model", "MODEL", "--device", "toaster"], "toaster"),
    "odd batch": (["embed", "sentences.txt", "-o", "out.hdf5", "--model", "MODEL", "--batch-size", "0"], "at least 1"),
    "workers and a file": (
        ["embed", "sentences.txt", "-o", "out.hdf5", "--model", "MODEL", "--workers", "2"],
        "out.hdf5: several workers write a folder, not a single file",
    ),
    "a folder from stdin": (["embed", "-", "-o", "out/", "--model", "MODEL"], "-: is a stream"),
    "a folder with other files": (["embed", "sentences.txt", "-o", "MODEL", "--model", "MODEL"], "no bulk job wrote"),
    "not a model": (["inspect", "sentences.txt"], "not a model file"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_no_file(here, case, capsys):
    Path("latin.txt").write_bytes(b"good\ncaf\xe9\n")
    arguments, message = BAD[case]
    before = sorted(os.listdir("."))
    assert main([*arguments, "-q"] if arguments[0] == "embed" else arguments) == 1
    error = capsys.readouterr().err
    assert error.startswith("elmo: ")
    assert error.count("\n") == 1
    assert message in error
    assert "Traceback" not in error
    assert sorted(os.listdir(".")) == before


def test_a_bug_is_reported_without_a_traceback(here, capsys, monkeypatch):
    monkeypatch.setattr("pyelmo.formats.describe.describe", lambda model: 1 / 0)
    assert main(["inspect", "MODEL"]) == 70
    assert "a bug in pyelmo: ZeroDivisionError" in capsys.readouterr().err


def test_a_full_gpu_has_an_exit_status_of_its_own(here, capsys, monkeypatch):
    def full(model):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 74.00 MiB.")

    monkeypatch.setattr("pyelmo.formats.describe.describe", full)
    assert main(["inspect", "MODEL"]) == 75
    assert capsys.readouterr().err == "elmo: out of GPU memory. Use a smaller batch, or fewer processes on this GPU\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_the_old_file_and_leaves_no_half(here, number):
    Path("out.hdf5").write_text("old")
    command = [
        sys.executable,
        "-m",
        "pyelmo",
        "embed",
        "-",
        "-o",
        "out.hdf5",
        "--model",
        "MODEL",
        "--force",
        "--batch-size",
        "1",
    ]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdin.write(b"a b c\n" * 64)  # a full window: the first vectors are written
    process.stdin.flush()
    deadline = time.monotonic() + 60
    while not any(path.name.endswith(".part") for path in here.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.3)
    process.send_signal(number)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert b"Traceback" not in error
    assert Path("out.hdf5").read_text() == "old"
    assert sorted(path.name for path in here.iterdir()) == ["MODEL", "options_and_weights", "out.hdf5", "sentences.txt"]


def test_a_full_disk_is_one_line_and_no_file(here):
    """RLIMIT_FSIZE stands for the disk: a write past it fails as on a full one."""
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000));"
        "from pyelmo.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    for arguments in (
        ["embed", "sentences.txt", "-o", "out.hdf5", "--model", "MODEL", "-q"],
        ["convert", "MODEL", "native"],
        ["convert", "MODEL", "w.hdf5"],
    ):
        run = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
        assert run.returncode == 1, run.stderr
        assert run.stderr.startswith("elmo: "), run.stderr
        assert run.stderr.count("\n") == 1, run.stderr
    assert sorted(os.listdir(".")) == ["MODEL", "options_and_weights", "sentences.txt"]
