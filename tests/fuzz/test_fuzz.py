"""Fifty mutated files of every format: accepted or refused with pyelmo's own error, and nothing else happens."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from fuzz.run import Campaign, names

COUNT = 50  # python tests/fuzz/run.py --count 2000 tries more

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads memory and CPU time from /proc")


@pytest.fixture(scope="module")
def campaign():
    for library in ("pyarrow", "faiss", "gensim"):
        pytest.importorskip(library)
    memory = Path("/dev/shm")  # the trials write some 10,000 small files
    root = Path(tempfile.mkdtemp(prefix="fuzz-", dir=memory if os.access(memory, os.W_OK) else None))
    campaign = Campaign(root, seed=0)
    yield campaign
    campaign.close()
    shutil.rmtree(root, ignore_errors=True)


@pytest.mark.parametrize("name", names())
def test_a_mutated_file_is_accepted_or_refused(campaign, name):
    row, faults = campaign.run(name, range(COUNT))
    assert row["mutations"] == COUNT
    assert not faults, "\n".join(
        f"{fault['index']} {fault.get('file')}, {fault.get('mutation')}: {fault.get('foreign') or fault.get('traceback') or fault}"
        for fault in faults
    )


def test_the_guard_sees_programs_and_files_written_elsewhere(tmp_path):
    program = f"""
import os, sys
sys.path[:0] = {sys.path!r}
from pathlib import Path
from fuzz.worker import Guard
guard = Guard(Path({str(tmp_path)!r}) / "inside")
guard.active = True
(Path(guard.folder)).mkdir()
open(guard.folder + "/file", "w").close()
assert not guard.events, guard.events
os.system("true")
open({str(tmp_path / "outside")!r}, "w").close()
guard.active = False
print([event.split()[0] for event in guard.events])
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "['os.system', 'open']"
