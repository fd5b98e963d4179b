"""Static vectors: neighbours, analogies, and an encoder that every probe takes."""

from __future__ import annotations

import numpy as np
import pytest

from pyelmo.encoders.base import encode
from pyelmo.errors import InputError
from pyelmo.probes.senses import Occurrence, evaluate
from pyelmo.vectors.fasttext import Subwords
from pyelmo.vectors.static import StaticVectors


def test_an_analogy_is_answered_and_never_by_its_own_words(royal):
    found = royal.analogy("king", "man", "woman")
    assert found[0].word == "queen"
    assert [neighbour.similarity for neighbour in found] == sorted((n.similarity for n in found), reverse=True)
    assert {neighbour.word for neighbour in found} == {"queen", "Paris", "나라"}


def test_the_nearest_word_comes_first_without_the_word_itself(royal):
    found = royal.similar("king", count=2)
    assert [neighbour.word for neighbour in found] == ["man", "queen"]
    assert found[0].similarity == pytest.approx(2 / np.sqrt(6))


def test_an_unknown_word_is_one_clear_error(royal):
    with pytest.raises(InputError, match=r"^vectors: 'King' is not in the vocabulary of 6 words\. 'king' is in it\.$"):
        royal.similar("King")
    with pytest.raises(InputError, match="count is 0"):
        royal.similar("king", count=0)


def test_a_word_in_another_unicode_form_is_found(royal):
    assert np.array_equal(royal.vector("\u1102\u1161라"), royal.vector("나라"))
    assert royal.similar("ki\u200bng", count=1)[0].word == "man"
    decomposed = StaticVectors(["cafe\u0301"], np.ones((1, 2), np.float32))
    assert decomposed.vector("cafe\u0301") is not None


def test_lower_case_is_tried_only_when_asked(royal):
    lower = StaticVectors(royal.words, royal.matrix, lower_unknown=True)
    assert royal.vector("KING") is None
    assert lower.similar("KING", 1)[0].word == "man"
    assert lower.vector("paris") is None


def test_it_encodes_sentences_as_the_probes_ask(royal):
    sentences = [["man", "none", "나라"], []]
    first, second = encode(royal, sentences)
    assert (first.shape, first.dtype, second.shape) == ((1, 3, 4), np.float32, (1, 0, 4))
    np.testing.assert_array_equal(first[0, 0], royal.matrix[0])
    np.testing.assert_array_equal(first[0, 1], 0)


def test_a_probe_takes_it_and_sees_no_senses(royal):
    occurrences = [Occurrence(["king", "man"], 0, "king", sense) for sense in ("a", "a", "b", "b")]
    assert evaluate(royal, occurrences).layers[0] == pytest.approx(100 / 3)  # a lot drawn among equals


def test_ngrams_stand_in_for_an_unknown_word(royal):
    subwords = Subwords(np.arange(40, dtype=np.float32).reshape(10, 4), 3, 6)
    with_ngrams = StaticVectors(royal.words, royal.matrix, subwords=subwords)
    np.testing.assert_array_equal(with_ngrams.vector("king"), royal.vector("king"))
    assert with_ngrams.vector("kingdom") is not None
    assert with_ngrams.vector("") is None  # "<>" is too short for an n-gram


@pytest.mark.parametrize(
    ("words", "message"), [(("a",), "1 words need an array"), (("a", "a"), "1 words occur more than once")]
)
def test_words_and_vectors_that_do_not_fit_are_refused(words, message):
    with pytest.raises(InputError, match=message):
        StaticVectors(words, np.zeros((2, 3), dtype=np.float32))
