"""Vocabularies: order, marks, and files that are not what they should be."""

from __future__ import annotations

import pytest

from pyelmo.errors import FormatError
from pyelmo.text.vocabulary import Vocabulary


def test_counts_give_marks_then_falling_counts_then_code_points():
    vocab = Vocabulary.from_counts({"b": 2, "a": 2, "c": 5, "rare": 1}, min_count=2)
    assert vocab.words == ("<S>", "</S>", "<UNK>", "c", "a", "b")
    assert Vocabulary.from_counts({"b": 2, "a": 2, "c": 5}, size=5).words[3:] == ("c", "a")


def test_an_unknown_word_has_the_unknown_mark_s_id():
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
        (b"<S>\n</S>\n<UNK>\na\na\n", "'a' stands at lines 4 and 5"),
        (b"a\nb\n", "the mark '<S>' is missing"),
        (b"<S>\n\xff\n", "not UTF-8 at byte 4"),
    ],
)
def test_a_bad_file_is_one_clear_error(tmp_path, content, message):
    (tmp_path / "vocab.txt").write_bytes(content)
    with pytest.raises(FormatError, match=message) as error:
        Vocabulary.load(tmp_path / "vocab.txt")
    assert "vocab.txt" in str(error.value)
