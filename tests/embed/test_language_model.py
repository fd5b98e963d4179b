"""An embedder as a language model: guesses for a gap, scores of words, perplexity; and how similar words are."""

from __future__ import annotations

import numpy as np
import pytest
from support import TINY, make_embedder

import pyelmo
from pyelmo.config import ModelConfig
from pyelmo.embed.embedder import Embedder
from pyelmo.errors import InputError, ScriptWarning
from pyelmo.formats.pretrained import Pretrained
from pyelmo.model.bilm import BiLM
from pyelmo.text.characters import Bytes
from pyelmo.text.lexicon import Lexicon
from pyelmo.text.marked import read_gap
from pyelmo.text.tokens import split_words
from pyelmo.text.vocabulary import Vocabulary

WORDS = Vocabulary(("<S>", "</S>", "<UNK>", "The", "bank", "of", "the", "river", "."))


@pytest.fixture
def model() -> Embedder:
    bilm = BiLM(ModelConfig(chars=TINY.chars, lstm=TINY.lstm, softmax=len(WORDS))).eval()
    lexicon = Lexicon(Bytes(TINY.chars.max_length), WORDS)
    return Embedder(Pretrained(bilm, lexicon, "test", "test"), language="en")


def test_a_gap_is_filled_from_text_or_from_words(model):
    guesses = model.predict("The bank of the ___.", count=3)
    assert guesses == model.predict(["The", "bank", "of", "the", "___", "."], count=3)
    assert guesses == model.predict("The bank of the ______.", count=3)  # people draw gaps of any length


@pytest.mark.parametrize("sentence", ["no gap", "___ and ___", ["no", "gap"], []])
def test_a_sentence_needs_exactly_one_gap(model, sentence):
    with pytest.raises(InputError, match=r"\d gaps; write exactly one, as ___"):
        model.predict(sentence)


def test_a_gap_inside_a_word_is_refused(model):
    with pytest.raises(InputError, match="the gap is a part of 'www.example.com/___x'"):
        model.predict("See www.example.com/___x .")


def test_both_sides_of_a_gap_are_split_together():
    pytest.importorskip("kiwipiepy")
    before, after = read_gap("그는 ___를 마셨다.", "ko-morph")
    assert (before, after) == (["그", "는"], ["를", "마시", "었", "다", "."])
    assert split_words("를 마셨다.", "ko-morph")[0] != "를"  # what the second half alone would give


def test_a_gap_in_a_script_that_the_model_hardly_saw_gets_a_warning():
    with pytest.warns(ScriptWarning, match="Hangul"):
        pyelmo.load("en").predict("대한민국의 수도는 ___ 이다.", count=1)


def test_a_number_of_guesses_below_one_is_refused(model):
    with pytest.raises(InputError, match="count is 0"):
        model.predict("The ___", count=0)


def test_each_word_has_a_score(model):
    scores = model.score("The bank, the ocean.")
    assert [score.word for score in scores] == ["The", "bank", ",", "the", "ocean", "."]
    assert [score.known for score in scores] == [True, True, False, True, False, True]
    assert (len(model.score([])), model.score([]).forward) == (0, 0)


def test_documents_are_text_or_sentences(model):
    text = "The bank of the river. The river.\nThe bank."
    sentences = ["The bank of the river.", ["The", "river", "."], "The bank."]
    assert model.perplexity([text]) == model.perplexity([sentences])
    assert model.perplexity([text]).words == 6 + 3 + 3 + 3
    alone = model.perplexity([text], context="sentence")
    assert alone.words == 15
    assert alone.forward != model.perplexity([text]).forward
    with pytest.raises(InputError, match=r"perplexity\(\[text\]\)"):
        model.perplexity(text)


def test_predicting_words_does_not_pack_the_weights_again():
    model = pyelmo.load("en")
    engine = model.word_table().engine
    model.score("A bank account .")
    assert model.word_table().engine is engine


def test_a_model_without_a_softmax_is_one_clear_error():
    with pytest.raises(InputError, match="has no softmax"):
        make_embedder().score("A bank")


def cosine(first: np.ndarray, second: np.ndarray) -> float:
    return float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))


@pytest.mark.parametrize("layers", ["top", "average", 1, [0.2, 0.3, 0.5]])
def test_similarity_is_the_cosine_of_marked_words_or_of_sentence_means(model, layers):
    first, second = model.embed(["the river bank", "a bank account"], layers=layers)
    marked = model.similarity("the river *bank*", "a *bank* account", layers=layers)
    assert marked == pytest.approx(cosine(first[2], second[1]), abs=1e-6)
    whole = model.similarity("the river bank", ["a", "bank", "account"], layers=layers)
    assert whole == pytest.approx(cosine(first.mean(0), second.mean(0)), abs=1e-6)


def test_layers_may_be_numbers_of_numpy(model):
    weights = np.array([0.2, 0.3, 0.5])
    for layers, same in ((weights, weights.tolist()), (np.int64(1), 1)):
        (array,), (wanted,) = model.embed(["a bank"], layers=layers), model.embed(["a bank"], layers=same)
        assert np.array_equal(array, wanted)
        pair = ("a *bank*", "the *bank*")
        assert model.similarity(*pair, layers=layers) == model.similarity(*pair, layers=same)


def test_a_sentence_without_words_is_similar_to_nothing(model):
    assert model.similarity("", "a bank") == 0


@pytest.mark.parametrize(
    ("first", "second", "options", "message"),
    [
        ("the *bank*", "a bank", {}, "1 words are marked in the first sentence and 0 in the second"),
        ("the *bank* of a *river*", "a *bank*", {}, "2 words are marked in the first"),
        ("the *bank", "a *bank*", {}, "an asterisk has no partner"),
        ("the *bank*", "a *bank*", {"layers": "all"}, "layers 'all' cannot be compared"),
    ],
)
def test_what_cannot_be_compared_is_one_clear_error(model, first, second, options, message):
    with pytest.raises(InputError, match=message):
        model.similarity(first, second, **options)
