"""Misspelt words: slips that are slips, and vectors whose answers are known."""

from __future__ import annotations

import random
import unicodedata

import numpy as np
import pytest

from pyelmo.errors import InputError
from pyelmo.probes import typos
from pyelmo.probes.in_context import WordInContext

SENTENCES = [["The", "house", "stood", "."], ["우리", "학교에서", "왔다"], ["a", "1234", "it's"], ["Zebras", "run"]]


def all_slips(word, kind):
    return {typos.slip(word, kind, random.Random(seed)) for seed in range(200)}


def test_every_kind_of_slip_is_what_it_says():
    assert all_slips("abca", "swap") == {"baca", "acba", "abac"}
    assert all_slips("abca", "drop") == {"bca", "aca", "aba", "abc"}
    assert all_slips("abca", "double") == {"aabca", "abbca", "abcca", "abcaa"}
    assert all_slips("Qp", "neighbour") == {"Wp", "Qo"}
    assert all_slips("aa", "swap") == {"aa"}  # there is no other


def test_a_hangul_neighbour_differs_by_one_letter_of_one_syllable():
    found = all_slips("학교", "neighbour")
    for word in found:
        letters, wrong = (unicodedata.normalize("NFD", text) for text in ("학교", word))
        assert len(word) == 2
        assert sum(one != two for one, two in zip(letters, wrong, strict=True)) == 1
    assert {"락교", "핟교", "학쇼"} <= found  # ㅎ-ㄹ, ㄱ-ㄷ at the end, ㄱ-ㅅ


def test_one_plain_word_of_a_sentence_is_misspelt_in_every_way_and_the_same_each_time():
    found = typos.misspell(SENTENCES, seed=1)
    assert [typo.kind for typo in found] == [*typos.KINDS] * 3
    for typo in found:
        differing = [
            place for place, (a, b) in enumerate(zip(typo.right.words, typo.wrong.words, strict=True)) if a != b
        ]
        assert differing == [typo.right.position] == [typo.wrong.position]
    assert {typo.right.words[typo.right.position] for typo in found} <= {"house", "stood", "학교에서", "Zebras"}
    assert found == typos.misspell(SENTENCES, seed=1)
    assert found != typos.misspell(SENTENCES, seed=2)


# The first layer takes "huose" for "house"; the second takes everything for "mouse".
VECTORS = {"house": ([1, 0], [1, 0]), "mouse": ([0, 1], [0, 1]), "huose": ([4, 1], [1, 9]), "mose": ([0, 2], [0, 3])}


def embed(sentences):
    for words in sentences:
        yield np.array([VECTORS.get(word, ([0, 0], [0, 0])) for word in words], np.float32).transpose(1, 0, 2)


def typo(kind, right, wrong):
    return typos.Typo(kind, WordInContext([right, "x"], 0), WordInContext([wrong, "x"], 0))


CASES = [typo("swap", "house", "huose"), typo("drop", "mouse", "mose"), typo("drop", "house", "ouse")]


def test_cosines_and_the_nearest_right_word_are_found_in_each_layer():
    found = typos.evaluate(embed, CASES[:2])
    assert found.cosine["swap"] == pytest.approx((4 / 17**0.5, 1 / 82**0.5))
    assert found.cosine["all"] == pytest.approx(((4 / 17**0.5 + 1) / 2, (1 / 82**0.5 + 1) / 2))
    assert found.found == {"all": (100.0, 50.0), "swap": (100.0, 0.0), "drop": (100.0, 100.0)}
    assert found.without == {"all": 0.0, "swap": 0.0, "drop": 0.0}
    assert (found.words, found.left_out) == (2, 0)


def test_a_word_without_a_vector_is_counted_and_not_found():
    more = [*CASES, typo("swap", "unheard", "uhneard")]
    found = typos.evaluate(embed, more, knows=VECTORS.__contains__)
    assert found.without["drop"] == 50.0
    assert found.found["drop"] == (50.0, 50.0)
    assert found.cosine["drop"] == pytest.approx((1.0, 1.0))  # of those that have one
    assert (found.words, found.left_out) == (3, 1)
    assert typos.evaluate(embed, CASES[2:], knows=VECTORS.__contains__).cosine["all"] == (None, None)
    with pytest.raises(InputError, match="no sentence has a word to misspell"):
        typos.evaluate(embed, CASES, knows=lambda word: False)


def test_a_vector_as_near_to_another_word_is_not_found():
    flat = typos.evaluate(lambda sentences: (np.ones((1, len(words), 2)) for words in sentences), CASES)
    assert flat.found["all"] == (0.0,)
    assert flat.cosine["all"] == pytest.approx((1.0,))
