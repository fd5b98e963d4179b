"""Words given by others, read by a model that splits them further."""

from __future__ import annotations

import numpy as np
import pytest

from pyelmo.encoders.base import encode, pool_morphemes
from pyelmo.errors import InputError

SENTENCES = [["I", "don't", "know", "it's"], ["so"]]  # read as: I do n't know it 's; so


def by_position(sentences):
    """Layer 0 holds the position of a word, layer 1 ten times that."""
    for words in sentences:
        positions = np.arange(len(words), dtype=np.float32)[:, None]
        yield np.stack([positions, 10 * positions])


def test_a_word_has_the_mean_of_the_smaller_words_that_begin_in_it():
    first, second = encode(pool_morphemes(by_position, "en"), SENTENCES)
    assert first[0, :, 0].tolist() == [0, 1.5, 3, 4.5]
    assert first[1, :, 0].tolist() == [0, 15, 30, 45]
    assert second.shape == (2, 1, 1)


def test_a_word_in_which_none_begins_has_the_one_that_runs_into_it(monkeypatch):
    from pyelmo.text.tokens import TokenSpan

    spans = [TokenSpan("ab", 0, 3), TokenSpan("c", 4, 5)]  # "a", "b" read as one word, as some morphemes are
    monkeypatch.setattr("pyelmo.text.tokens.split_spans", lambda text, language: spans)
    (found,) = encode(pool_morphemes(by_position, "ko-morph"), [["a", "b", "c"]])
    assert found[0, :, 0].tolist() == [0, 0, 1]


def test_what_the_encoder_gives_is_checked():
    with pytest.raises(InputError, match="expected"):
        list(encode(pool_morphemes(lambda sentences: [np.zeros((1, 1, 1), np.float32)], "en"), [["don't"]]))
