"""Closed standard streams, streams that cannot take a character, and Ctrl-C while modules are imported."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

HANGUL = "the \u1112\u1161\u11ab 😀 caf\u00e9 river"  # conjoining jamo, beyond the first plane, Latin-1


def elmo(arguments: str, encoding: str = "utf-8") -> subprocess.CompletedProcess[bytes]:
    """Run a command line in a shell, so that it can close its streams."""
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    return subprocess.run(f"{sys.executable} -m pyelmo {arguments}", shell=True, capture_output=True, env=environment)


@pytest.mark.parametrize(("encoding", "written"), [("cp949", "강"), ("ascii", r"\uac15")])
def test_a_stream_gets_what_it_can_take(here, encoding, written):
    Path("text").write_text(f"{HANGUL} 강", "utf-8")
    run = elmo("embed text -o - --model MODEL --layers top --pooling mean -q", encoding)
    assert run.returncode == 0, run.stderr
    run = elmo(f"explore '*bank* {HANGUL} 강' 'the *bank* 강' --model MODEL --json", encoding)
    assert run.returncode == 0, run.stderr
    printed = run.stdout.decode(encoding)
    assert written in printed
    assert "😀" in json.dumps(json.loads(printed), ensure_ascii=False)  # the escapes are those of JSON


def test_a_closed_stream_is_an_error_only_if_it_is_needed(here):
    assert elmo("embed sentences.txt -o out.npz --model MODEL -q <&- >&- 2>&-").returncode == 0
    assert Path("out.npz").is_file()
    run = elmo("embed - -o two.npz --model MODEL -q <&-")
    assert (run.returncode, run.stderr.count(b"\n")) == (1, 1)
    assert b"elmo: standard input: is closed" in run.stderr
    run = elmo("inspect MODEL >&-")
    assert (run.returncode, run.stderr.count(b"\n")) == (1, 1)
    assert b"elmo: standard output: is closed" in run.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_stdout_is_one_line(here):
    run = elmo("inspect MODEL >/dev/full")
    assert (run.returncode, run.stderr) == (1, b"elmo: standard output: cannot be written: No space left on device\n")


# A module that is imported while the process gets Ctrl-C: by Python code, and by the machinery of imports itself.
IMPORTS = {
    "the command": ("pyelmo.cli.options", "os.kill(os.getpid(), signal.SIGINT)"),
    "numpy": ("numpy", "os.kill(os.getpid(), signal.SIGINT)"),
    "numpy, as another error": (
        "numpy",
        "try: os.kill(os.getpid(), signal.SIGINT); time.sleep(9)\n"
        "        except KeyboardInterrupt: raise ImportError('a part of numpy is gone') from None",
    ),
}


@pytest.mark.parametrize("case", IMPORTS)
def test_an_interrupt_during_imports_prints_no_traceback(here, case):
    module, action = IMPORTS[case]
    code = f"""
import os, signal, sys, time
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            {action.replace("        except", "            except")}
sys.meta_path.insert(0, Finder())
from pyelmo.__main__ import main
sys.argv[1:] = ["inspect", "MODEL"]
sys.exit(main())
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 130
    assert run.stderr == "elmo: interrupted; nothing was changed\n"


def test_a_second_interrupt_at_the_end_is_ignored(here):
    code = (
        "import signal, sys; from pyelmo.__main__ import main; sys.argv[1:] = ['inspect', 'MODEL']; status = main();"
        "signal.raise_signal(signal.SIGINT); sys.exit(status)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
