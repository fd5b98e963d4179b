"""Every word has a row of valid symbol ids."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyelmo.errors import FormatError
from pyelmo.text.characters import BEGIN_WORD, END_WORD, JAMO_SYMBOLS, PADDING, Bytes, Dictionary, Jamo, encode_rows

SPECIAL = ("<bow>", "<eow>", "<bos>", "<eos>", "<oov>", "<pad>")
SMALL = Dictionary((*SPECIAL, "a", "b", "가"), max_length=10)
any_text = st.text(st.characters(), max_size=60)  # lone surrogates and NUL included


@given(any_text, st.integers(3, 60))
def test_every_word_has_a_full_row_of_valid_ids(word, length):
    for alphabet in (Bytes(length), Jamo(length), Dictionary(SMALL.symbols, length)):
        row = alphabet.row(word)
        assert len(row) == length
        assert all(0 <= symbol < alphabet.size for symbol in row)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12))
def test_bytes_are_the_utf8_bytes_between_begin_and_end_of_word(word):
    row = Bytes(64).row(word)
    if word not in ("<S>", "</S>"):
        inner = row[1 : row.index(END_WORD)]
        assert bytes(symbol - 1 for symbol in inner).decode() == word
        assert row[0] == BEGIN_WORD
        assert set(row[len(inner) + 2 :]) <= {PADDING}


def test_a_long_word_is_cut_at_max_length_minus_two():
    assert Bytes(50).row("x" * 10_000) == Bytes(50).row("x" * 48)
    assert Bytes(50).row("x" * 48) != Bytes(50).row("x" * 47)
    assert Jamo(10).row("한" * 10_000) == Jamo(10).row("한" * 3)
    assert SMALL.row("a" * 10_000) == SMALL.row("a" * 8)


def test_boundary_tokens_have_their_own_rows():
    assert Bytes().row("<S>")[:4] == [259, 257, 260, 261]
    assert Bytes().row("</S>")[:4] == [259, 258, 260, 261]
    assert Jamo().row("<S>")[:4] == [259, 257, 260, 261]


def test_jamo_are_the_letters_of_a_syllable():
    assert Jamo(8).row("한글")[1:7] == Jamo(8).row(unicodedata.normalize("NFD", "한글"))[1:7]
    assert len(set(Jamo(8).row("가각")[1:6])) == 3  # ㄱ ㅏ, ㄱ ㅏ, and a final ㄱ that is not the initial one
    assert Jamo(5).row("ㅋ")[1] >= JAMO_SYMBOLS - 51
    assert Jamo(50).row("abc") == Bytes(50).row("abc")


@given(st.text(st.characters(min_codepoint=0xAC00, max_codepoint=0xD7A3), min_size=1, max_size=16))
def test_jamo_keep_composed_and_decomposed_hangul_equal_and_different_words_apart(word):
    assert Jamo(60).row(word) == Jamo(60).row(unicodedata.normalize("NFD", word))
    assert Jamo(60).row(word) != Jamo(60).row(word + "가")


def test_dictionary_words_begin_with_the_end_symbol_as_in_training():
    ids = {symbol: index for index, symbol in enumerate(SMALL.symbols)}
    assert SMALL.row("ab?") == [ids["<eow>"], ids["a"], ids["b"], ids["<oov>"], ids["<bow>"]] + [ids["<pad>"]] * 5
    assert SMALL.row("<bos>")[:3] == [ids["<eow>"], ids["<bos>"], ids["<bow>"]]
    with pytest.raises(FormatError, match="<pad>"):
        Dictionary(("a", *SPECIAL[:-1]))


@given(st.lists(any_text | st.sampled_from(["<S>", "</S>", "", "é" * 30]), max_size=9), st.integers(3, 60))
def test_many_words_at_once_have_the_rows_of_each_word(words, length):
    for alphabet in (Bytes(length), Jamo(length), Dictionary(SMALL.symbols, length)):
        assert encode_rows(alphabet, words).tolist() == [alphabet.row(word) for word in words]


def test_no_words_make_an_empty_array():
    assert encode_rows(Bytes(), []).shape == (0, 50)
