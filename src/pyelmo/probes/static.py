"""The neighbours of a word by static vectors: one vector a word, whatever its sentence.

    word2vec's text   a line with the number of words and their size, then a word and its numbers a line
    GloVe's text      the same without the first line

D vector.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pyelmo.errors import FormatError, InputError
from pyelmo.probes.encoder import Vectors, numbered_lines, unit


@dataclass(frozen=True)
class StaticNeighbour:
    cosine: float
    word: str


def static_neighbours(path: str | Path, word: str, count: int = 10) -> list[StaticNeighbour]:
    """The words nearest to a word in a file of vectors, which is read twice and never held in memory."""
    wanted = _vector_of(path, word)
    cosines = (
        (float(unit(vector) @ wanted), other) for other, vector in _vectors(path) if other.lower() != word.lower()
    )
    return [StaticNeighbour(*best) for best in heapq.nlargest(count, cosines)]


def _vector_of(path: str | Path, word: str) -> Vectors:
    """The vector of a word, or else of its small letters."""
    lower = None
    for other, vector in _vectors(path):
        if other == word:
            return unit(vector)
        if other == word.lower():
            lower = unit(vector)
    if lower is None:
        raise InputError(f"{path}: has no vector of {word!r}")
    return lower


def _vectors(path: str | Path) -> Iterator[tuple[str, Vectors]]:
    size = 0
    for number, line in numbered_lines(path):
        word, _, rest = line.rstrip().partition(" ")
        if number == 1 and word.isdigit() and rest.isdigit():
            continue
        try:
            vector = np.array(rest.split(" "), dtype=np.float32)
        except ValueError:
            raise FormatError(f"{path}, line {number}: not a word and numbers: {line[:60]!r}") from None
        size = size or len(vector)
        if len(vector) != size:
            raise FormatError(f"{path}, line {number}: {len(vector)} numbers, {size} in the lines before")
        yield word, vector
