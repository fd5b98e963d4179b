"""Splitting text into sentences and words."""

from __future__ import annotations

import importlib.util
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyelmo.errors import InputError, MissingExtraError, PyelmoError
from pyelmo.text.normalisation import normalise
from pyelmo.text.tokens import LANGUAGES, normal_sentences, piece_splitter, split_sentences, split_spans, split_words

RULED = [language for language in LANGUAGES if language != "ko-morph"]
ANY_TEXT = st.text(st.characters(exclude_categories=[])) | st.text(
    st.sampled_from("aI. ,'’-nt!?\"(3다。한漢かé\u0301😀\u200d\ufe0f\0&:/@_")
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Hello, world!", "Hello , world !"),
        ("I don't think it's Bob's; we'll see.", "I do n't think it 's Bob 's ; we 'll see ."),
        ("They're who I'd said I'm they've", "They 're who I 'd said I 'm they 've"),
        ("Can't won’t DON'T", "Ca n't wo n’t DO N'T"),
        ("Pi is 3.14, about 1,000 times (or so).", "Pi is 3.14 , about 1,000 times ( or so ) ."),
        ("The U.S. army, e.g. Mr. Smith", "The U.S. army , e.g. Mr. Smith"),
        ("a well-known U.S.-led co-operation--again", "a well-known U.S.-led co-operation -- again"),
        (
            "See https://example.org/a_b?c=d, or mail a.b@example.org.",
            "See https://example.org/a_b?c=d , or mail a.b@example.org .",
        ),
        ("O'Brien's rock at AT&T o'clock", "O'Brien 's rock at AT&T o'clock"),
        ("“Quoted,” he said… ($5.00)", "“ Quoted , ” he said … ( $ 5.00 )"),
        ("J. R. Tolkien wrote... So did I.", "J. R. Tolkien wrote ... So did I ."),
        ("the 1990s at 10:30 on 1/2/2003", "the 1990s at 10:30 on 1/2/2003"),
    ],
)
def test_english_words(text: str, words: str) -> None:
    assert split_words(text, "en") == words.split()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("나는 학교에 갔다.", "나는 학교에 갔다 ."),
        ("“안녕,” 그가 말했다!", "“ 안녕 , ” 그가 말했다 !"),
        ("2019년 1,000원과 3.5%", "2019년 1,000원과 3.5 %"),
        ("한국(韓國)은", "한국 ( 韓國 ) 은"),
    ],
)
def test_korean_words(text: str, words: str) -> None:
    assert split_words(text, "ko") == words.split()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Žluťoučký kůň, úpěl!", "Žluťoučký kůň , úpěl !"),
        ("東京に行く。", "東 京 に 行 く 。"),
        ("서울에서 2.5배", "서울에서 2.5배"),
        ("हिन्दी में लिखा।", "हिन्दी में लिखा ।"),
        ("cafe\u0301 l'été", "café l ' été"),
        ("col·lecció 👍🏽👨‍👩‍👧!", "col·lecció 👍🏽 👨‍👩‍👧 !"),
    ],
)
def test_general_words(text: str, words: str) -> None:
    assert split_words(text) == words.split()


@pytest.mark.parametrize("language", RULED)
@given(text=ANY_TEXT)
def test_joined_words_are_the_text_without_white_space(language: str, text: str) -> None:
    words = split_words(text, language)
    assert "".join(words) == "".join(normalise(text, language).split())
    assert all(words)


@pytest.mark.parametrize("language", RULED)
@given(text=ANY_TEXT)
def test_spans_are_the_words_at_their_positions(language: str, text: str) -> None:
    spans = split_spans(text, language)
    assert [span.word for span in spans] == split_words(text, language)
    assert all(normalise(text[span.start : span.end], language) == span.word for span in spans)
    assert all(span.end <= following.start for span, following in pairwise(spans))


@pytest.mark.parametrize("language", RULED)
@given(text=ANY_TEXT)
def test_the_words_of_a_text_are_the_words_of_its_pieces(language: str, text: str) -> None:
    split_piece = piece_splitter(language)
    assert split_words(text, language) == [
        word for piece in normalise(text, language).split() for word in split_piece(piece)
    ]


@pytest.mark.parametrize("language", LANGUAGES)
@given(text=ANY_TEXT)
def test_joined_sentences_are_the_text_without_white_space(language: str, text: str) -> None:
    sentences = split_sentences(text, language)
    visible = normalise(text, language).strip()
    assert "".join("".join(sentences).split()) == ("".join(text.split()) if visible else "")
    assert all(sentence and sentence == sentence.strip() for sentence in sentences)
    normal = normal_sentences(text, language)
    assert "".join("".join(normal).split()) == "".join(visible.split())
    assert len(normal) == len(sentences)


@pytest.mark.parametrize(
    "sentences",
    [
        ["Mr. Smith met Dr. Jones.", "They spoke."],
        ["It cost 3.14 dollars in the U.S. market.", "Why?", "No one knows!"],
        ["He lives in the U.S.", "The rest do not."],
        ['He said "Stop."', "Then he left (at last.)", "“Really?” she asked."],
        ["J. R. R. Tolkien wrote it, e.g. The Hobbit.", "So did I.", "But see No. 5 of it."],
        ["1. This is a list.", "2. It has two lines."],
        ["Wait... what?", "Yes…", "He waited."],
        ["Acme Inc. Chairman Bob left.", "It was Acme Inc.", "He knew."],
    ],
)
def test_english_sentences(sentences: list[str]) -> None:
    assert split_sentences(" ".join(sentences), "en") == sentences


@pytest.mark.parametrize(
    "sentences",
    [["나는 갔다.", "너는 어디에 갔니?", "“좋아요.”", "정말 그럴까…", "3.5배다."], ["1. 서론이다.", "A. 김이 왔다."]],
)
def test_korean_sentences(sentences: list[str]) -> None:
    assert split_sentences(" ".join(sentences), "ko") == sentences


def test_sentences_without_spaces_between_them() -> None:
    assert split_sentences("今日は晴れ。「明日は？」と聞いた。雨だ！") == [
        "今日は晴れ。",
        "「明日は？」",
        "と聞いた。",
        "雨だ！",
    ]


def test_white_space_alone_holds_nothing() -> None:
    assert split_words(" \t\n\u3000") == []
    assert split_sentences(" \t\n\u3000") == []
    assert split_sentences("") == []


@pytest.mark.parametrize("language", RULED)
def test_lone_surrogates_and_nul_pass_through(language: str) -> None:
    assert "".join(split_words("a\ud800b\0 c\udfff.", language)) == "a\ud800b\0c\udfff."
    assert split_sentences("a\ud800.\0 B\udfff.", language)


@pytest.mark.parametrize("language", RULED)
@pytest.mark.parametrize(
    "unit", ["a.", "'", "n't", "a-", "http://", "www.", "@", "a@", "1,", ".", "漢", "'s", "&a", "\u0301", "...) "]
)
def test_long_repetitive_text_is_split_completely(language: str, unit: str) -> None:
    text = unit * (200_000 // len(unit))  # a rule of quadratic time would take minutes for it
    letters = "".join(text.split())
    assert "".join(split_words(text, language)) == letters
    assert "".join("".join(split_sentences(text, language)).split()) == letters


def test_an_unknown_language_names_the_known_ones() -> None:
    for split in (split_words, split_sentences):
        with pytest.raises(InputError, match=r"'xx'.*en, ko, ko-morph, general"):
            split("text", "xx")


def test_morphemes() -> None:
    if importlib.util.find_spec("kiwipiepy") is None:
        with pytest.raises(MissingExtraError, match=r"pyelmo\[ko\]"):
            split_words("나는 갔다.", "ko-morph")
    else:
        text = "나는 학교에 갔다."
        assert split_words(text, "ko-morph")[:2] == ["나", "는"]
        spans = split_spans(text, "ko-morph")
        assert spans[2:4] == [("학교", 3, 5), ("에", 5, 6)]
        assert [span.start for span in spans[4:]] == [7, 7, 8, 9]  # two morphemes in one syllable
    with pytest.raises(PyelmoError, match="split_words"):
        piece_splitter("ko-morph")
