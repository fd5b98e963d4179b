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
    def __contains__(self, word: object) -> bool: ...
    def __getitem__(self, word: str) -> Vectors: ...  # (D,)


class StaticWords:
    """Static vectors by word: as it is written, else in small letters, as many lists have no others."""

    def __init__(self, vectors: WordVectors) -> None:
        self.vectors = vectors
        self._nothing = np.zeros(vectors.dim, dtype=np.float32)

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and (word in self.vectors or word.lower() in self.vectors)

    def rows(self, words: Sequence[str]) -> Vectors:  # (T, D)
        """Zeros for a word that has no vector."""
        rows = np.empty((len(words), self.vectors.dim), dtype=np.float32)
        for place, word in enumerate(words):
            small = word.lower()
            known = word if word in self.vectors else small if small in self.vectors else None
            rows[place] = self._nothing if known is None else self.vectors[known]
        return rows


def read(path: Path) -> Loaded:
    words = read_words(path)

    def embed(sentences: Sequence[list[str]]) -> Iterator[Vectors]:
        for sentence in sentences:
            yield words.rows(sentence)[None]

    split = getattr(words.vectors, "language", None)
    return Loaded(embed=embed, layers=("word",), split=split, knows=words.__contains__)


def read_words(path: Path) -> StaticWords:
    return StaticWords(read_vectors(path))


def read_vectors(path: Path) -> WordVectors:
    """The one place that asks for the reader of word vectors."""
    vectors: WordVectors = importlib.import_module("pyelmo.vectors").load(path)
    return vectors
