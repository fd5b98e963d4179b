"""Perplexity and scores agree with each other and with the definition."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from support import GOLDEN, make_embedder

import pyelmo
from pyelmo.config import WordConfig
from pyelmo.embed.engines.torch_perplexity import perplexity
from pyelmo.errors import InputError
from pyelmo.formats.trim import trim

from .conftest import SMALL, TEXT

SENTENCES = [line.split() for line in TEXT.read_text().splitlines()[:40]]


def score(model, sentences):
    return pyelmo.Embedder(model).score_sentences(sentences)


@pytest.mark.parametrize("context", ["sentence", "document"])
@pytest.mark.parametrize("batch_size", [2, 32])
def test_an_engine_measures_the_perplexity_of_the_modules(model, context, batch_size, monkeypatch):
    documents = [SENTENCES[:7], SENTENCES[7:8], SENTENCES[8:]]
    monkeypatch.setattr("pyelmo.embed.perplexity.RUN_TOKENS", 100)  # documents in several parts
    wanted = perplexity(model, documents, context=context)
    parts = []
    got = pyelmo.Embedder(model).perplexity(documents, context=context, batch_size=batch_size, advance=parts.append)
    assert (got.forward, got.backward) == pytest.approx((wanted.forward, wanted.backward), rel=1e-5)
    assert (got.words, got.unknown) == (wanted.words, wanted.unknown)
    assert sum(parts) == got.words


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
    share = [0.0 if s.known else math.log(len(vocab)) for s in scores]  # of an unknown word in <UNK>
    assert [s.forward + part for s, part in zip(scores, share, strict=True)] == pytest.approx(ahead[:-1], abs=1e-4)
    assert [s.backward + part for s, part in zip(scores, share, strict=True)] == pytest.approx(behind[1:], abs=1e-4)
    assert (scores.end.forward, scores.end.backward) == pytest.approx((ahead[-1], behind[0]), abs=1e-4)
    assert scores.forward == pytest.approx(sum(ahead) - sum(share), rel=1e-5)
    assert scores.backward == pytest.approx(sum(behind) - sum(share), rel=1e-5)


def test_progress_reaches_every_prediction(model):
    for context in ("document", "sentence"):
        parts: list[int] = []
        result = perplexity(model, [SENTENCES[:7], SENTENCES[7:]], context=context, batch_size=4, advance=parts.append)
        assert sum(parts) == result.words
        assert len(parts) > 1 or context == "document"


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
