"""A failed or killed write leaves the old file or none."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from pyelmo import neighbours
from pyelmo.corpus.corpus import PrepareSettings
from pyelmo.corpus.prepare import prepare
from pyelmo.errors import OutputError
from pyelmo.files import atomic_path, entries, locked, write_text


def test_a_finished_block_replaces_the_file(tmp_path):
    path = tmp_path / "a.txt"
    write_text(path, "old")
    write_text(path, "new")
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("error", [RuntimeError("bad"), KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_a_failed_block_keeps_the_old_file_and_leaves_nothing(tmp_path, error):
    path = tmp_path / "a.txt"
    write_text(path, "old")
    with pytest.raises((type(error), OutputError)), atomic_path(path) as part:
        part.write_text("half")
        raise error
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_full_disk_is_one_clear_error(tmp_path):
    with pytest.raises(OutputError, match=r"a\.txt: cannot be written: No space left"), atomic_path(tmp_path / "a.txt"):
        raise OSError(28, "No space left on device")


def test_a_folder_is_replaced_whole(tmp_path):
    folder = tmp_path / "model"
    for name in ("one", "two"):
        with atomic_path(folder) as part:
            part.mkdir()
            (part / name).write_text(name)
    assert os.listdir(folder) == ["two"]
    assert os.listdir(tmp_path) == ["model"]


def test_without_force_an_existing_output_is_refused(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(OutputError, match="--force"), atomic_path(path, force=False):
        raise AssertionError("the block must not run")
    assert path.read_text() == "old"


def test_a_killed_process_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    write_text(path, "old")
    code = (
        "import sys, time; from pyelmo.files import atomic_path\n"
        "with atomic_path(sys.argv[1]) as part:\n"
        "    part.write_text('half'); print('ready', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    time.sleep(0.1)
    assert path.read_text() == "old"


LOCK = (
    "import sys, time; from pathlib import Path; from pyelmo.files import locked\n"
    "with locked(Path(sys.argv[1])):\n"
    "    print('ready', flush=True); time.sleep(60)"
)


def test_a_locked_folder_is_refused_to_another_process_until_that_is_killed(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", LOCK, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    message = f"{re.escape(str(tmp_path))}: is locked by another process. Wait until it has finished, or choose another"
    with pytest.raises(OutputError, match=message), locked(tmp_path):
        raise AssertionError("the block must not run")
    process.kill()
    process.wait()
    process.stdout.close()
    assert entries(tmp_path) == []
    with locked(tmp_path):
        assert entries(tmp_path) == []


def test_a_lock_leaves_nothing_behind(tmp_path):
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), locked(tmp_path):
            write_text(tmp_path / "a.txt", "new")
            raise ZeroDivisionError
        assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.skipif(sys.platform == "win32", reason="locks of Windows are always there")
@pytest.mark.filterwarnings("ignore:flock not supported")
@pytest.mark.parametrize("reason", [errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK])
def test_a_file_system_without_locks_does_not_stop_the_work(tmp_path, monkeypatch, reason):
    def no_lock(descriptor, operation):
        raise OSError(reason, os.strerror(reason))

    monkeypatch.setattr("fcntl.flock", no_lock)
    with locked(tmp_path):
        write_text(tmp_path / "a.txt", "new")
    assert [path.name for path in entries(tmp_path)] == ["a.txt"]


def test_a_folder_that_cannot_be_written_is_not_locked(tmp_path, monkeypatch):
    def refused(path, *others):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr("os.open", refused)  # not a folder without permissions, in which root can write
    with locked(tmp_path):
        assert entries(tmp_path) == []


def test_force_replaces_only_folders_that_pyelmo_wrote(tiny, tmp_path):
    """`--force` on a folder with other files keeps them: of a model, of AllenNLP's files, of a corpus and of an index."""
    text = tmp_path / "text.txt"
    text.write_text("A bank account .\nThe river bank .\n")
    tiny.save(tmp_path / "LM")
    writers = {
        "model": lambda path: tiny.save(path, force=True),
        "allennlp": lambda path: tiny.save(path, format="allennlp", force=True),
        "corpus": lambda path: prepare(PrepareSettings(inputs=[text], vocab_size=9), path, force=True),
        "index": lambda path: neighbours.build([text], path, model=str(tmp_path / "LM"), force=True),
    }
    for name, write in writers.items():
        folder = tmp_path / name
        write(folder)
        write(folder)
        (folder / "thesis.txt").write_text("years of work")
        with pytest.raises(OutputError, match=f"{name}: contains thesis.txt, which pyelmo did not write there"):
            write(folder)
        assert (folder / "thesis.txt").read_text() == "years of work"


KILLED = (
    "import os, sys; from pathlib import Path; from pyelmo.files import atomic_path\n"
    "if sys.argv[2] == 'replacing':\n"
    "    rename = os.replace\n"
    "    os.replace = lambda old, new: (rename(old, new), os._exit(9)) if 'old-' in str(new) else rename(old, new)\n"
    "with atomic_path(sys.argv[1]) as part:\n"
    "    part.mkdir(); (part / 'half').write_text('half')\n"
    "    if sys.argv[2] == 'writing': os._exit(9)"
)


@pytest.mark.skipif(sys.platform == "win32", reason="folders have no locks")
@pytest.mark.parametrize("moment", ["writing", "replacing"])
def test_the_next_write_removes_what_a_killed_one_left(tmp_path, moment):
    folder, other = tmp_path / "model", tmp_path / ".model.v2.abcdefgh.part"
    folder.mkdir()
    (folder / "old").write_text("old")
    other.mkdir()  # of another output, `model.v2`
    assert subprocess.run([sys.executable, "-c", KILLED, str(folder), moment]).returncode == 9
    assert len(list(tmp_path.glob(".model.????????.part"))) == 1
    with pytest.raises(OutputError, match="exists already"), atomic_path(folder, force=False):
        raise AssertionError("the block must not run")
    assert (folder / "old").read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == [".model.v2.abcdefgh.part", "model"]


@pytest.mark.skipif(sys.platform == "win32", reason="folders have no locks")
def test_the_temporary_folder_of_a_living_process_stays(tmp_path):
    path = tmp_path / "a.txt"
    with atomic_path(path) as part:
        part.write_text("first")
        write_text(path, "second")
        assert part.read_text() == "first"
    assert path.read_text() == "first"
    assert os.listdir(tmp_path) == ["a.txt"]
