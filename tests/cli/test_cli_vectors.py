"""elmo vectors: the examples of every --help, results on stdout, and one line for an error."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pytest

from pyelmo.cli import main
from pyelmo.cli.train.vectors import ACTIONS
from pyelmo.vectors.static import StaticVectors

TEXT = Path(__file__).parents[1] / "banks.txt"
VECTORS = "5 4\nman 1 0 0 1\nwoman 0 1 0 1\nking 1 0 1 1\nqueen 0 1 1 1\nparis -1 -1 0.1 0\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with what the examples of --help name."""
    monkeypatch.chdir(tmp_path)
    Path("vectors.vec").write_text(VECTORS)
    Path("questions.txt").write_text(": royals\nman king woman queen\nman king nobody queen\n")
    for name in ("wordsim.tsv", "simlex.txt"):
        Path(name).write_text("man\tking\t9\nman\twoman\t5\nman\tParis\t1\n")
    assert main(["prepare", str(TEXT), "-o", "corpus", "--tokenised", "--valid", str(TEXT), "-q"]) == 0
    return tmp_path


@pytest.mark.parametrize("action", ACTIONS)
def test_the_example_in_help_runs(action, here, capsys):
    if action == "train":
        pytest.importorskip("gensim")
        os.remove("vectors.vec")
    with pytest.raises(SystemExit):
        main(["vectors", action, "--help"])
    assert f"example: {ACTIONS[action].example}" in " ".join(capsys.readouterr().out.split())
    assert main(shlex.split(ACTIONS[action].example)[1:]) == 0


def test_king_without_man_and_with_woman_is_queen(here, capsys):
    assert main(["vectors", "analogy", "vectors.vec", "king", "man", "woman", "-k", "1"]) == 0
    similarity, word = capsys.readouterr().out.split()
    assert (word, 0.9 < float(similarity) <= 1) == ("queen", True)
    assert main(["vectors", "analogy", "vectors.vec", "KING", "man", "woman", "--lower-unknown", "--json"]) == 0
    assert [list(row) for row in json.loads(capsys.readouterr().out)] == [["word", "similarity"]] * 2
    assert main(["vectors", "similar", "vectors.vec", "king", "-k", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["word"] == "man"


def test_pairs_are_what_a_window_shows(here, capsys):
    assert main(["vectors", "pairs", "The quick brown fox", "--window", "1"]) == 0
    assert capsys.readouterr().out == "The\tquick\nquick\tThe\nquick\tbrown\nbrown\tquick\nbrown\tfox\nfox\tbrown\n"
    assert main(["vectors", "pairs", "The quick brown fox", "--algorithm", "cbow"]) == 0
    assert capsys.readouterr().out.splitlines()[1:3] == ["The brown fox\tquick", "The quick fox\tbrown"]
    for algorithm in ("skip-gram", "cbow"):  # a single word has no context
        assert main(["vectors", "pairs", "fox", "--algorithm", algorithm]) == 0
        assert capsys.readouterr().out == ""


def test_the_softmax_of_a_model_is_a_table_of_static_vectors(here, capsys):
    assert main(["vectors", "softmax", "ko", "-o", "ko.bin"]) == 0
    assert "ko.bin: 19,997 vectors of dimension 512" in capsys.readouterr().err
    vectors = StaticVectors.load("ko.bin")
    assert vectors.analogy("아버지", "남자", "여자", 1)[0].word == "어머니"
    assert "<UNK>" not in vectors.index


def test_a_model_without_a_softmax_has_no_static_vectors(here, clip_model, capsys):
    assert main(["vectors", "softmax", str(clip_model), "-o", "out.vec"]) == 1
    assert "has no softmax" in capsys.readouterr().err
    assert not Path("out.vec").exists()


def test_evaluate_prints_sections_totals_and_coverage(here, capsys):
    command = ["vectors", "evaluate", "vectors.vec", "--analogies", "questions.txt", "--pairs", "wordsim.tsv"]
    assert main([*command, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    total = {"accuracy": 100.0, "right": 1, "known": 1, "questions": 2, "coverage": 50.0}
    assert facts["analogies"]["questions.txt"]["total"] == facts["analogies"]["questions.txt"]["royals"] == total
    assert facts["analogies"]["questions.txt"]["syntactic"]["accuracy"] is None
    assert facts["pairs"]["wordsim.tsv"] == {
        "spearman": pytest.approx(1),
        "spearman_known": pytest.approx(1),
        "known": 3,
        "pairs": 3,
        "coverage": 100.0,
    }
    assert main(command) == 0
    captured = capsys.readouterr()
    assert "total      100.0  1 of 1 (2 with the skipped ones)\n" in captured.out
    assert "wordsim.tsv: Spearman 1.000 over all 3 pairs" in captured.out
    assert captured.err == ""
    assert main([*command, "--case", "--vocab-size", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pairs"]["wordsim.tsv"]["known"] == 2


@pytest.mark.parametrize(("more", "kind"), [([], "word2vec-binary"), (["--subwords", "--buckets", "100"], "fasttext")])
def test_train_writes_a_file_that_the_other_actions_read(more, kind, here, capsys):
    pytest.importorskip("gensim")
    command = ["vectors", "train", "corpus", "-o", "out.bin", "--dim", "8", "--min-count", "2", *more]
    assert main(command) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"vectors of dimension 8 ({kind})" in captured.err
    assert StaticVectors.load("out.bin").dim == 8
    assert main(["vectors", "similar", "out.bin", "bank"]) == 0
    assert main([*command, "-q"]) == 1
    assert "--force" in capsys.readouterr().err
    assert main([*command, "-q", "--force"]) == 0


def test_text_is_prepared_before_training(here, capsys):
    pytest.importorskip("gensim")
    rows = "".join(f"{number},A bank of the river\n" for number in range(5))
    Path("text.csv").write_bytes(f"id,body\n{rows}".encode("utf-16"))
    command = ["vectors", "train", "text.csv", "-o", "out.vec", "--dim", "4", "--min-count", "2", "-q"]
    assert main(command) == 1
    assert "Pass --encoding utf-16" in capsys.readouterr().err
    assert main([*command, "--encoding", "utf-16", "--column", "body"]) == 0
    assert sorted(StaticVectors.load("out.vec").words) == ["A", "bank", "of", "river", "the"]


def test_vectors_with_a_byte_order_mark_are_read(here):
    Path("mark.vec").write_bytes(VECTORS.encode("utf-8-sig"))
    Path("mark.txt").write_bytes(VECTORS.partition("\n")[2].encode("utf-8-sig"))
    for name in ("mark.vec", "mark.txt"):
        assert "man" in StaticVectors.load(name).words


BAD = {
    "no vectors": (["similar", "nothing.vec", "king"], "nothing.vec: not found"),
    "a folder": (["similar", "corpus", "king"], "corpus: this is a folder"),
    "prose": (["similar", "questions.txt", "king"], "questions.txt, line 1: expected a word and"),
    "an unknown word": (
        ["analogy", "vectors.vec", "king", "man", "nobody"],
        "vectors.vec: 'nobody' is not in the vocabulary of 5 words",
    ),
    "no count": (["similar", "vectors.vec", "king", "-k", "0"], "at least 1"),
    "nothing to measure": (["evaluate", "vectors.vec"], "Name files with --analogies or --pairs"),
    "no words to measure": (["evaluate", "vectors.vec", "--pairs", "simlex.txt", "--vocab-size", "0"], "at least 1"),
    "no questions": (["evaluate", "vectors.vec", "--analogies", "simlex.txt"], "simlex.txt, line 1"),
    "no window": (["pairs", "a b", "--window", "0"], "the window is 0; it must be at least 1"),
    "no model": (["softmax", "nowhere/model", "-o", "a.vec"], "nowhere/model"),
    "softmax to an existing file": (["softmax", "en", "-o", "vectors.vec"], "--force"),
    "no corpus": (["train", "nowhere", "-o", "a.vec"], "nowhere: not found"),
    "no format": (["train", "corpus", "-o", "a"], "--format"),
    "existing output": (["train", "corpus", "-o", "vectors.vec", "--format", "glove"], "--force"),
    "odd settings": (["train", "corpus", "-o", "a.vec", "--dim", "0"], "dim is 0"),
    "n-grams without n-grams": (["train", "corpus", "-o", "a.bin", "--format", "fasttext"], "n-grams"),
    "rare words": (["train", "corpus", "-o", "a.vec", "--min-count", "99999"], "no word occurs 99999 times"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_no_file(case, here, capsys):
    arguments, message = BAD[case]
    if arguments[0] == "train":
        pytest.importorskip("gensim")
    before = sorted(os.listdir("."))
    capsys.readouterr()
    assert main(["vectors", *arguments]) == 1
    error = capsys.readouterr().err
    assert error.startswith("elmo: ")
    assert error.count("\n") == 1
    assert message in error
    assert sorted(os.listdir(".")) == before
