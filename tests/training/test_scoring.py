"""The scores of words and sentences, and guesses for a gap."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
import torch

import pyelmo
from pyelmo.config import ModelConfig
from pyelmo.embed import scoring
from pyelmo.embed.engines.torch import TorchSoftmax
from pyelmo.embed.engines.torch_perplexity import perplexity
from pyelmo.embed.scoring import PRIOR_POWER, WordPredictor, log_prior
from pyelmo.errors import InputError
from pyelmo.formats.pretrained import Pretrained
from pyelmo.model.bilm import BiLM
from pyelmo.text.characters import Bytes
from pyelmo.text.lexicon import Lexicon
from pyelmo.text.vocabulary import Vocabulary

from .conftest import SMALL, TEXT

SENTENCES = [line.split() for line in TEXT.read_text().splitlines()[:40]]


def score(model, sentences, **options):
    return pyelmo.Embedder(model).score_sentences(sentences, **options)


def predict(model, before, after, **options):
    return pyelmo.Embedder(model).predict([*before, "___", *after], **options)


def top_layers(model, sentences):
    """The top layer of each sentence with its boundary tokens (T + 2, D), by the torch modules, one by one."""
    embedder = pyelmo.Embedder(model)
    for words in sentences:
        with torch.inference_mode():
            yield embedder.bilm(embedder.batch([words])).values[-1, 0].numpy()


def test_the_engine_scores_as_the_torch_modules_do(model):
    layers = functools.partial(top_layers, model)
    modules = WordPredictor("test", model.config, model.lexicon.vocab, TorchSoftmax(model.bilm), layers)
    for fast, plain in zip(score(model, SENTENCES), scoring.score(modules, SENTENCES), strict=True):
        assert [s.word for s in fast] == [s.word for s in plain]
        assert [s.forward for s in fast] == pytest.approx([s.forward for s in plain], abs=1e-4)
        assert [s.backward for s in fast] == pytest.approx([s.backward for s in plain], abs=1e-4)


def test_a_sentence_has_the_same_scores_alone_and_among_others():
    model = pyelmo.load("en")
    texts = ["The bank of the river .", "He drank tea .", "Snow ."]
    assert list(model.score_sentences(texts)) == [model.score(text) for text in texts]


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_the_top_layers_of_an_engine_are_those_of_the_model(precision):
    model = pyelmo.load("en", precision=precision)
    sentences = [["The", "bank", "of", "the", "river"], [], ["Tea"]]
    for fast, plain in zip(model._top_layers(sentences), top_layers(model.pretrained, sentences), strict=True):
        assert fast.shape == plain.shape
        if precision == "float32":
            np.testing.assert_allclose(fast, plain, atol=1e-4)
        assert (fast * plain).sum() > 0.99 * np.linalg.norm(fast) * np.linalg.norm(plain)


def test_a_long_text_is_scored_in_parts(model, monkeypatch):
    whole = list(score(model, SENTENCES))
    monkeypatch.setattr(scoring, "POSITIONS", 50)
    parts: list[int] = []
    assert list(score(model, SENTENCES, advance=parts.append)) == whole
    assert sum(parts) == sum(map(len, SENTENCES))
    assert len(parts) > 5


def test_a_very_long_sentence_is_scored_whole(model):
    sentence = [word for sentence in SENTENCES * 3 for word in sentence]
    scores = next(pyelmo.Embedder(model).score_sentences([sentence]))
    assert [s.word for s in scores] == sentence
    halves = perplexity(model, [[sentence]], context="sentence")
    share = scores.unknown * math.log(len(model.lexicon.vocab))
    assert scores.forward + share == pytest.approx(-math.log(halves.forward) * halves.words, rel=1e-4)


def test_the_unknown_word_is_shared_among_as_many_words_as_the_vocabulary_has(model):
    vocab = model.lexicon.vocab
    known, unknown = (next(score(model, [["The", "bank", word, "."]]))[2] for word in (vocab.unknown, "zyzzyva"))
    assert known.forward is not None
    assert not unknown.known
    with torch.no_grad():
        plain = float(model.bilm.softmax(_top(model, ["The", "bank"])[2:3, :8])[0, vocab.ids[vocab.unknown]])
    assert unknown.forward == pytest.approx(plain - math.log(len(vocab)), abs=1e-4)
    assert unknown.forward < min(s.forward for s in next(score(model, [["The", "bank", "of"]])) if s.known)


def _top(model, words: list[str]) -> torch.Tensor:
    return torch.from_numpy(next(top_layers(model, [words])))


def test_a_word_that_nobody_knows_does_not_beat_the_right_one():
    model = pyelmo.load("en")
    right, wrong = model.score_sentences(["He drank a cup of coffee .", "He drank a cup of zyzzyvas ."])
    assert right.forward > wrong.forward
    assert right.backward > wrong.backward
    assert wrong.unknown == 1


def test_a_direction_that_is_not_asked_for_is_left_out(model):
    both = next(score(model, [SENTENCES[0]]))
    forward = next(score(model, [SENTENCES[0]], direction="forward"))
    backward = next(score(model, [SENTENCES[0]], direction="backward"))
    assert [s.forward for s in forward] == pytest.approx([s.forward for s in both])
    assert [s.backward for s in backward] == pytest.approx([s.backward for s in both])
    assert (forward.backward, forward.end.backward, backward.forward) == (None, None, None)
    with pytest.raises(InputError, match="direction 'left' is unknown"):
        next(score(model, [["a"]], direction="left"))


def test_a_model_that_reads_forwards_only_has_one_direction():
    config = ModelConfig(chars=SMALL.chars, lstm=SMALL.lstm, bidirectional=False, softmax=9)
    vocab = Vocabulary(("<S>", "</S>", "<UNK>", "The", "bank", "of", "the", "river", "."))
    lexicon = Lexicon(Bytes(SMALL.chars.max_length), vocab)
    embedder = pyelmo.Embedder(Pretrained(BiLM(config).eval(), lexicon, "test", "test"))
    assert embedder.score("The bank").backward is None
    assert embedder.predict("The ___ of")[0].backward is None
    with pytest.raises(InputError, match="reads only forwards"):
        embedder.score("The bank", direction="backward")


def test_a_sentence_without_words_has_no_end(model):
    empty, full = score(model, [[], ["The", "bank"]])
    assert (len(empty), empty.end, empty.forward, empty.backward, empty.unknown) == (0, None, 0, 0, 0)
    assert len(full) == 2
    assert list(score(model, [])) == []


def test_a_guess_divides_by_the_word_s_own_probability(model):
    before, after = ["The", "bank", "of", "the"], ["."]
    guesses = predict(model, before, after, count=50, punctuation=True)
    assert [g.probability for g in guesses] == sorted((g.probability for g in guesses), reverse=True)
    prior = log_prior(len(model.lexicon.vocab))
    combined = [g.forward + g.backward - PRIOR_POWER * float(prior[model.lexicon.vocab[g.word]]) for g in guesses]
    logs = [math.log(g.probability) for g in guesses]
    assert np.diff(combined) == pytest.approx(np.diff(logs), abs=1e-3)
    filled = next(score(model, [[*before, guesses[0].word, *after]]))[4]
    assert (guesses[0].forward, guesses[0].backward) == pytest.approx((filled.forward, filled.backward), abs=1e-4)


def test_rare_words_have_a_smaller_prior_and_all_add_up_to_one():
    prior = log_prior(1000)
    assert (np.diff(prior) < 0).all()
    assert np.exp(prior).sum() == pytest.approx(1, abs=1e-5)


def test_special_tokens_and_punctuation_are_no_guesses_unless_asked_for(model):
    everything = len(model.lexicon.vocab)
    for punctuation in (False, True):
        words = {g.word for g in predict(model, ["The"], ["."], count=everything, punctuation=punctuation)}
        assert not {"<S>", "</S>", "<UNK>"} & words
        assert ("." in words) == punctuation


def test_only_the_forward_direction_is_used_if_nothing_follows(model):
    open_end = predict(model, ["The", "bank"], [])
    assert open_end == predict(model, ["The", "bank"], [], direction="forward")
    assert {g.backward for g in open_end} == {None}
    assert all(g.backward is not None for g in predict(model, [], ["bank", "."]))  # the begin of a sentence
    assert all(g.backward is not None for g in predict(model, ["The", "bank"], [], direction="both"))


@pytest.mark.parametrize(
    ("name", "sentence", "wanted"),
    [
        ("en", "The fish was jumping out of the ___", "water"),
        ("en", "The fish was jumping out of the ___.", "water"),
        ("en", "Paris is the ___ of France.", "capital"),
        ("ko", "대한민국의 수도는 ___이다.", "서울"),
        ("ko", "서울은 대한민국의 ___이다.", "수도"),
    ],
)
def test_the_bundled_models_fill_a_gap_convincingly(name, sentence, wanted):
    if name == "ko":
        pytest.importorskip("kiwipiepy")
    # `ko` has 도시 (city) first in both gaps, then the wanted word: 2048/512, 1,180 million morphemes of several genres.
    first = [guess.word for guess in pyelmo.load(name).predict(sentence, count=3 if name == "ko" else 1)]
    assert wanted in first
