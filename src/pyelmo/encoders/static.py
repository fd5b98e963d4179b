"""Static word vectors (GloVe, word2vec, fastText) as an encoder of one layer: a word has the same vector everywhere."""

from __future__ import annotations

from pathlib import Path

from pyelmo.encoders.base import Loaded
from pyelmo.vectors.static import StaticVectors


def read_vectors(path: Path) -> StaticVectors:
    """The vectors of a file; a word that it lacks is looked up in small letters, as many files have no others."""
    return StaticVectors.load(path, lower_unknown=True)


def read(path: Path) -> Loaded:
    """The encoder of a file of vectors."""
    vectors = read_vectors(path)
    return Loaded(embed=vectors, layers=("word",), knows=lambda word: vectors.vector(word) is not None)
