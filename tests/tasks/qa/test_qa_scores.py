"""Scores of answers: cases whose official score was worked out by hand."""

from __future__ import annotations

import pytest

from pyelmo.errors import InputError
from pyelmo.tasks.qa.scores import AnswerScore, korquad_words, score_answer, squad_words


@pytest.mark.parametrize(
    ("given", "wanted", "exact", "f1"),
    [
        ("Denver Broncos", ["Denver Broncos"], 1, 1),
        ("The  Denver\nBroncos.", ["denver broncos"], 1, 1),  # case, article, punctuation, white space
        ("Broncos", ["Denver Broncos"], 0, 2 / 3),
        ("the Broncos of Denver", ["Denver Broncos"], 0, 4 / 5),  # order does not count for F1
        ("Levi's Stadium", ["Levis stadium"], 1, 1),  # punctuation goes, and leaves no space
        ("well-known", ["well known"], 0, 0),
        ("24–10", ["2410"], 0, 0),  # a dash that is not ASCII stays
        ("New New York", ["New York York"], 0, 2 / 3),  # each word as often as both have it
        ("Paris", ["Rome", "in Paris", "Paris, France"], 0, 2 / 3),
        ("Paris", ["Rome", "Paris"], 1, 1),
        ("theatre an d", ["theatre d"], 1, 1),  # an article is a whole word
        ("the", ["a"], 1, 0),  # nothing against nothing: equal, but nothing shared
        ("Paris", [], 0, 0),
    ],
)
def test_squad_s_scores(given, wanted, exact, f1):
    assert score_answer(given, wanted) == AnswerScore(exact, pytest.approx(f1))


@pytest.mark.parametrize(
    ("given", "wanted", "exact", "f1"),
    [
        ("임수경", ["임수경"], 1, 1),
        ("임수경을", ["임수경"], 0, 6 / 7),  # by characters
        ("《논어》", ["논어"], 1, 1),
        ("1989년 2월", ["1989년2월"], 0, 1),  # spaces count for an exact match alone
        ("아리(Ari)", ["아리 ari"], 1, 1),  # a bracket is a space
        ("1,000", ["1000"], 1, 1),  # other punctuation is nothing
        ("the 강", ["강"], 0, 2 / 5),  # no articles
        ("가가나", ["가나나"], 0, 2 / 3),
        ("가", ["나", "가다"], 0, 2 / 3),
        ("()", ["''"], 1, 0),
    ],
)
def test_korquad_s_scores(given, wanted, exact, f1):
    assert score_answer(given, wanted, "korquad") == AnswerScore(exact, pytest.approx(f1))


def test_what_is_compared():
    assert squad_words("A cat, an owl & the U.S.") == ["cat", "owl", "us"]
    assert korquad_words('〈훈민정음〉 "해례본" U.S.') == ["훈민정음", "해례본", "us"]


def test_an_unknown_scheme_is_an_error():
    with pytest.raises(InputError, match="Choose one of squad, korquad"):
        score_answer("a", ["b"], "bleu")
