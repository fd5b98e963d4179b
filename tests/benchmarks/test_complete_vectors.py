"""Vectors of words that a file lacks, from their contexts: a word gets nearly the vector of one in the same contexts."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from pyelmo.vectors.static import StaticVectors, unit_vectors

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "tasks"))
import complete_vectors


def test_the_sum_of_a_window_leaves_out_its_middle():
    values = np.arange(20, dtype=np.float32)[:, None] ** 2
    around = complete_vectors.window_sums(values)
    for position in (0, 3, 10, 19):
        others = [*range(max(position - 5, 0), position), *range(position + 1, min(position + 6, 20))]
        assert around[position] == pytest.approx(sum(number**2 for number in others))


def test_a_word_without_a_vector_gets_one_from_its_contexts(monkeypatch):
    monkeypatch.setattr(complete_vectors, "FREQUENT", 20)
    monkeypatch.setattr(complete_vectors, "FITTED", 1)
    random = np.random.default_rng(0)
    centres = random.normal(0, 1, (4, 6))  # four topics; the words of a sentence are of one topic
    topics = np.repeat(np.arange(4), 20)
    matrix = (centres[topics] + random.normal(0, 0.1, (80, 6))).astype(np.float32)
    words = [f"w{number}" for number in range(80)]
    ids = np.concatenate([random.choice(20, 30) + 20 * random.integers(4) for _ in range(600)]).astype(np.int32)
    ids[ids == 7] = 80
    corpus = SimpleNamespace(types=(*words[:7], "W7", *words[8:], "New"), shards=lambda: [ids])
    contexts = complete_vectors.Contexts.empty(StaticVectors(words, matrix), ["new", "never"])
    contexts.add(corpus)
    completed, facts = complete_vectors.complete(contexts)
    assert completed.words == (*words, "new")
    assert np.array_equal(completed.matrix[:80], matrix)
    assert facts["predicted"] == 1
    assert unit_vectors(completed.matrix[80]) @ unit_vectors(matrix[:20].mean(0)) > 0.9


def test_the_share_of_words_without_a_vector_counts_lower_case():
    vectors = StaticVectors(["a", "film"], np.zeros((2, 3), np.float32))
    assert complete_vectors.share_missing(Counter({"A": 2, "film": 1, "dull": 1}), vectors) == 25.0
