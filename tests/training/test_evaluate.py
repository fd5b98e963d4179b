"""Perplexity, scores and guesses agree with each other and with the definition."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from support import GOLDEN, make_embedder

import pyelmo
from pyelmo.config import WordConfig
from pyelmo.errors import InputError
from pyelmo.formats.trim import trim
from pyelmo.training.evaluate import perplexity, predict, score
from pyelmo.training.loop import pretrain

from .conftest import SMALL, TEXT, recipe

SENTENCES = [line.split() for line in TEXT.read_text().splitlines()[:40]]


@pytest.fixture(scope="module")
def model(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "run"
    pretrain(corpus, folder, recipe(words=12_000))
    return pyelmo.load(folder / "model").pretrained


@pytest.mark.parametrize("context", ["sentence", "document"])
def test_perplexity_does_not_depend_on_the_batch_size(model, context):
    documents = [SENTENCES[:7], SENTENCES[7:8], SENTENCES[8:]]
    results = {size: perplexity(model, documents, context=context, batch_size=size) for size in (1, 2, 32)}
    for other in (results[2], results[32]):
        assert other.forward == pytest.approx(results[1].forward, rel=1e-6)
        assert other.backward == pytest.approx(results[1].backward, rel=1e-6)
        assert (other.words, other.unknown) == (results[1].words, results[1].unknown)
    assert results[1].words == sum(len(sentence) + 1 for sentence in SENTENCES)


def test_a_sentence_s_perplexity_is_the_definition(model):
    vocab, bilm = model.lexicon.vocab, model.bilm
    sentence = SENTENCES[0]
    embedder = pyelmo.Embedder(model)
    with torch.no_grad():
        top = bilm(embedder.batch([sentence])).values[-1, 0]
        forward, backward = (bilm.softmax(half) for half in top.chunk(2, -1))
    marked = [vocab.begin, *sentence, vocab.end]
    ahead = [float(forward[i, vocab[marked[i + 1]]]) for i in range(len(marked) - 1)]
    behind = [float(backward[i, vocab[marked[i - 1]]]) for i in range(1, len(marked))]
    result = perplexity(model, [[sentence]], context="sentence")
    assert result.forward == pytest.approx(math.exp(-sum(ahead) / len(ahead)), rel=1e-4)
    assert result.backward == pytest.approx(math.exp(-sum(behind) / len(behind)), rel=1e-4)
    scores = next(score(model, [sentence]))
    assert [s.word for s in scores] == sentence
    assert [s.forward for s in scores] == pytest.approx(ahead[:-1], abs=1e-4)
    assert [s.backward for s in scores] == pytest.approx(behind[1:], abs=1e-4)


def test_a_very_long_sentence_is_scored_whole(model):
    sentence = [word for sentence in SENTENCES * 3 for word in sentence]  # longer than what runs at once
    scores = next(score(model, [sentence]))
    assert [s.word for s in scores] == sentence
    halves = perplexity(model, [[sentence]], context="sentence")
    ahead = sum(s.forward for s in scores)
    assert ahead == pytest.approx(-math.log(halves.forward) * halves.words, rel=0.01)  # all but the end token


def test_unknown_words_are_counted(model):
    result = perplexity(model, [[["The", "bank", "zyzzyva", "."]]])
    assert result.unknown == 1
    assert [s.known for s in next(score(model, [["bank", "zyzzyva"]]))] == [True, False]


def test_a_guess_s_directions_are_the_scores_of_that_word(model):
    guesses = predict(model, ["The", "bank", "of", "the"], ["."], count=5)
    assert [g.probability for g in guesses] == sorted((g.probability for g in guesses), reverse=True)
    filled = next(score(model, [["The", "bank", "of", "the", guesses[0].word, "."]]))[4]
    assert guesses[0].forward == pytest.approx(filled.forward, abs=1e-4)
    assert guesses[0].backward == pytest.approx(filled.backward, abs=1e-4)
    assert not {"<S>", "</S>", "<UNK>"} & {g.word for g in guesses}


def test_a_trimmed_model_scores_as_the_whole_one_does_among_the_words_kept(model):
    vocab = model.lexicon.vocab
    words = (*vocab.words[3:], *vocab.words[:3])  # special tokens stay at any position
    moved = replace(model, lexicon=replace(model.lexicon, vocab=replace(vocab, words=words)))
    for whole, kept in (model, range(20)), (moved, [*range(17), 97, 98, 99]):
        small = trim(whole, 20)
        assert (small.config.softmax, len(whole.lexicon.vocab)) == (20, 100)
        assert small.lexicon.vocab.words == tuple(whole.lexicon.vocab.words[i] for i in kept)
        vectors = torch.randn(5, small.config.lstm.dim)
        with torch.no_grad():
            wanted = whole.bilm.softmax(vectors)[:, list(kept)].log_softmax(-1)
            torch.testing.assert_close(small.bilm.softmax(vectors), wanted)
    known = trim(model, 60)
    sentence = list(known.lexicon.vocab.words[3:12])
    shift = [w.forward - k.forward for w, k in zip(*(next(score(m, [sentence])) for m in (model, known)), strict=True)]
    assert all(value < 0 for value in shift)  # what the words left out had is shared among the others
    whole, small = (pyelmo.Embedder(m).embed([sentence])[0] for m in (model, known))
    assert np.array_equal(whole, small)


def test_a_model_that_cannot_be_trimmed_says_why(model):
    for count in (3, 101):
        with pytest.raises(InputError, match=f"cannot keep {count} words; give 4 .* to 100"):
            trim(model, count)
    cases = {
        "has no softmax": SMALL,
        "reads words": replace(SMALL, words=WordConfig(size=9, dim=4), softmax=9),
        "adaptive": replace(SMALL, softmax=9, softmax_cutoffs=(5,)),
        "--vocab FILE": replace(SMALL, softmax=9),
    }
    for message, config in cases.items():
        with pytest.raises(InputError, match=message):
            trim(make_embedder(config).pretrained, 5)


def test_no_text_and_no_softmax_are_one_clear_error(model, clip_model):
    with pytest.raises(InputError, match="no text"):
        perplexity(model, [[]])
    with pytest.raises(InputError, match="has no softmax"):
        perplexity(pyelmo.load(clip_model).pretrained, [SENTENCES])
    with pytest.raises(InputError, match="--vocab"):
        next(score(pyelmo.load(GOLDEN / "bilm-tf-training" / "bilm_chars_skip" / "model.ckpt-180").pretrained, [["a"]]))
    assert next(score(model, [[]])) == []
