"""Training: every trainer learns shared contexts, one worker is reproducible, and invalid settings are errors."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from pyelmo.errors import ConfigError, FormatError, InputError
from pyelmo.vectors.train import VectorSettings, train

pytest.importorskip("gensim")
SMALL = {"dim": 12, "window": 3, "epochs": 8, "lr": 0.05, "sample": 0, "buckets": 1000}
TRAINERS = {
    "skip-gram, negative sampling": {},
    "skip-gram, hierarchical softmax": {"loss": "hierarchical"},
    "CBOW, negative sampling": {"model": "cbow"},
    "CBOW, hierarchical softmax": {"model": "cbow", "loss": "hierarchical"},
    "fastText": {"subwords": True},
    "fastText by CBOW": {"subwords": True, "model": "cbow"},
}


@pytest.mark.parametrize("name", TRAINERS)
def test_every_trainer_learns_which_words_share_their_contexts(name, corpus):
    vectors = train(corpus, VectorSettings(**SMALL, **TRAINERS[name]))
    assert {neighbour.word for neighbour in vectors.similar("oil", 2)} == {"gas", "coal"}
    assert "<UNK>" not in vectors.index


def test_one_worker_and_a_seed_give_the_same_bits(corpus):
    for more in ({}, {"subwords": True}):
        runs = [train(corpus, VectorSettings(**SMALL, **more, seed=seed)).matrix for seed in (1, 1, 2)]
        np.testing.assert_array_equal(runs[0], runs[1])
        assert np.abs(runs[0] - runs[2]).max() > 0.01


def test_lower_case_joins_spellings_and_rare_words_are_left_out(corpus):
    vectors = train(corpus, VectorSettings(**SMALL))
    assert {"dog", "Dog"} <= set(vectors.words)
    vectors = train(corpus, VectorSettings(**SMALL, lowercase=True, min_count=300))
    assert "Dog" not in vectors.index
    # the, the full stop, dog and Dog together, and what the four animals do and where
    assert sorted(vectors.words) == sorted(["the", ".", "dog", "eats", "sleeps", "barks", "grass", "meat", "indoors"])


def test_every_word_of_the_corpus_is_read_in_every_epoch(corpus, monkeypatch):
    from pyelmo.corpus.corpus import Corpus
    from pyelmo.vectors import train as module

    monkeypatch.setattr(module, "_BLOCK", 7)  # blocks end within a shard
    monkeypatch.setattr(module, "_LONGEST", 4)  # the sentences have five words
    opened = Corpus.open(corpus)
    text = module._Text(opened, np.array(opened.types, dtype=object), 0, progress=False)
    want = [word for ids in opened.sentences() for word in np.array(opened.types, dtype=object)[ids]]
    for _ in range(2):
        pieces = list(text)
        assert [word for piece in pieces for word in piece] == want
        assert [len(piece) for piece in pieces[:4]] == [4, 1, 4, 1]


def test_a_damaged_corpus_ends_the_run_with_an_error(corpus, tmp_path):
    shutil.copytree(corpus, tmp_path / "copy")
    with open(tmp_path / "copy" / "train-00000.bin", "r+b") as file:
        file.write(np.int32(1_000_000).tobytes())
    with pytest.raises(FormatError, match="an id that is not in types.txt"):
        train(tmp_path / "copy", VectorSettings(**SMALL))


def test_a_corpus_without_frequent_words_is_an_error(corpus):
    with pytest.raises(InputError, match="no word occurs 100000 times"):
        train(corpus, VectorSettings(min_count=100_000))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "glove"}, "'glove' with loss 'negative' is unknown. Use a model of skip-gram, cbow"),
        ({"dim": 0}, "dim is 0"),
        ({"ngrams": (4, 3)}, "ngrams"),
        ({"lr": 0}, "lr 0 must be more than 0"),
    ],
)
def test_invalid_settings_are_an_error(settings, message):
    with pytest.raises(ConfigError, match=message):
        VectorSettings(**settings)
