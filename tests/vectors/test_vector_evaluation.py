"""The evaluator: known answers by hand, and gensim's own figures for the same vectors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pyelmo.errors import FormatError, NotFoundError
from pyelmo.vectors import evaluate
from pyelmo.vectors.evaluate import AnalogyScore
from pyelmo.vectors.fasttext import Subwords
from pyelmo.vectors.static import StaticVectors

QUESTIONS = """: royals
man king woman queen
MAN KING WOMAN QUEEN
man king woman man
: gram1-none
king man nobody nothing
: syn2-plain
woman queen man king
"""
PAIRS = "# who is like whom\nword 1,word 2,score\nman,king,9\nman,woman,5\nman,Paris,1\nman,nobody,3\n"


@pytest.fixture
def questions(tmp_path):
    (tmp_path / "questions.txt").write_text(QUESTIONS)
    return evaluate.read_analogies(tmp_path / "questions.txt")


@pytest.fixture
def pairs(tmp_path):
    (tmp_path / "pairs.csv").write_bytes(b"\xef\xbb\xbf" + PAIRS.encode())
    return evaluate.read_pairs(tmp_path / "pairs.csv")


def test_analogies_by_section_with_totals_and_coverage(royal, questions):
    found = evaluate.analogies(royal, questions)
    assert found.sections["royals"] == AnalogyScore(
        right=2, known=3, questions=3
    )  # a word of the question is no answer
    assert found.sections["gram1-none"] == AnalogyScore(right=0, known=0, questions=1)
    assert found.sections["gram1-none"].accuracy is None
    assert (found.semantic, found.syntactic) == (AnalogyScore(2, 3, 3), AnalogyScore(1, 1, 2))
    assert found.total == AnalogyScore(3, 4, 5)
    assert (found.total.accuracy, found.total.coverage) == (75, 80)


def test_case_and_the_size_of_the_vocabulary_may_count(royal, questions):
    assert evaluate.analogies(royal, questions, ignore_case=False).sections["royals"] == AnalogyScore(1, 2, 3)
    assert evaluate.analogies(royal, questions, vocab_size=3).total == AnalogyScore(0, 1, 5)


def test_of_spellings_that_differ_by_case_the_first_counts(questions):
    words = ("man", "Woman", "king", "Queen", "queen")
    matrix = np.array([[1, 0, 0], [0, 1, 0], [1, 0, 1], [0, 1, 1], [-1, 0, 0]], dtype=np.float32)
    assert evaluate.analogies(StaticVectors(words, matrix), questions).sections["royals"].right == 2


def test_small_batches_change_nothing(royal, questions, monkeypatch):
    monkeypatch.setattr(evaluate, "_SCORES", 7)
    assert evaluate.analogies(royal, questions).total == AnalogyScore(3, 4, 5)


def test_pairs_with_an_unknown_word_count_as_0_or_not_at_all(royal, pairs):
    found = evaluate.similarity(royal, pairs)
    # Cosines fall from king over woman and nobody (0) to Paris, as the judgements 9, 5, 3, 1 do.
    assert (found.spearman, found.spearman_known, found.known, found.pairs) == (
        pytest.approx(1),
        pytest.approx(1),
        3,
        4,
    )
    assert found.coverage == 75
    turned = [(first, second, -score) for first, second, score in pairs]
    assert evaluate.similarity(royal, turned).spearman == pytest.approx(-1)
    wrong = [*pairs[:3], ("man", "nobody", 10.0)]
    assert evaluate.similarity(royal, wrong).spearman == pytest.approx(0.4)  # ranks 4 3 1 2 and 3 2 1 4
    assert evaluate.similarity(royal, wrong).spearman_known == pytest.approx(1)


def test_ngrams_make_unknown_words_known(royal, pairs):
    subwords = Subwords(np.ones((10, 4), dtype=np.float32), 3, 6)
    found = evaluate.similarity(StaticVectors(royal.words, royal.matrix, subwords=subwords), pairs)
    assert found.known == 4


def test_nothing_known_has_no_correlation(royal):
    found = evaluate.similarity(royal, [("x", "y", 1.0), ("y", "z", 2.0)])
    assert (found.spearman, found.spearman_known, found.coverage) == (None, None, 0)


def test_equal_values_share_their_rank():
    got = evaluate.spearman(np.array([1.0, 2, 2, 3]), np.array([1.0, 2, 3, 4]))
    assert got == pytest.approx(np.corrcoef([1, 2.5, 2.5, 4], [1, 2, 3, 4])[0, 1])


def test_gensim_finds_the_same(tmp_path):
    keyed = pytest.importorskip("gensim.models").KeyedVectors(3)
    random = np.random.default_rng(3)
    words = [f"w{i}" for i in range(12)]
    matrix = random.normal(size=(len(words), 3)).astype(np.float32)
    keyed.add_vectors(words, matrix)
    asked = random.choice([*words, "W1", "unknown"], (300, 4)).tolist()
    asked = [row for row in asked if len({word.lower() for word in row}) == 4]
    (tmp_path / "q").write_text(": one\n" + "".join(" ".join(row) + "\n" for row in asked))
    judged = [(*pair, i % 7) for i, pair in enumerate(itertools.combinations([*words, "unknown"], 2))]
    (tmp_path / "p").write_text("".join("\t".join(map(str, row)) + "\n" for row in judged))
    vectors = StaticVectors(words, matrix)

    ours = evaluate.analogies(vectors, evaluate.read_analogies(tmp_path / "q")).total
    accuracy, sections = keyed.evaluate_word_analogies(str(tmp_path / "q"))
    assert ours.known == len(sections[-1]["correct"]) + len(sections[-1]["incorrect"])
    assert 0 < ours.right < ours.known < ours.questions
    assert ours.accuracy == pytest.approx(100 * accuracy)

    found = evaluate.similarity(vectors, evaluate.read_pairs(tmp_path / "p"))
    for dummy, value in ((True, found.spearman), (False, found.spearman_known)):
        _, want, unknown = keyed.evaluate_word_pairs(str(tmp_path / "p"), dummy4unknown=dummy)
        assert value == pytest.approx(want[0])
        assert found.coverage == pytest.approx(100 - unknown)


BAD = {
    "three words": (evaluate.read_analogies, ": a\none two three\n", "line 2: expected four words"),
    "no section": (evaluate.read_analogies, "one two three four\n", 'line 1: expected a line ": section" first'),
    "no questions": (evaluate.read_analogies, ": a\n", "contains no questions"),
    "two columns": (evaluate.read_pairs, "a\tb\t1\na\tb\n", "line 2: expected two words and a number"),
    "no number": (evaluate.read_pairs, "a,b,1\na,b,c\n", "line 2: expected two words and a number"),
    "no pairs": (evaluate.read_pairs, "a,b,score\n", "contains no pairs"),
}


@pytest.mark.parametrize("case", BAD)
def test_an_error_in_a_test_set_names_its_line(case, tmp_path):
    read, text, message = BAD[case]
    (tmp_path / "set").write_text(text)
    with pytest.raises(FormatError, match=message):
        read(tmp_path / "set")
    with pytest.raises(NotFoundError, match="none: not found"):
        read(tmp_path / "none")
