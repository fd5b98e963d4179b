"""Neighbours in context: the nearest are those of NumPy, and what is damaged or another model's is refused."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from support import file_size_limit, make_embedder

from pyelmo import neighbours
from pyelmo.cli import main
from pyelmo.cli.use.neighbours import QUERY_EXAMPLE
from pyelmo.errors import FormatError, InputError, MissingExtraError, NotFoundError, OutputError
from pyelmo.neighbours import Index, vector_index
from pyelmo.neighbours.build import IndexedSentence
from pyelmo.neighbours.build import write as write_index
from pyelmo.neighbours.search import find_word
from pyelmo.text.tokens import TokenSpan
from pyelmo.vectors.static import unit_vectors

faiss = pytest.importorskip("faiss")

FACTS = {"words": "all", "inputs": ["random"]}
LINES = ["The bank of a river.", "", "A bank account", "Bank on the bank!", "No such word here"]


def random_vectors(count: int, dim: int = 48) -> np.ndarray:
    return unit_vectors(np.random.default_rng(0).standard_normal((count, dim), dtype=np.float32))


def write(path: Path, vectors: np.ndarray, **options) -> Index:
    """Sentences of five words: those of number n are "n", and "a" or "b"."""
    rows = vectors.reshape(-1, 5, vectors.shape[1])
    spans = [TokenSpan("ab"[place % 2], 2 * place, 2 * place + 1) for place in range(5)]
    found = ((IndexedSentence("a b a b a", spans, list(range(5)), 0, line), row) for line, row in enumerate(rows, 1))
    return write_index(found, path, dim=vectors.shape[1], facts=FACTS, **options)


def rows_of(found: list[neighbours.Neighbour]) -> list[int]:
    return [5 * (neighbour.line - 1) + neighbour.start // 2 for neighbour in found]


@pytest.fixture
def model(tmp_path) -> Path:
    make_embedder().save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def index(tmp_path, model) -> Index:
    (tmp_path / "text.txt").write_text("\n".join(LINES), "utf-8")
    return neighbours.build(
        [tmp_path / "text.txt"], tmp_path / "index", model=model, words=["bank"], language="en", layer=1
    )


# --- the nearest ---------------------------------------------------------------------------------------------------


def test_an_exact_index_gives_what_numpy_gives(tmp_path):
    vectors = random_vectors(10_000)
    index = write(tmp_path / "index", vectors)
    assert index.manifest["kind"] == "exact"
    for query in random_vectors(25) + 0.1:
        cosines = vectors @ unit_vectors(query)
        want = np.argsort(-cosines)[:10]
        found = index.nearest(query)
        assert rows_of(found) == want.tolist()
        np.testing.assert_allclose([neighbour.cosine for neighbour in found], cosines[want], atol=1e-5)


def test_lists_hold_every_vector_once_and_faiss_alone_reads_them(tmp_path, monkeypatch):
    monkeypatch.setattr(vector_index, "EXACT_AT_MOST", 1000)
    monkeypatch.setattr(vector_index, "BLOCK", 999)
    monkeypatch.setattr(vector_index, "PART", 2500)
    vectors = random_vectors(10_000)
    assert write(tmp_path / "index", vectors).manifest["kind"] == "ivf"
    assert not (tmp_path / "index" / vector_index.VECTORS).exists()
    read = faiss.read_index(str(tmp_path / "index" / vector_index.INDEX))
    stored, owners = np.zeros(vectors.shape, np.float16), np.zeros(10_000, np.int64)
    seen = []
    files = sorted((tmp_path / "index").glob("lists-*.faiss"))
    for path in files:
        lists = faiss.read_InvertedLists(faiss.FileIOReader(str(path)))
        for number in range(lists.nlist):
            size = lists.list_size(number)
            rows = faiss.rev_swig_ptr(lists.get_ids(number), size).copy()
            codes = faiss.rev_swig_ptr(lists.get_codes(number), size * lists.code_size).copy()
            stored[rows], owners[rows] = codes.view("<f2").reshape(size, -1), number
            seen += rows.tolist()
    assert len(files) == 4  # 2997 vectors in each but the last
    assert sorted(seen) == list(range(10_000))
    assert (stored == unit_vectors(vectors).astype(np.float16)).all()
    assert (owners == read.quantizer.search(unit_vectors(vectors), 1)[1][:, 0]).all()


def test_lists_give_what_is_exact_when_all_are_asked(tmp_path, monkeypatch):
    vectors = random_vectors(10_000)
    exact = write(tmp_path / "exact", vectors)
    monkeypatch.setattr(vector_index, "EXACT_AT_MOST", 1000)
    lists = write(tmp_path / "lists", vectors)
    forced = write(tmp_path / "forced", vectors, exact=True)
    assert [index.manifest["kind"] for index in (exact, lists, forced)] == ["exact", "ivf", "exact"]
    monkeypatch.setattr(vector_index, "PROBES", 10_000)
    for query in random_vectors(20) + 0.1:
        found, want = lists.nearest(query), exact.nearest(query)
        np.testing.assert_allclose([n.cosine for n in found], [n.cosine for n in want], atol=1e-4)
        assert len(set(rows_of(found)) & set(rows_of(want))) >= 9  # float16 may swap the last two


def test_an_index_of_an_earlier_version_with_all_lists_in_one_file_can_be_searched(tmp_path, monkeypatch):
    monkeypatch.setattr(vector_index, "EXACT_AT_MOST", 1000)
    monkeypatch.setattr(vector_index, "BLOCK", 999)
    monkeypatch.setattr(vector_index, "PART", 2500)
    vectors = random_vectors(10_000)
    new = write(tmp_path / "index", vectors)
    want = [new._search.nearest(query, 10, rows) for query in vectors[:20] for rows in (None, np.arange(0, 10_000, 7))]
    one = faiss.read_index(str(tmp_path / "index" / vector_index.INDEX))
    one.add(unit_vectors(vectors).astype(np.float16).astype(np.float32))
    faiss.write_index(one, str(tmp_path / "index" / vector_index.INDEX))
    for path in (tmp_path / "index").glob("lists-*.faiss"):
        path.unlink()
    old = vector_index.ListSearch(tmp_path / "index", 10_000, 48)
    got = [old.nearest(query, 10, rows) for query in vectors[:20] for rows in (None, np.arange(0, 10_000, 7))]
    for (cosines, rows), (want_cosines, want_rows) in zip(got, want, strict=True):
        assert rows.tolist() == want_rows.tolist()
        assert (cosines == want_cosines).all()


@pytest.mark.parametrize("at_most", [1000, 100_000])
def test_neighbours_of_the_same_word_are_all_compared(tmp_path, monkeypatch, at_most):
    monkeypatch.setattr(vector_index, "EXACT_AT_MOST", at_most)
    monkeypatch.setattr(vector_index, "PROBES", 10_000)
    monkeypatch.setattr(vector_index, "BLOCK", 999)
    monkeypatch.setattr(vector_index, "SCAN", 999)
    monkeypatch.setattr(vector_index, "PART", 2500)
    vectors = random_vectors(10_000)
    index = write(tmp_path / "index", vectors)
    rows = np.flatnonzero(np.arange(10_000) % 5 % 2)
    query = vectors[7] + 0.3
    found = index.nearest(query, count=7, word="B")
    assert rows_of(found) == rows[np.argsort(-vectors[rows] @ unit_vectors(query))[:7]].tolist()
    assert {neighbour.word for neighbour in found} == {"b"}


def test_a_rare_word_is_found_in_whatever_list_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(vector_index, "EXACT_AT_MOST", 1000)
    monkeypatch.setattr(vector_index, "PROBES", 1)
    vectors = random_vectors(10_000)
    index = write(tmp_path / "index", vectors)
    rows = np.arange(0, 10_000, 1999)
    cosines, found = index._search.nearest(vectors[7], 6, rows)
    assert found.tolist() == rows[np.argsort(-vectors[rows] @ vectors[7])].tolist()
    np.testing.assert_allclose(cosines, vectors[found] @ vectors[7], atol=1e-3)


def test_more_neighbours_than_there_are_is_all_of_them(tmp_path):
    index = write(tmp_path / "index", random_vectors(10))
    assert sorted(rows_of(index.nearest(np.ones(48), count=99))) == list(range(10))


# --- text -> index -> neighbours -----------------------------------------------------------------------------------


def test_an_occurrence_is_found_with_its_sentence_and_line(index):
    assert (len(index), index.manifest["sentences"]) == (4, 3)
    found = index.query(index.load_model(), "The *bank* of a river.")
    assert found[0].line == 1
    assert found[0].cosine == pytest.approx(1, abs=1e-5)
    assert {neighbour.marked for neighbour in found} == {
        "The *bank* of a river.", "A *bank* account", "*Bank* on the bank!", "Bank on the *bank*!",
    }  # fmt: skip
    assert Path(found[0].source).name == "text.txt"


def test_a_vector_in_the_index_is_the_model_s(tmp_path, index):
    embedder = make_embedder()
    sentences = [["The", "bank", "of", "a", "river", "."], ["A", "bank", "account"], ["Bank", "on", "the", "bank", "!"]]
    layers = embedder.embed(sentences, layers=1)
    want = np.stack([layers[0][1], layers[1][1], layers[2][0], layers[2][3]])
    stored = np.fromfile(tmp_path / "index" / vector_index.VECTORS, "<f4").reshape(4, -1)
    np.testing.assert_allclose(stored, unit_vectors(want), atol=1e-6)


def test_all_words_leave_out_punctuation(tmp_path, index, model):
    again = neighbours.build([tmp_path / "text.txt"], tmp_path / "all", model=model, language="en")
    assert len(again) == 16
    tokenised = neighbours.build([tmp_path / "text.txt"], tmp_path / "split", model=model, tokenised=True)
    assert tokenised.nearest(np.ones(16), word="river.")[0].marked == "The bank of a *river.*"


def test_of_several_files_each_occurrence_names_its_own(tmp_path, index, model):
    (tmp_path / "more.txt").write_text("\n\nOne more bank", "utf-8")
    texts = [tmp_path / "text.txt", tmp_path / "more.txt"]
    both = neighbours.build(texts, tmp_path / "both", model=model, words=["bank"])
    found = both.query(both.load_model(), "One more *bank*", count=1)[0]
    assert (Path(found.source).name, found.line) == ("more.txt", 3)


@pytest.mark.parametrize(
    ("sentence", "word", "place"),
    [
        ("a Broadway *play*, they said", None, 2),
        ("a Broadway * play *", None, 2),
        ("a *Broad*way play", None, 1),
        ("a Broadway play", "Play", 2),
    ],
)
def test_the_word_meant_is_found(sentence, word, place):
    assert find_word(sentence, "en", word)[1] == place


@pytest.mark.parametrize(
    ("sentence", "word", "message"),
    [
        ("a Broadway play", None, "expected one word between asterisks"),
        ("a * * play", None, "expected one word between asterisks"),
        ("a *Broadway* *play*", None, "expected one word between asterisks"),
        ("a *Broadway play*", None, "is not one word but 2: Broadway, play"),
        ("a Broadway play", "film", "'film' does not occur in the sentence"),
        ("play the play", "play", "'play' occurs 2 times"),
    ],
)
def test_a_sentence_without_one_word_meant_is_refused(sentence, word, message):
    with pytest.raises(InputError, match=message):
        find_word(sentence, "en", word)


def test_a_word_that_the_index_lacks_has_no_neighbours_of_its_own(index):
    with pytest.raises(InputError, match="holds no occurrence of 'river'"):
        index.query(index.load_model(), "the *river*", same_word=True)


def test_a_text_without_the_word_leaves_no_index(tmp_path, index, model):
    with pytest.raises(InputError, match="no occurrence of play to index"):
        neighbours.build([tmp_path / "text.txt"], tmp_path / "other", model=model, words=["play"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index", "model", "text.txt"]


# --- what is damaged, another's or unfinished ----------------------------------------------------------------------


def change_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("name", ["sentences.txt", "sentences.bin", "occurrences.bin", "vectors.f32", "manifest.json"])
@pytest.mark.parametrize(
    "damage",
    [change_byte, lambda path: path.write_bytes(path.read_bytes()[:-1]), Path.unlink],
    ids=["byte", "cut", "gone"],
)
def test_a_damaged_index_is_refused(index, name, damage):
    damage(index.path / name)
    if (name, damage.__name__) == ("manifest.json", "<lambda>"):
        return  # the last byte is the end of a line, which says nothing
    with pytest.raises(FormatError, match=f"{name}.*(damaged|missing|not a JSON)"):
        Index(index.path)


def test_a_quick_look_compares_sizes(index):
    change_byte(index.path / "vectors.f32")
    Index(index.path, verify=False)
    (index.path / "vectors.f32").write_bytes(b"")
    with pytest.raises(FormatError, match="the file has 0 bytes, expected 256"):
        Index(index.path, verify=False)


def test_another_model_is_refused_and_a_copy_is_not(tmp_path, index, model):
    make_embedder(seed=1).save(tmp_path / "another")
    with pytest.raises(InputError, match="built with another model .*model, .* than .*another"):
        index.load_model(tmp_path / "another")
    shutil.move(model, tmp_path / "moved")
    with pytest.raises(NotFoundError, match="model"):
        index.load_model()
    assert index.query(index.load_model(tmp_path / "moved"), "A *bank* account", count=1)[0].line == 3


def test_force_replaces_an_index_and_nothing_else(tmp_path, index, model):
    text = [tmp_path / "text.txt"]
    with pytest.raises(OutputError, match="Pass --force"):
        neighbours.build(text, index.path, model=model)
    neighbours.build(text, index.path, model=model, words=["river"], force=True)
    assert len(Index(index.path)) == 1
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter").write_text("dear")
    with pytest.raises(OutputError, match="not an index of neighbours"):
        neighbours.build(text, tmp_path / "mine", model=model, force=True)
    assert (tmp_path / "mine" / "letter").read_text() == "dear"


def test_a_killed_build_leaves_nothing_that_looks_whole(tmp_path, model):
    command = [sys.executable, "-m", "pyelmo", "neighbours", "build", "-", "-o", "index", "--model", str(model), "-q"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, cwd=tmp_path)
    process.stdin.write(b"A bank account\n" * 1000)
    process.stdin.flush()
    for _ in range(600):
        if left := list(tmp_path.glob(".index.*.part/index/occurrences.bin")):
            break
        time.sleep(0.05)
    process.kill()
    process.wait()
    process.stdin.close()
    assert left
    assert not (tmp_path / "index").exists()
    with pytest.raises(FormatError, match="not an index of neighbours"):
        Index(left[0].parent)


@pytest.mark.parametrize("bytes", [100, 5_000, 100_000])  # centroids, the lists of the vectors, and the lists
def test_a_full_disk_is_one_error_and_leaves_no_index(tmp_path, monkeypatch, bytes):
    monkeypatch.setattr(vector_index, "EXACT_AT_MOST", 100)
    write_lists = vector_index._write_lists

    def write_on_a_full_disk(*arguments):
        with file_size_limit(bytes):
            write_lists(*arguments)

    monkeypatch.setattr(vector_index, "_write_lists", write_on_a_full_disk)
    with pytest.raises(OutputError, match="index: cannot be written: File too large. Nothing was changed"):
        write(tmp_path / "index", random_vectors(2000))
    assert not list(tmp_path.iterdir())


def test_progress_counts_lines_when_they_are_indexed_not_when_they_are_read(tmp_path, model, monkeypatch):
    (tmp_path / "text.txt").write_text("\n".join([*LINES, "the end", ""]), "utf-8")
    calls: list[object] = []
    add = vector_index.VectorWriter.add
    monkeypatch.setattr(vector_index.VectorWriter, "add", lambda *values: (calls.append("written"), add(*values)))
    text = [tmp_path / "text.txt"]
    neighbours.build(text, tmp_path / "index", model=model, words=["bank"], language="en", advance=calls.append)
    lines = [call for call in calls if call != "written"]
    assert lines[0] == 0
    assert sum(lines) == 6
    assert calls.index("written") < calls.index(1)


def test_the_next_build_removes_what_a_killed_one_left(tmp_path, model):
    (tmp_path / "text.txt").write_text("\n".join(LINES), "utf-8")
    left = tmp_path / ".index.abcdefgh.part"
    (left / "index").mkdir(parents=True)
    (left / "index" / "occurrences.bin").write_bytes(b"half")
    neighbours.build([tmp_path / "text.txt"], tmp_path / "index", model=model, words=["bank"], language="en")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index", "model", "text.txt"]


def test_without_faiss_the_error_names_the_extra(tmp_path, model, monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'pyelmo\[neighbours\]'"):
        neighbours.build([tmp_path / "text.txt"], tmp_path / "index", model=model)


# --- the command ---------------------------------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path, index, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_the_command_prints_cosine_line_and_sentence(here, capsys):
    build = ["neighbours", "build", "text.txt", "-o", "index", "--model", "model", "--words", "bank", "--force", "-q"]
    assert main(build) == 0
    assert main(shlex.split(QUERY_EXAMPLE)[1:]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert len(rows) == 3
    assert all(row[1].startswith("text.txt:") and row[2].count("*") == 2 for row in rows)
    assert [float(row[0]) for row in rows] == sorted((float(row[0]) for row in rows), reverse=True)


def test_a_query_prints_a_window_around_the_word_not_the_whole_paragraph(here, capsys):
    Path("long.txt").write_text("before " * 60 + "bank" + " after" * 60 + "\n", "utf-8")
    assert main(["neighbours", "build", "long.txt", "-o", "i", "--model", "model", "--words", "bank", "-q"]) == 0
    query = ["neighbours", "query", "i", "My *bank*"]
    printed = {}
    for window in ("60", "20", "0"):
        assert main([*query, "--window", window]) == 0
        printed[window] = capsys.readouterr().out.rstrip("\n").split("\t")[2]
    assert main(query) == 0
    assert capsys.readouterr().out.rstrip("\n").split("\t")[2] == printed["60"]
    assert printed["20"] == "… before before *bank* after after after …"
    assert len(printed["60"]) <= 2 * 60 + len("…*bank*…")
    assert printed["0"].count("before") == 60
    assert main([*query, "--window", "-1"]) == 1
    assert "--window -1: must be at least 0" in capsys.readouterr().err


def test_static_neighbours_stand_beside_them(here, capsys):
    Path("vectors.txt").write_text("4 2\nbank 1 0\nmoney 0.9 0.1\nriver 0 1\nshore 0.1 2\n", "utf-8")
    query = ["neighbours", "query", "index", "My *bank* is here", "-k", "2", "--vectors", "vectors.txt"]
    assert main([*query, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["word"], len(found["neighbours"])) == ("bank", 2)
    assert [other["word"] for other in found["static"]] == ["money", "shore"]
    assert found["static"][0]["cosine"] == pytest.approx(0.9939, abs=1e-4)
    assert main(query) == 0
    assert "\t0.9939 money\t" in capsys.readouterr().out.splitlines()[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["query", "index", "no mark"], "between asterisks"),
        (["query", "index", "no *mark*", "--model", "another"], "another model"),
        (["query", "model", "a *mark*"], "not an index"),
        (["query", "nowhere", "a *mark*"], "no such folder"),
        (["query", "index", "a *mark*", "-k", "0"], "at least 1"),
        (["query", "index", "a *mark*", "--vectors", "text.txt"], "text.txt, line 1: expected a word and 4 numbers"),
        (["build", "text.txt", "-o", "index", "--model", "model"], "exists already"),
        (["build", "text.txt", "-o", "new", "--model", "model", "--layers", "all"], "one layer"),
        (["build", "text.txt", "-o", "new", "--model", "model", "--layers", "3"], "layer 3 does not exist"),
        (["build", "text.txt", "-o", "new", "--model", "model", "--words", "a,,b"], "commas between"),
        (["build", "absent.txt", "-o", "new", "--model", "model"], "absent.txt: not found"),
    ],
)
def test_an_error_is_one_line(here, capsys, arguments, message):
    make_embedder(seed=1).save("another")
    assert main(["neighbours", *arguments, *(["-q"] if arguments[0] == "build" else [])]) == 1
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert not captured.out
    assert not Path("new").exists()


@pytest.mark.parametrize("tokenised", [False, True])
def test_words_in_another_unicode_form_are_found_at_their_place_in_the_text(tmp_path, tokenised):
    make_embedder().save(tmp_path / "LM")
    (tmp_path / "text").write_text("Un cafe\u0301 noir\nla tasse\n", "utf-8")
    index = neighbours.build(
        [tmp_path / "text"], tmp_path / "index", model=tmp_path / "LM", words=["CAFÉ"], tokenised=tokenised
    )
    (near,) = index.query(index.load_model(), "le *café*", count=1, same_word=True)
    assert (near.word, near.start, near.end, near.marked) == ("cafe\u0301", 3, 8, "Un *cafe\u0301* noir")
    assert index.find("le cafe\u0301", "café")[1] == index.find("le café", "cafe\u0301")[1] == 1
