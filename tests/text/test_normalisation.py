"""One normalisation on the way in, and offsets into the original text."""

from __future__ import annotations

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyelmo.text.normalisation import align, normalise, normalise_words
from pyelmo.text.tokens import LANGUAGES, normal_sentences, split_sentences, split_spans, split_words

RULED = [language for language in LANGUAGES if language != "ko-morph"]
# Letters, accents, conjoining jamo (modern, old, finals), syllables, invisible, half-width and full-width characters.
TRICKY = "aé e\u0301\u0323\u0327ㅋ가각\u1100\u110f\u1161\u119e\u11a8\u11ab\u1112\ufeff\u200b\u00ad\ufe0f\u200d\u200c"
TRICKY += "\u2060ﾡￂＡ９！❤😀.'\u0b92\u0bd7\u212b\U000e0100\u3000\n"
ANY_TEXT = st.text(st.characters(exclude_categories=[])) | st.text(st.sampled_from(TRICKY))


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("cafe\u0301", "café"),
        (unicodedata.normalize("NFD", "한국어 각"), "한국어 각"),
        ("\ufeffbank", "bank"),
        ("ri\u00adver\u200b ba\u2060nk", "river bank"),
        ("e\u200b\u0301", "é"),
        ("\u110f\u110f\u110f \u1172\u1172", "ㅋㅋㅋ ㅠㅠ"),
        ("ﾻﾻﾻ ￗￗ", "ㅋㅋㅋ ㅠㅠ"),
        ("\u1100가", "ㄱ가"),
    ],
)
@pytest.mark.parametrize("language", LANGUAGES)
def test_look_alikes_become_one(language, text, normal):
    assert normalise(text, language) == normal
    assert align(text, language)[0] == normal


@pytest.mark.parametrize(
    "text",
    [
        "ascii",
        "ㅋㅋㅋ ㄳ",
        "하 \u11ab다",  # the morpheme of an ending, as Kiwi writes it
        "\u1112\u119e\u11ab",  # old Hangul has no composed syllables
        "（）～，。：＜＞",  # full-width punctuation is in the vocabulary of ko
        "km² ① ㎡ ﬁ",
        "👩\u200d🚒",
    ],
)
@pytest.mark.parametrize("language", LANGUAGES)
def test_other_characters_stay(language, text):
    assert normalise(text, language) == text


@pytest.mark.parametrize(("text", "normal"), [("ＡＢＣ１２ｚ", "ABC12z"), ("❤\ufe0f", "❤"), ("ri\u200cver", "river")])
def test_what_general_text_may_need_is_changed_only_for_the_languages_of_the_bundled_models(text, normal):
    assert [normalise(text, language) for language in LANGUAGES] == [normal, normal, normal, text]


def test_words_of_a_list_keep_their_number():
    words = ["cafe\u0301", "\u200b", "\ufeff\ufeff", "", "bank\u00ad", "\u11ab다"]
    assert normalise_words(words) == ["café", "\u200b", "\ufeff\ufeff", "", "bank", "\u11ab다"]


@pytest.mark.parametrize("language", LANGUAGES)
@given(text=ANY_TEXT)
def test_normal_text_is_nfc_and_stays_as_it_is(language, text):
    normal = normalise(text, language)
    assert unicodedata.is_normalized("NFC", normal)
    assert normalise(normal, language) == normal
    assert align(text, language)[0] == normal


@pytest.mark.parametrize("language", ["general", "ko"])
@given(text=ANY_TEXT)
def test_every_character_keeps_its_place_in_the_text(language, text):
    normal, original = align(text, language)
    places = [original(index, index + 1) for index in range(len(normal))]
    assert all(0 <= start < end <= len(text) for start, end in places)
    assert all(before[0] <= after[0] and before[1] <= after[1] for before, after in pairwise(places))
    if normal:
        assert normalise(text[slice(*original(0, len(normal)))], language) == normal
    assert all(original(index, index)[0] <= len(text) for index in range(len(normal) + 1))


@pytest.mark.parametrize("language", RULED)
@given(text=ANY_TEXT)
def test_words_have_offsets_into_the_original_text(language, text):
    spans = split_spans(text, language)
    assert all(0 <= span.start < span.end <= len(text) for span in spans)
    assert all(before.start <= after.start and before.end <= after.end for before, after in pairwise(spans))


def test_words_of_decomposed_text_are_found_in_it():
    text = "\ufeff" + unicodedata.normalize("NFD", "Le café, à Paris. Été.")
    spans = split_spans(text, "en")
    assert [span.word for span in spans] == ["Le", "café", ",", "à", "Paris", ".", "Été", "."]
    assert [unicodedata.normalize("NFC", text[span.start : span.end]) for span in spans] == split_words(text, "en")
    assert [unicodedata.normalize("NFC", part) for part in split_sentences(text)] == ["\ufeffLe café, à Paris.", "Été."]
    assert normal_sentences(text, "en") == ["Le café, à Paris.", "Été."]


def test_an_invisible_character_after_a_full_stop_does_not_join_sentences():
    assert split_sentences("It rains.\u200b He left.", "en") == ["It rains.\u200b", "He left."]


@pytest.mark.parametrize("text", ["다리를 건너 시내로 들어갔다.", "그건 됐어! ㅋㅋㅋ", "있엌 café에서"])
def test_morphemes_of_decomposed_text_have_their_syllables_in_it(text):
    pytest.importorskip("kiwipiepy")
    for written in (unicodedata.normalize("NFD", text), "\ufeff" + text.replace(" ", "\u200b \u200b")):
        spans, wanted = split_spans(written, "ko-morph"), split_spans(text, "ko-morph")
        assert [span.word for span in spans] == [span.word for span in wanted]
        for span, normal in zip(spans, wanted, strict=True):
            assert normalise(written[span.start : span.end]) == text[normal.start : normal.end]


@settings(max_examples=50, deadline=None)
@given(text=ANY_TEXT)
def test_morphemes_have_offsets_into_the_original_text(text):
    pytest.importorskip("kiwipiepy")
    assert all(0 <= span.start <= span.end <= len(text) for span in split_spans(text, "ko-morph"))
