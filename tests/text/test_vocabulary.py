"""Vocabularies: order, special tokens, and invalid files."""

from __future__ import annotations

import pytest

from pyelmo.errors import FormatError
from pyelmo.text.vocabulary import Vocabulary


def test_special_tokens_precede_words_by_falling_count_and_code_point():
    vocab = Vocabulary.from_counts({"b": 2, "a": 2, "c": 5, "rare": 1}, min_count=2)
    assert vocab.words == ("<S>", "</S>", "<UNK>", "c", "a", "b")
    assert Vocabulary.from_counts({"b": 2, "a": 2, "c": 5}, size=5).words[3:] == ("c", "a")


def test_an_out_of_vocabulary_word_has_the_id_of_unknown():
    vocab = Vocabulary(("<S>", "</S>", "<UNK>", "word"))
    assert vocab["nothing"] == 2
    assert vocab.encode(["word", "nothing", "<S>"]).tolist() == [3, 2, 0]


def test_a_file_keeps_every_word_whatever_its_characters(tmp_path):
    vocab = Vocabulary(("<S>", "</S>", "<UNK>", "a b", "\u2028", "\x85", "\u00a0", "한국"))
    vocab.save(tmp_path / "vocab.txt")
    assert Vocabulary.load(tmp_path / "vocab.txt") == vocab


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<S>\n</S>\n<UNK>\na\na\n", "'a' occurs on lines 4 and 5"),
        (b"a\nb\n", "the special token '<S>' is missing"),
        (b"<S>\n\xff\n", "not UTF-8 at byte 4"),
    ],
)
def test_a_bad_file_is_one_clear_error(tmp_path, content, message):
    (tmp_path / "vocab.txt").write_bytes(content)
    with pytest.raises(FormatError, match=message) as error:
        Vocabulary.load(tmp_path / "vocab.txt")
    assert "vocab.txt" in str(error.value)
