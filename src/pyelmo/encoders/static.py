"""Static word vectors (GloVe, word2vec, fastText) as an encoder of one layer: a word has the same vector everywhere."""

from __future__ import annotations

from pathlib import Path

from pyelmo.encoders.base import LoadedEncoder
from pyelmo.vectors.static import StaticVectors


def read_vectors(path: Path) -> StaticVectors:
    """Read vectors; an out-of-vocabulary word is looked up in lower case, because many files hold no upper case."""
    return StaticVectors.load(path, lower_unknown=True)


def read(path: Path) -> LoadedEncoder:
    """Read a file of static vectors."""
    vectors = read_vectors(path)
    return LoadedEncoder(embed=vectors, layers=("word",), knows=lambda word: vectors.vector(word) is not None)
