"""Bulk jobs: every sentence exactly once, whoever was killed, and the same vectors from any number of workers."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from support import TOLERANCE, make_embedder, torch, worst

from pyelmo.embed.bulk.run import embed_corpus
from pyelmo.embed.engines.word_table import WordTable
from pyelmo.embed.files import inputs
from pyelmo.embed.files.formats import ParquetSink
from pyelmo.embed.files.store import FORMATS, read_embeddings
from pyelmo.errors import FormatError, InputError, MissingExtraError, NotFoundError, OutputError
from pyelmo.files import locked
from pyelmo.text.characters import Bytes
from pyelmo.text.lexicon import Lexicon
from pyelmo.text.rows import ReadOptions


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("bulk") / "model"
    make_embedder().save(folder)
    return str(folder)


def lines(number: int) -> list[str]:
    return [f"Sentence {i} is here , {'with more ' * (i % 7)}words ." if i % 11 else "" for i in range(number)]


@pytest.fixture
def text(tmp_path) -> Path:
    path = tmp_path / "in.txt"
    path.write_text("".join(f"{line}\n" for line in lines(100)), "utf-8")
    return path


def check(folder: Path, sentences: list[str]) -> None:
    """Every sentence is there once, in order, with the vectors that it has alone."""
    stored = list(read_embeddings(folder))
    assert [row.index for row in stored] == list(range(len(sentences)))
    if stored[0].tokens is not None:  # hdf5 holds no repeated sentences, and no tokens
        assert [row.sentence for row in stored] == sentences
    for row, array in zip(stored, make_embedder().embed(sentences), strict=True):
        assert worst(row.vectors, array) < TOLERANCE[torch.float32]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# --- the same from any number of workers ---------------------------------------------------------------------------


@pytest.mark.parametrize("format", FORMATS)
def test_a_folder_holds_every_sentence_once_and_in_order(tmp_path, text, model, format):
    result = embed_corpus([text], tmp_path / "out", model=model, part_sentences=30, format=format)
    assert (result.sentences, result.parts, result.new_parts) == (100, 4, 4)
    assert names(tmp_path / "out") == ["_job.json", *(f"part-0000{i}.{format}" for i in range(4))]
    assert [row.index for row in read_embeddings(tmp_path / "out" / f"part-00002.{format}")] == list(range(60, 90))
    check(tmp_path / "out", lines(100))


def test_two_workers_write_the_same_bytes_as_one(tmp_path, text, model):
    for workers in (1, 2):
        embed_corpus([text], tmp_path / f"out{workers}", model=model, part_sentences=20, workers=workers)
    assert names(tmp_path / "out2") == names(tmp_path / "out1")
    for name in names(tmp_path / "out1")[1:]:
        assert (tmp_path / "out2" / name).read_bytes() == (tmp_path / "out1" / name).read_bytes()


def test_ray_without_the_extra_names_it(tmp_path, text, model, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"pyelmo\[ray\]"):
        embed_corpus([text], tmp_path / "out", model=model, runner="ray")
    assert not (tmp_path / "out").exists()


def test_parquet_without_pyarrow_is_an_error_before_any_work(tmp_path, text, model, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtraError, match=r"pyelmo\[parquet\]"):
        embed_corpus([text], tmp_path / "out", model=model)
    assert not (tmp_path / "out").exists()


def test_no_sentences_are_an_error_that_leaves_nothing(tmp_path, model):
    (tmp_path / "empty").write_text("")
    with pytest.raises(InputError, match="empty: there is nothing to embed, because the input is empty"):
        embed_corpus([tmp_path / "empty"], tmp_path / "out", model=model)
    assert not (tmp_path / "out").exists()


# --- resuming ------------------------------------------------------------------------------------------------------


def test_a_second_run_makes_only_what_is_missing(tmp_path, text, model):
    out = tmp_path / "out"
    embed_corpus([text], out, model=model, part_sentences=10)
    (out / "part-00003.parquet").unlink()
    (out / ".part-00003.parquet.xyz.part").mkdir()  # of a worker that was killed
    before = {path.name: path.stat().st_mtime_ns for path in out.glob("part-*")}
    with pytest.raises(FormatError, match="1 of 10 parts are missing, the first is part-00003.parquet"):
        read_embeddings(out)
    moved = text.rename(tmp_path / "moved.txt")
    assert embed_corpus([moved], out, model=model, part_sentences=10, workers=1).new_parts == 1
    after = {path.name: path.stat().st_mtime_ns for path in out.glob("part-*")}
    assert {name: after[name] for name in before} == before
    assert not list(out.glob(".*"))
    check(out, lines(100))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layers": "top"}, "layers: all then, top now"),
        ({"pooling": "mean"}, "pooling: None then, mean now"),
        ({"float16": True}, "float16: False then, True now"),
        ({"part_sentences": 20}, "part_sentences: 50 then, 20 now"),
        ({"inputs": ["other.txt"]}, "other input: .*other.txt"),
        ({"inputs": ["in.txt", "in.txt"]}, "other input"),
        ({"model": "MODEL"}, "another model: .*model then, .*MODEL now"),
    ],
)
def test_another_job_in_the_folder_is_refused_until_forced(tmp_path, text, model, monkeypatch, change, message):
    monkeypatch.chdir(tmp_path)
    Path("other.txt").write_text("other\n")
    make_embedder(seed=1).save("MODEL")
    job = {"inputs": ["in.txt"], "model": model, "part_sentences": 50}
    embed_corpus(output="out", **job)
    with pytest.raises(OutputError, match=f"out: holds 2 parts of another job .*{message}.*--force"):
        embed_corpus(output="out", **job | change)
    embed_corpus(output="out", **job | change, force=True)
    assert len(list(read_embeddings("out"))) == json.loads(Path("out/_job.json").read_text())["sentences"]


def test_a_folder_with_other_files_is_never_touched(tmp_path, text, model):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "part-00000.parquet").write_text("mine")
    for force in (False, True):
        with pytest.raises(OutputError, match="no bulk job wrote"):
            embed_corpus([text], tmp_path / "out", model=model, force=force)
    assert (tmp_path / "out" / "part-00000.parquet").read_text() == "mine"


def test_two_jobs_at_once_in_a_folder_are_refused(tmp_path, text, model):
    (tmp_path / "out").mkdir()
    with locked(tmp_path / "out"), pytest.raises(OutputError, match="is locked by another process"):
        embed_corpus([text], tmp_path / "out", model=model)


def test_a_full_disk_keeps_what_is_done(tmp_path, text, model, monkeypatch):
    def full(self, index, *rest, write=ParquetSink.write):
        if index == 55:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(self, index, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(ParquetSink, "write", full)
        with pytest.raises(OutputError, match="part-00005.parquet: cannot be written: No space left.* are kept. Run"):
            embed_corpus([text], tmp_path / "out", model=model, part_sentences=10)
    assert names(tmp_path / "out") == ["_job.json", *(f"part-0000{i}.parquet" for i in range(5))]
    assert embed_corpus([text], tmp_path / "out", model=model, part_sentences=10).new_parts == 5
    check(tmp_path / "out", lines(100))


# --- killed --------------------------------------------------------------------------------------------------------

MANY = 1500
PART = 15


@contextlib.contextmanager
def running(tmp_path: Path, model: str):
    """The command with two workers, once it has finished some parts; the ids of the workers."""
    text = tmp_path / "many.txt"
    text.write_text("".join(f"{line}\n" for line in lines(MANY)), "utf-8")
    command = [sys.executable, "-m", "pyelmo", "embed", str(text), "-o", str(tmp_path / "out"), "--model", model]
    with open(tmp_path / "stderr", "w") as stderr:
        process = subprocess.Popen([*command, "--workers", "2", "--part-sentences", str(PART)], stderr=stderr)
    try:
        deadline = time.monotonic() + 60
        while len(list(tmp_path.glob("out/part-*"))) < 4 and time.monotonic() < deadline:
            assert process.poll() is None, (tmp_path / "stderr").read_text()
            time.sleep(0.01)
        yield process, [pid for pid in children(process.pid) if "spawn_main" in command_of(pid)]
    finally:
        process.kill()
        process.wait()


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def command_of(pid: int) -> str:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    return ""


def resume(tmp_path: Path, model: str) -> None:
    done = len(list(tmp_path.glob("out/part-*")))
    assert 4 <= done < MANY // PART
    result = embed_corpus([tmp_path / "many.txt"], tmp_path / "out", model=model, part_sentences=PART)
    assert result.new_parts == MANY // PART - done
    check(tmp_path / "out", lines(MANY))
    assert not list((tmp_path / "out").glob(".*"))


proc = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="finds the workers in /proc")


@proc
def test_a_worker_that_is_killed_is_one_clear_error_and_the_job_can_be_resumed(tmp_path, model):
    with running(tmp_path, model) as (process, workers):
        assert len(workers) == 2
        os.kill(workers[1], signal.SIGKILL)
        assert process.wait(60) == 1
    error = (tmp_path / "stderr").read_text()
    last = error.splitlines()[-1]
    assert "elmo: a worker (process" in last
    assert "was killed by SIGKILL while it wrote part" in last
    assert "Finished parts are kept" in last
    assert "Traceback" not in error
    assert not list((tmp_path / "out").glob(".*"))
    resume(tmp_path, model)


@proc
def test_workers_end_with_a_parent_that_is_killed_and_the_job_can_be_resumed(tmp_path, model):
    with running(tmp_path, model) as (process, workers):
        process.kill()
        process.wait()
        deadline = time.monotonic() + 10
        while any("spawn_main" in command_of(pid) for pid in workers) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not any("spawn_main" in command_of(pid) for pid in workers)
    resume(tmp_path, model)


@proc
def test_a_job_that_is_terminated_says_what_is_kept(tmp_path, model):
    with running(tmp_path, model) as (process, workers):
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM
    error = (tmp_path / "stderr").read_text()
    assert "terminated; Finished parts are kept. Run the command again without --force to resume." in error
    assert "Traceback" not in error
    assert not any("spawn_main" in command_of(pid) for pid in workers)
    assert not list((tmp_path / "out").glob(".*"))
    assert 4 <= len(list((tmp_path / "out").glob("part-*"))) < MANY // PART


# --- input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
def test_bad_text_is_named_by_its_true_line(tmp_path, text, model, workers, monkeypatch):
    monkeypatch.setattr("pyelmo.embed.bulk.run.COUNTED_CHARACTERS", 1)  # so that a worker meets it, not the parent
    second = tmp_path / "second.txt"
    second.write_bytes(b"good\n" * 8 + b"caf\xe9\n" + b"good\n" * 30)
    with pytest.raises(FormatError, match="second.txt, line 9: not UTF-8 at byte 4"):
        embed_corpus([text, second], tmp_path / "out", model=model, part_sentences=9, workers=workers)


def test_inputs_that_cannot_be_used_are_refused(tmp_path, text, model):
    with pytest.raises(InputError, match="-: is a stream"):
        embed_corpus(["-"], tmp_path / "out", model=model)
    with pytest.raises(NotFoundError, match="nothing.txt: not found"):
        embed_corpus([text, "nothing.txt"], tmp_path / "out", model=model)
    with pytest.raises(InputError, match="is a folder"):
        embed_corpus([tmp_path], tmp_path / "out", model=model)
    with pytest.raises(InputError, match="pass a list of files"):
        embed_corpus("in.txt", tmp_path / "out", model=model)
    with pytest.raises(InputError, match="workers is 0"):
        embed_corpus([text], tmp_path / "out", model=model, workers=0)
    with pytest.raises(InputError, match="runner 'spark' is none of"):
        embed_corpus([text], tmp_path / "out", model=model, runner="spark")
    assert not (tmp_path / "out").exists()


def test_input_that_shrinks_meanwhile_makes_no_part(tmp_path, text, model, monkeypatch):
    scan = inputs.scan

    def and_cut(paths, part, options):
        result = scan(paths, part, options)
        text.write_text("short\n")
        return result

    monkeypatch.setattr("pyelmo.embed.bulk.run.scan", and_cut)
    with pytest.raises(InputError, match="has 1 of the 50 sentences expected. Was it changed"):
        embed_corpus([text], tmp_path / "out", model=model, part_sentences=50)
    assert names(tmp_path / "out") == ["_job.json"]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 100])
@pytest.mark.parametrize("block", [1, 3, 1 << 20])
def test_every_part_begins_where_the_one_before_ends(tmp_path, monkeypatch, size, block):
    monkeypatch.setattr(inputs, "BLOCK", block)
    files = [b"a\nb\n\nc\n", b"", b"d\r\ne", b"\n", b"f\ng\nh\n"]
    for number, content in enumerate(files):
        (tmp_path / str(number)).write_bytes(content)
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"text": ["i", None, "j", "k", " l "]})
    pytest.importorskip("pyarrow.parquet").write_table(table, tmp_path / "5", row_group_size=2)
    paths = [str(tmp_path / str(number)) for number in (0, 1, 2, 3, 5, 4)]
    want = ["a", "b", "", "c", "d", "e", "", "i", "", "j", "k", "l", "f", "g", "h"]
    assert [sentence.text for sentence in inputs.read(paths)] == want
    scan = inputs.scan(paths, size, ReadOptions())
    assert (scan.sentences, len(scan.positions)) == (15, -(-15 // size))
    assert inputs.count(inputs.read(paths), paths) == 15
    for number, position in enumerate(scan.positions):
        assert [sentence.text for sentence in inputs.read(paths, position=position)] == want[number * size :]


def test_parquet_is_read_by_its_columns(tmp_path, model):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = {"id": [1, 2], "sentence": ["It's one.", "Two"], "tokens": [["It", "'s one", "."], ["Two"]]}
    parquet.write_table(pyarrow.table(table), tmp_path / "in.parquet")
    path = str(tmp_path / "in.parquet")
    assert [sentence.words for sentence in inputs.read([path])] == table["tokens"]
    assert [sentence.text for sentence in inputs.read([path], ReadOptions(column="sentence"))] == table["sentence"]
    with pytest.raises(InputError, match=r"no column 'line' \(columns: id, sentence, tokens\)"):
        list(inputs.read([path], ReadOptions(column="line")))
    with pytest.raises(InputError, match="row 0, column 'id': expected text or a list of words, got int 1"):
        list(inputs.read([path], ReadOptions(column="id")))
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(FormatError, match="bad.parquet: cannot be read as Parquet"):
        embed_corpus([tmp_path / "bad.parquet"], tmp_path / "out", model=model)
    embed_corpus([path], tmp_path / "out", model=model, part_sentences=1)
    assert [row.tokens for row in read_embeddings(tmp_path / "out")] == table["tokens"]
    embed_corpus([*sorted((tmp_path / "out").glob("part-*"))], tmp_path / "again", model=model)
    first, again = (list(read_embeddings(tmp_path / name)) for name in ("out", "again"))
    assert worst(again[0].vectors, first[0].vectors) == 0


# --- words ---------------------------------------------------------------------------------------------------------


class Letters:
    """An engine whose word vectors are the first characters of a word; counts what it encodes."""

    size = 3

    def __init__(self, kind: str) -> None:
        self.kind, self.encoded = kind, 0

    def new_table(self, rows):
        return torch.zeros(rows, self.size) if self.kind == "torch" else np.zeros((rows, self.size), np.float32)

    def encode(self, words):
        self.encoded += len(words.chars)
        values = words.chars[:, : self.size].astype(np.float32)
        return torch.from_numpy(values) if self.kind == "torch" else values

    def download(self, vectors):
        return np.asarray(vectors)

    def upload(self, vectors):
        return torch.from_numpy(vectors) if self.kind == "torch" else vectors


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_a_word_table_goes_to_another_process(tmp_path, kind):
    lexicon = Lexicon(Bytes(16))
    table, other = WordTable(Letters(kind), lexicon, 8), WordTable(engine := Letters(kind), lexicon, 8)
    table.add(["강", "two words", 'q"\n'])
    table.save(tmp_path / "words")
    other.load(tmp_path / "words")
    assert (len(other), engine.encoded) == (3, 0)
    rows, values = other.look_up(['q"\n', "new", "강"])
    assert engine.encoded == 1  # the new word
    fresh = WordTable(Letters(kind), lexicon, 8)
    want, encoded = fresh.look_up(['q"\n', "new", "강"])
    np.testing.assert_array_equal(np.asarray(values)[rows], np.asarray(encoded)[want])
    WordTable(Letters(kind), lexicon, 8).save(tmp_path / "none")
    other.load(tmp_path / "none")
    assert len(other) == 0
