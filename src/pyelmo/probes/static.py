"""Static word vectors (GloVe, word2vec, fastText) as an encoder of one layer: a word has the same vector everywhere.

T tokens, D vector.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from pyelmo.probes.encoder import Loaded, Vectors


class WordVectors(Protocol):
    """What static vectors are asked for."""

    @property
    def dim(self) -> int: ...
    def vector(self, word: str) -> Vectors | None: ...  # (D,)


def read_vectors(path: Path) -> WordVectors:
    """The vectors of a file; a word that it lacks is looked up in small letters, as many files have no others."""
    found: WordVectors = importlib.import_module("pyelmo.vectors.static").StaticVectors.load(path, lower_unknown=True)
    return found


def rows(vectors: WordVectors, words: Sequence[str]) -> Vectors:  # (T, D)
    """The vectors of a sentence; zeros for a word that has none."""
    found = np.zeros((len(words), vectors.dim), dtype=np.float32)
    for place, word in enumerate(words):
        vector = vectors.vector(word)
        if vector is not None:
            found[place] = vector
    return found


def read(path: Path) -> Loaded:
    """The encoder of a file of vectors."""
    vectors = read_vectors(path)

    def embed(sentences: Sequence[list[str]]) -> Iterator[Vectors]:
        for sentence in sentences:
            yield rows(vectors, sentence)[None]

    return Loaded(embed=embed, layers=("word",), knows=lambda word: vectors.vector(word) is not None)
