"""What could stand in the place of a word: guesses with a connector, their vectors, and cosines of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from support import TINY, make_embedder

from pyelmo.config import ModelConfig
from pyelmo.embed.embedder import Embedder
from pyelmo.embed.scoring import PRIOR_POWER, log_prior
from pyelmo.embed.substitutes import TEMPERATURE
from pyelmo.errors import InputError
from pyelmo.formats.pretrained import Pretrained
from pyelmo.model.bilm import BiLM
from pyelmo.text.characters import Bytes
from pyelmo.text.lexicon import Lexicon
from pyelmo.text.vocabulary import Vocabulary

WORDS = Vocabulary(("<S>", "</S>", "<UNK>", "The", "bank", "of", "the", "river", "."))
SENTENCE = ["The", "bank", "of", "the", "river", "."]


def make_model(language: str = "en") -> Embedder:
    bilm = BiLM(ModelConfig(chars=TINY.chars, lstm=TINY.lstm, softmax=len(WORDS))).eval()
    lexicon = Lexicon(Bytes(TINY.chars.max_length), WORDS)
    return Embedder(Pretrained(bilm, lexicon, "test", "test"), language=language)


@pytest.fixture(scope="module")
def model() -> Embedder:
    return make_model()


def by_predict(model: Embedder) -> dict[str, tuple[float, float]]:
    """Return the log probabilities after "The bank or" and before "or bank of the river ." by `predict`."""
    after = model.predict(["The", "bank", "or", "___"], direction="forward", count=9)
    before = model.predict(["___", "or", *SENTENCE[1:]], direction="backward", count=9)
    backward = {guess.word: guess.backward for guess in before}
    return {guess.word: (guess.forward, backward[guess.word]) for guess in after if guess.word != "bank"}


def test_substitutes_are_guesses_beside_the_word_and_a_connector(model):
    expected = by_predict(model)
    guesses = model.substitutes("The *bank* of the river.")
    assert {guess.word: (guess.forward, guess.backward) for guess in guesses} == expected
    prior = dict(zip(WORDS, log_prior(len(WORDS)), strict=True))
    scores = {word: sum(both) - PRIOR_POWER * prior[word] for word, both in expected.items()}
    assert [guess.word for guess in guesses] == sorted(scores, key=lambda word: -scores[word])
    assert sum(guess.probability for guess in guesses) == pytest.approx(1)


def test_a_vector_has_the_square_roots_of_the_probabilities(model):
    (vector,) = model.substitute_vectors([(SENTENCE, 1)])
    guesses = model.substitutes((SENTENCE, 1))
    assert set(np.flatnonzero(vector)) == {WORDS.ids[guess.word] for guess in guesses}
    warmed = np.array([guess.probability ** (1 / TEMPERATURE) for guess in guesses])
    roots = vector[[WORDS.ids[guess.word] for guess in guesses]]
    assert roots == pytest.approx(np.sqrt(warmed / warmed.sum()), abs=1e-6)
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-6)


def test_the_vector_of_a_place_does_not_depend_on_the_others(model):
    places = [(SENTENCE, position) for position in range(len(SENTENCE))] * 30
    together = list(model.substitute_vectors(places))
    alone = [next(model.substitute_vectors([place])) for place in places[: len(SENTENCE)]]
    for number, vector in enumerate(together):
        assert np.array_equal(vector, alone[number % len(alone)])


def test_without_a_known_connector_the_gap_itself_is_guessed():
    model = make_model("general")
    gap = model.predict("The ___ of the river .", count=9)
    guesses = model.substitutes("The *bank* of the river .")
    assert [guess.word for guess in guesses] == [guess.word for guess in gap if guess.word != "bank"]


def test_a_model_that_reads_only_forwards_guesses_what_follows():
    lstm = TINY.lstm
    config = ModelConfig(chars=TINY.chars, lstm=lstm, softmax=len(WORDS), bidirectional=False)
    model = Embedder(
        Pretrained(BiLM(config).eval(), Lexicon(Bytes(TINY.chars.max_length), WORDS), "t", "t"), language="en"
    )
    guesses = model.substitutes("The *bank* of the river.", count=3)
    assert {guess.backward for guess in guesses} == {None}
    after = model.predict(["The", "bank", "or", "___"], count=9)
    assert [guess.word for guess in guesses] == [guess.word for guess in after if guess.word != "bank"][:3]


def test_similarity_by_substitutes_is_the_overlap_of_two_distributions(model):
    first, second = model.substitute_vectors([(["the", "river", "bank"], 2), (["a", "bank", "account"], 1)])
    cosine = model.similarity("the river *bank*", "a *bank* account", by="substitutes")
    assert cosine == pytest.approx(float(first @ second), abs=1e-6)
    assert 0 < cosine < 1
    assert model.similarity("a *bank*", "a *bank*", by="substitutes") == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("the bank", "a bank"), {"by": "substitutes"}, "0 words are marked in the first sentence and 0 in the second"),
        (("the *bank*", "a *bank*"), {"by": "substitutes", "layers": 1}, "substitutes are of no layer"),
        (("the *bank*", "a *bank*"), {"by": "sense"}, "by='sense' is unknown. Use one of vectors, substitutes"),
    ],
)
def test_what_cannot_be_compared_by_substitutes_is_one_clear_error(model, arguments, options, message):
    with pytest.raises(InputError, match=message):
        model.similarity(*arguments, **options)


@pytest.mark.parametrize("sentence", ["no mark", "*two* *marks*", ""])
def test_exactly_one_word_is_marked(model, sentence):
    with pytest.raises(InputError, match=r"\d words are marked. Mark one"):
        model.substitutes(sentence)


@pytest.mark.parametrize("place", [(["a", "bank"], 2), (["a", "bank"], -1), ("a bank", 1), ([], 0)])
def test_a_place_is_a_word_of_a_list(model, place):
    with pytest.raises(InputError, match="expected a list of words and the position of one of them"):
        model.substitutes(place)
    with pytest.raises(InputError, match="expected a list of words"):
        next(model.substitute_vectors([place]))


def test_a_number_below_one_and_a_model_without_a_softmax_are_refused(model):
    with pytest.raises(InputError, match="count is 0"):
        model.substitutes("the *bank*", count=0)
    with pytest.raises(InputError, match="has no softmax"):
        make_embedder().substitutes("a *bank*")
    assert not make_embedder().predicts_words
    assert math.isclose(sum(guess.probability for guess in model.substitutes("*bank*")), 1)
