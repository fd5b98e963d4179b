"""Words of the corpus that fine-tuning adds to the softmax of a model."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import pyelmo
from pyelmo.config import WordConfig
from pyelmo.corpus.corpus import Corpus
from pyelmo.errors import InputError
from pyelmo.formats import resolve
from pyelmo.formats.trim import trim
from pyelmo.training.finetune import finetune, with_words
from pyelmo.training.loop import pretrain

from .conftest import SMALL, recipe


def small_vocabulary(corpus, tmp_path):
    """A trained model that predicts the twenty most frequent words of the corpus."""
    pretrain(corpus, tmp_path / "first", recipe(words=4000))
    return trim(resolve.read(tmp_path / "first" / "model"), 20)


def test_added_words_share_the_probability_of_the_unknown_word(corpus, tmp_path):
    old = small_vocabulary(corpus, tmp_path)
    new = with_words(old, Corpus.open(corpus))
    assert new.lexicon.vocab.words[:20] == old.lexicon.vocab.words
    assert set(new.lexicon.vocab.words) == set(Corpus.open(corpus).vocabulary.words)
    vectors = torch.randn(7, old.bilm.config.lstm.dim)
    before, after = (model.bilm.softmax(vectors).exp() for model in (old, new))
    unknown = old.lexicon.vocab.ids["<UNK>"]
    known = [number for number in range(20) if number != unknown]
    torch.testing.assert_close(after[:, known], before[:, known])
    torch.testing.assert_close(after[:, [unknown, *range(20, 100)]].sum(1), before[:, unknown])
    counts = dict(zip(Corpus.open(corpus).types, Corpus.open(corpus).counts, strict=True))
    first, last = new.lexicon.vocab.words[20], new.lexicon.vocab.words[-1]
    torch.testing.assert_close(after[:, 20] / after[:, -1], torch.full((7,), counts[first] / counts[last]))


def test_finetuning_learns_to_predict_added_words(corpus, tmp_path):
    old = small_vocabulary(corpus, tmp_path)
    tuned = finetune(old, corpus, tmp_path / "run", recipe(words=6000, dropout=0.0).training, add_words=True)
    assert tuned.after.average < tuned.before.average
    again = pyelmo.load(tmp_path / "run" / "model")
    assert len(again.lexicon.vocab) == again.config.softmax == 100


def test_words_cannot_be_added_to_a_model_that_reads_words(corpus, tmp_path):
    words = replace(SMALL, chars=None, words=WordConfig(size=1, dim=8), project=False)
    pretrain(corpus, tmp_path / "first", recipe(words, words=400))
    model = resolve.read(tmp_path / "first" / "model")
    with pytest.raises(InputError, match="reads words, so no words can be added to its softmax"):
        finetune(model, corpus, tmp_path / "run", recipe(words=400).training, add_words=True)


def test_words_cannot_be_added_to_an_adaptive_softmax(corpus, tmp_path):
    pretrain(corpus, tmp_path / "first", recipe(replace(SMALL, softmax_cutoffs=(20, 50)), loss="adaptive", words=400))
    model = resolve.read(tmp_path / "first" / "model")
    with pytest.raises(InputError, match="has an adaptive softmax"):
        finetune(model, corpus, tmp_path / "run", recipe(words=400).training, add_words=True)
