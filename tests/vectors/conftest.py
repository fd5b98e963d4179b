"""A corpus in which some words share their contexts, and vectors whose answers are known."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pyelmo.corpus.corpus import PrepareSettings
from pyelmo.corpus.prepare import prepare
from pyelmo.vectors.static import StaticVectors

# Four corners of a square: king - man + woman is queen exactly; the last two point elsewhere.
WORDS = ("man", "woman", "king", "queen", "Paris", "나라")
MATRIX = np.array(
    [[1, 0, 0, 1], [0, 1, 0, 1], [1, 0, 1, 1], [0, 1, 1, 1], [-1, -1, 0.1, 0], [0, 0, -1, -1 / 3]], dtype=np.float32
)


@pytest.fixture
def royal() -> StaticVectors:
    return StaticVectors(WORDS, MATRIX)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """Animals eat and sleep, fuels burn and heat; sometimes in upper case."""
    folder = tmp_path_factory.mktemp("vectors")
    animals = itertools.product(("cat", "dog", "Dog", "cow"), ("eats", "sleeps", "barks"), ("grass", "meat", "indoors"))
    fuels = itertools.product(("oil", "gas", "coal"), ("burns", "heats", "costs"), ("engines", "money", "houses"))
    lines = [f"the {' '.join(words)} ." for words in (*animals, *fuels)]
    order = np.random.default_rng(0).permutation(len(lines) * 30) % len(lines)
    (folder / "text.txt").write_text("".join(f"{lines[i]}\n" for i in order), "utf-8")
    prepare(PrepareSettings(inputs=[folder / "text.txt"], tokenised=True, valid_fraction=0), folder / "corpus")
    return folder / "corpus"
