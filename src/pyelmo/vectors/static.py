"""Static vectors: a table of words and vectors, from any of the usual files.

N words, D vector, T tokens of a sentence.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pyelmo.arrays import Float32Array
from pyelmo.errors import InputError
from pyelmo.vectors import store
from pyelmo.vectors.fasttext import Subwords


@dataclass(frozen=True)
class SimilarWord:
    word: str
    similarity: float  # cosine


class StaticVectors:
    """Words and their vectors. Called with tokenised sentences it is an encoder of one layer, as the probes ask for."""

    def __init__(
        self,
        words: Sequence[str],
        matrix: Float32Array,  # (N, D)
        *,
        subwords: Subwords | None = None,
        lower_unknown: bool = False,
        name: str = "vectors",
        trained: Any = None,
    ) -> None:
        """`lower_unknown`: look an unknown word up in lower case; `trained`: gensim's model, for a .bin."""
        if matrix.ndim != 2 or len(words) != len(matrix):
            raise InputError(f"{len(words)} words need as many vectors, got an array {matrix.shape}")
        self.words = tuple(words)
        self.matrix = np.ascontiguousarray(matrix, dtype=np.float32)
        self.index = {word: row for row, word in enumerate(self.words)}
        if len(self.index) != len(self.words):
            raise InputError(f"{len(self.words) - len(self.index)} words stand twice in the list of words")
        self.subwords, self.lower_unknown, self.name, self.trained = subwords, lower_unknown, name, trained

    @classmethod
    def load(cls, path: str | Path, *, lower_unknown: bool = False) -> StaticVectors:
        """Read word2vec's text or binary, GloVe's text, fastText's .bin or .vec, or gensim's own file.

        The format is found from the file. A fastText .bin also gives words that it does not list vectors, by n-grams.
        """
        words, matrix, subwords = store.read(Path(path))
        return cls(words, matrix, subwords=subwords, lower_unknown=lower_unknown, name=str(path))

    def save(self, path: str | Path, *, format: str | None = None, force: bool = False) -> None:
        """Write the vectors in one of `store.FORMATS`; without one the name's end decides."""
        found = store.format_of(Path(path), format, subwords=self.subwords is not None)
        store.write(Path(path), found, self.words, self.matrix, self.trained, force=force)

    @property
    def dim(self) -> int:
        return int(self.matrix.shape[1])

    @functools.cached_property
    def unit(self) -> Float32Array:
        """The vectors at length 1, so that products are cosines."""
        return unit_vectors(self.matrix)

    def row(self, word: str) -> int | None:
        """Where a word stands in the table."""
        row = self.index.get(word)
        return self.index.get(word.lower()) if row is None and self.lower_unknown else row

    def vector(self, word: str) -> Float32Array | None:
        """The vector (D,) of a word: its row, else that of its n-grams where they are known."""
        row = self.row(word)
        if row is not None:
            found: Float32Array = self.matrix[row]
            return found
        return self.subwords.vector(word) if self.subwords else None

    def __len__(self) -> int:
        return len(self.words)

    def __call__(self, sentences: Sequence[list[str]]) -> Iterator[Float32Array]:
        """One array (1, T, D) a sentence; a word without a vector is 0."""
        for sentence in sentences:
            vectors = np.zeros((1, len(sentence), self.dim), dtype=np.float32)
            for place, word in enumerate(sentence):
                found = self.vector(word)
                if found is not None:
                    vectors[0, place] = found
            yield vectors

    def similar(self, word: str, count: int = 10) -> list[SimilarWord]:
        """The nearest words by cosine, without the word itself."""
        return self._nearest(self._known(word), (word,), count)

    def analogy(self, a: str, b: str, c: str, count: int = 10) -> list[SimilarWord]:
        """a - b + c (king - man + woman), on vectors of length 1; the three are no answers (3CosAdd)."""
        return self._nearest(self._known(a) - self._known(b) + self._known(c), (a, b, c), count)

    def _known(self, word: str) -> Float32Array:
        vector = self.vector(word)
        if vector is None:
            hint = "" if self.lower_unknown or word.lower() not in self.index else f" {word.lower()!r} is."
            raise InputError(f"{self.name}: {word!r} is not among its {len(self):,} words.{hint}")
        return unit_vectors(vector)

    def _nearest(self, target: Float32Array, without: Sequence[str], count: int) -> list[SimilarWord]:
        if count < 1:
            raise InputError(f"count is {count}; it must be at least 1")
        cosines = self.unit @ unit_vectors(target)
        rows = [row for row in map(self.row, without) if row is not None]
        cosines[rows] = -np.inf
        best = np.argsort(-cosines, kind="stable")[: min(count, len(self) - len(set(rows)))]
        return [SimilarWord(self.words[row], float(cosines[row])) for row in best]


def unit_vectors(vectors: Float32Array) -> Float32Array:  # (..., D)
    """Scale vectors to length 1, so that their products are cosines; zeros stay zeros."""
    scaled: Float32Array = vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)
    return scaled
