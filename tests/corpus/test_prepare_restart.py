"""Preparing a corpus in several processes, killed, restarted, and on a full disk."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from pyelmo.corpus import chunks, encoding
from pyelmo.corpus.corpus import Corpus, PrepareSettings
from pyelmo.corpus.prepare import differences, prepare
from pyelmo.errors import OutputError, PyelmoError

SMALL_CHUNKS = 3000


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "CHUNK_CHARACTERS", SMALL_CHUNKS)


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("options", [{}, {"drop_duplicates": True}, {"max_types": 40, "valid_fraction": 0.1}])
def test_two_processes_write_the_same_bytes_as_one(text: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    prepare(PrepareSettings(inputs=[text, text], language="en", **options), tmp_path / "one")
    prepare(PrepareSettings(inputs=[text, text], language="en", **options), tmp_path / "two", workers=2)
    assert content(tmp_path / "one") == content(tmp_path / "two")


def test_a_small_memory_of_pieces_changes_nothing(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(PrepareSettings(inputs=[text], language="en"), tmp_path / "one")
    monkeypatch.setattr(encoding, "_MAX_PIECES", 10)
    prepare(PrepareSettings(inputs=[text], language="en"), tmp_path / "two")
    assert content(tmp_path / "one") == content(tmp_path / "two")


SCRIPT = """
import sys
from pyelmo.corpus import chunks
from pyelmo.corpus.corpus import PrepareSettings
from pyelmo.corpus.prepare import differences, prepare
if __name__ == "__main__":
    chunks.CHUNK_CHARACTERS = {chunk}
    prepare(PrepareSettings(inputs=[sys.argv[1]], language="en"), sys.argv[2], workers=int(sys.argv[3]))
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_killed_at_any_moment_and_restarted_it_finishes_the_same_shards(
    long_text: Path, tmp_path: Path, workers: int
) -> None:
    path, script = long_text, tmp_path / "script.py"
    script.write_text(SCRIPT.format(chunk=SMALL_CHUNKS))
    command = [sys.executable, str(script), str(path), str(tmp_path / "out"), str(workers)]
    prepare(PrepareSettings(inputs=[path], language="en"), tmp_path / "clean")
    work = tmp_path / ".out.preparing"
    whole = path.stat().st_size // SMALL_CHUNKS
    for wanted in sorted(random.Random(workers).sample(range(whole - 10), 4)):
        with subprocess.Popen(command) as run:
            while len(list(work.glob("chunks/*.npz"))) < wanted:
                time.sleep(0.001)
                assert run.poll() is None
            run.send_signal(signal.SIGKILL)
        assert not (tmp_path / "out").exists()
    subprocess.run(command, check=True)
    Corpus.open(tmp_path / "out").verify()
    assert content(tmp_path / "out") == content(tmp_path / "clean")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["clean", "out", "script.py", "text.txt"]


class StoppedError(Exception):
    pass


def stop_after(monkeypatch: pytest.MonkeyPatch, count: int) -> list[Path]:
    """Let `count` more chunks be written, then fail; return the list of chunks written."""
    written: list[Path] = []
    original = chunks.save_chunk

    def save(path: Path, encoded: chunks.EncodedChunk) -> None:
        if len(written) == count:
            raise StoppedError
        original(path, encoded)
        written.append(path)

    monkeypatch.setattr(encoding, "save_chunk", save)
    return written


def test_a_resumed_run_encodes_only_what_was_not_done(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(PrepareSettings(inputs=[text], language="en"), tmp_path / "clean")
    before = stop_after(monkeypatch, 3)
    with pytest.raises(StoppedError):
        prepare(PrepareSettings(inputs=[text], language="en"), tmp_path / "out")
    assert len(before) == 3
    after = stop_after(monkeypatch, 1000)
    prepare(PrepareSettings(inputs=[text], language="en"), tmp_path / "out")
    assert not set(before) & set(after)
    assert content(tmp_path / "out") == content(tmp_path / "clean")


def test_a_resumed_run_notices_text_that_has_changed(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_after(monkeypatch, 3)
    with pytest.raises(StoppedError):
        prepare(PrepareSettings(inputs=[text], language="en"), tmp_path / "out")
    stop_after(monkeypatch, 1000)
    text.write_text("New text. " + text.read_text(encoding="utf-8"), encoding="utf-8")
    prepare(PrepareSettings(inputs=[text], language="en"), tmp_path / "out")
    prepare(PrepareSettings(inputs=[text], language="en"), tmp_path / "clean")
    assert content(tmp_path / "out") == content(tmp_path / "clean")


def test_a_resumed_run_with_other_settings_asks_for_force(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_after(monkeypatch, 3)
    with pytest.raises(StoppedError):
        prepare(PrepareSettings(inputs=[text], language="en"), tmp_path / "out")
    stop_after(monkeypatch, 1000)
    with pytest.raises(OutputError, match=r"language was en, is now ko\). Pass --force"):
        prepare(PrepareSettings(inputs=[text], language="ko"), tmp_path / "out")
    prepare(PrepareSettings(inputs=[text], language="ko"), tmp_path / "out", force=True)
    assert Corpus.open(tmp_path / "out").manifest.settings.language == "ko"


def test_a_run_killed_before_the_last_rename_is_only_renamed(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(PrepareSettings(inputs=[text], language="en"), tmp_path / "clean")

    def replace(source: Path, target: Path) -> None:
        if Path(source).name.endswith(".preparing"):
            raise StoppedError
        os.rename(source, target)

    with monkeypatch.context() as patch, pytest.raises(StoppedError):
        patch.setattr(os, "replace", replace)
        prepare(PrepareSettings(inputs=[text], language="en"), tmp_path / "out")
    assert stop_after(monkeypatch, 0) == []
    prepare(PrepareSettings(inputs=[text], language="en"), tmp_path / "out")
    assert content(tmp_path / "out") == content(tmp_path / "clean")


FULL_DISK = """
import resource, sys
from pyelmo.errors import OutputError
from pyelmo.corpus.corpus import PrepareSettings
from pyelmo.corpus.prepare import differences, prepare
if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[4]), resource.RLIM_INFINITY))
    try:
        prepare(PrepareSettings(inputs=[sys.argv[1]], tokenised=True), sys.argv[2], workers=int(sys.argv[3]))
    except OutputError as error:
        print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on the size of files")
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("limit", [0, 20_000, 300_000])
def test_a_full_disk_is_one_clear_error_and_a_restart_finishes(tmp_path: Path, workers: int, limit: int) -> None:
    path, script = tmp_path / "text.txt", tmp_path / "script.py"
    path.write_text("".join(f"a b c{number % 100}\n" for number in range(50_000)))
    script.write_text(FULL_DISK)
    command = [sys.executable, str(script), str(path), str(tmp_path / "out"), str(workers), str(limit)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "cannot be written: File too large" in run.stdout
    assert run.stdout.count("\n") == 1
    assert not (tmp_path / "out").exists()
    prepare(PrepareSettings(inputs=[path], tokenised=True), tmp_path / "out")
    Corpus.open(tmp_path / "out").verify()


def test_a_worker_that_dies_is_one_clear_error(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyelmo.parallel.end_with_parent", _die)
    with pytest.raises(PyelmoError, match="a worker process exited unexpectedly"):
        prepare(PrepareSettings(inputs=[text]), tmp_path / "out", workers=2)


def _die() -> None:
    raise SystemExit(1)


HELD = """
import sys, time
from pathlib import Path
from pyelmo.files import locked
with locked(Path(sys.argv[1]), beside=True):
    print("ready", flush=True)
    time.sleep(60)
"""


def test_a_second_prepare_of_the_same_corpus_is_refused_until_the_first_ends(text: Path, tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HELD, str(tmp_path / "out")], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(OutputError, match="is locked by another process"):
            prepare(PrepareSettings(inputs=[text], language="en"), tmp_path / "out")
        other.kill()
    prepare(PrepareSettings(inputs=[text], language="en"), tmp_path / "out")
    assert sorted(os.listdir(tmp_path)) == ["out", text.name]


def test_what_a_run_killed_while_replacing_left_is_removed_or_moved_back(text: Path, tmp_path: Path) -> None:
    settings = PrepareSettings(inputs=[text], language="en")
    prepare(settings, tmp_path / "out")
    for output_remains in (True, False):
        if output_remains:
            (tmp_path / ".out.old").mkdir()
        else:
            (tmp_path / "out").rename(tmp_path / ".out.old")
        with pytest.raises(OutputError, match="contains a corpus already"):
            prepare(settings, tmp_path / "out")
            prepare(settings, tmp_path / "out")
        assert sorted(os.listdir(tmp_path)) == ["out", text.name]


def test_text_that_changed_after_a_kill_before_the_last_rename_is_prepared_again(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def replace(source: Path, target: Path) -> None:
        if Path(source).name.endswith(".preparing"):
            raise StoppedError
        os.rename(source, target)

    with monkeypatch.context() as patch, pytest.raises(StoppedError):
        patch.setattr(os, "replace", replace)
        prepare(PrepareSettings(inputs=[text], language="en"), tmp_path / "out")
    text.write_text("Entirely new text.")
    assert prepare(PrepareSettings(inputs=[text], language="en"), tmp_path / "out").train.words == 4


def test_a_corpus_knows_its_text(text: Path, tmp_path: Path) -> None:
    settings = PrepareSettings(inputs=[text], language="en")
    manifest = prepare(settings, tmp_path / "out")
    assert [(file.name, file.bytes) for file in manifest.sources] == [(str(text), text.stat().st_size)]
    assert differences(manifest, settings) == []
    copy = tmp_path / "copy.txt"
    copy.write_bytes(text.read_bytes())
    assert differences(manifest, PrepareSettings(inputs=[copy], language="en")) == []
    copy.write_text("Other text.")
    other = PrepareSettings(inputs=[copy], language="ko")
    assert differences(manifest, other) == [f"its text is {text}, not {copy}", "language was en, is now ko"]
    text.write_text("Other text.")
    assert differences(manifest, settings) == [f"{text} has changed since"]
