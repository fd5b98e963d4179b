"""Text -> word ids, a block at a time: the same words as `split_words` returns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyelmo.corpus.pieces import END_PIECE, SPECIAL_TOKENS, PieceTable
from pyelmo.text.normalisation import normalise
from pyelmo.text.tokens import LANGUAGES, piece_splitter, split_words

RULED = [language for language in LANGUAGES if language != "ko-morph"]
TEXT = st.text(st.characters(exclude_characters=END_PIECE)) | st.text(
    st.sampled_from("ab. ,'’;:()\"!漢かé\u0301😀\ufe0f\t\u3000&/@<S>")
)


def table(language: str) -> PieceTable:
    return PieceTable(piece_splitter(language), cuts_punctuation=True)


@pytest.mark.parametrize("language", RULED)
@given(texts=st.lists(TEXT, max_size=4))
def test_the_words_are_those_of_the_rules(language: str, texts: list[str]) -> None:
    pieces = table(language)
    for text in texts:
        words = [pieces.words[number] for number in pieces.ids(normalise(text, language))]
        assert words == [word if word not in SPECIAL_TOKENS else "<UNK>" for word in split_words(text, language)]


def test_a_word_that_looks_like_a_special_token_is_unknown() -> None:
    pieces = PieceTable(lambda piece: [piece], cuts_punctuation=False)
    assert pieces.ids(f"a <S> </S> <UNK> {END_PIECE} a").tolist() == [3, 2, 2, 2, 1, 3]


def test_pieces_are_distinguished_at_any_length_and_position() -> None:
    words = [f"{letter * length}{number}" for letter in "aé漢😀" for length in (1, 2, 50, 3000) for number in range(50)]
    pieces = PieceTable(lambda piece: [piece], cuts_punctuation=False)
    for text in (" ".join(words), "  ".join(reversed(words))):
        assert [pieces.words[number] for number in pieces.ids(text)] == text.split()
    assert len(pieces.words) == len(SPECIAL_TOKENS) + len(words)


def test_pieces_that_share_a_slot_are_distinguished(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyelmo.corpus.pieces._SLOT_BITS", 1)
    words = [f"word{number % 97}" for number in range(1000)]
    pieces = PieceTable(lambda piece: [piece], cuts_punctuation=False)
    for _ in range(2):
        assert [pieces.words[number] for number in pieces.ids(" ".join(words))] == words


def test_no_text_has_no_ids() -> None:
    assert table("en").ids("").tolist() == []
    assert table("en").ids(" \n ").tolist() == []
