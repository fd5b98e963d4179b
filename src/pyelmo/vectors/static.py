"""Static word vectors: an embedding table with one vector for each word, from any of the usual file formats.

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
from pyelmo.text.normalisation import normalise
from pyelmo.vectors import store
from pyelmo.vectors.fasttext import Subwords


@dataclass(frozen=True)
class SimilarWord:
    """A word and the cosine of its vector with a query."""

    word: str
    similarity: float


class StaticVectors:
    """Static word vectors. An instance is an encoder with one layer: call it with tokenised sentences.

    Attributes:
        words: The words, in the order of the file.
        matrix: Their vectors, an array (words, vector size).
        index: The row of each word.
        subwords: The n-grams of fastText vectors, which also give out-of-vocabulary words a vector.
        name: The file or folder of the vectors, for errors.

    Example:
        >>> import numpy as np
        >>> from pyelmo.vectors.static import StaticVectors
        >>> vectors = StaticVectors(["king", "queen", "tree"], np.array([[1, 0.2], [0.9, 0.3], [0, 1]], np.float32))
        >>> [similar.word for similar in vectors.similar("king", count=2)]
        ['queen', 'tree']
        >>> [array.shape for array in vectors([["the", "king"]])]
        [(1, 2, 2)]
    """

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
        """Create vectors.

        Args:
            words: Different words.
            matrix: Their vectors, an array (words, vector size).
            subwords: Vectors of n-grams.
            lower_unknown: Look up an out-of-vocabulary word in lower case.
            name: The source of the vectors, for errors.
            trained: The gensim model, which fastText's .bin format needs.

        Raises:
            InputError: The numbers of words and vectors differ, or a word occurs twice.
        """
        if matrix.ndim != 2 or len(words) != len(matrix):
            raise InputError(f"{len(words)} words need an array ({len(words)}, vector size), got {matrix.shape}")
        self.words = tuple(words)
        self.matrix = np.ascontiguousarray(matrix, dtype=np.float32)
        self.index = {word: row for row, word in enumerate(self.words)}
        if len(self.index) != len(self.words):
            raise InputError(f"{len(self.words) - len(self.index)} words occur more than once in the list of words")
        self.subwords, self.lower_unknown, self.name, self.trained = subwords, lower_unknown, name, trained

    def __repr__(self) -> str:
        return f"StaticVectors({self.name!r}, {len(self):,} words, {self.dim} numbers each)"

    @classmethod
    def load(cls, path: str | Path, *, lower_unknown: bool = False) -> StaticVectors:
        """Read a file of vectors. The format is detected from the contents.

        Args:
            path: A file of word2vec (text or binary), GloVe, fastText (.bin or .vec) or gensim.
            lower_unknown: Look up an out-of-vocabulary word in lower case.

        Returns:
            The vectors. Those of a fastText .bin also have vectors for out-of-vocabulary words, from their n-grams.

        Raises:
            NotFoundError: The file does not exist.
            FormatError: The file is damaged, or its format is unknown.
        """
        words, matrix, subwords = store.read(Path(path))
        return cls(words, matrix, subwords=subwords, lower_unknown=lower_unknown, name=str(path))

    def save(self, path: str | Path, *, format: str | None = None, force: bool = False) -> None:
        """Write the vectors to a file.

        Args:
            path: The file.
            format: One of word2vec, word2vec-binary, glove, fasttext, gensim (default: by the ending of the name).
            force: Replace a file that exists.

        Raises:
            InputError: The format is unknown, or cannot hold these vectors.
            OutputError: The file exists and `force` is not set.
        """
        format = store.format_of(Path(path), format, subwords=self.subwords is not None)
        store.write(Path(path), format, self.words, self.matrix, self.trained, force=force)

    @property
    def dim(self) -> int:
        """The size of a vector."""
        return int(self.matrix.shape[1])

    @functools.cached_property
    def unit(self) -> Float32Array:
        """The vectors scaled to length 1, so that products are cosines."""
        return unit_vectors(self.matrix)

    def row(self, word: str) -> int | None:
        """Return the row of a word in `matrix`, or None for an out-of-vocabulary word."""
        row = self.index.get(word)
        if row is None:  # a file may hold words in another Unicode form than pyelmo's
            word = normalise(word)
            row = self.index.get(word)
        return self.index.get(word.lower()) if row is None and self.lower_unknown else row

    def vector(self, word: str) -> Float32Array | None:
        """Return the vector (vector size,) of a word.

        An out-of-vocabulary word has the mean vector of its n-grams, or None without n-grams.
        """
        row = self.row(word)
        if row is not None:
            vector: Float32Array = self.matrix[row]
            return vector
        return self.subwords.vector(normalise(word)) if self.subwords else None

    def __len__(self) -> int:
        return len(self.words)

    def __call__(self, sentences: Sequence[list[str]], /) -> Iterator[Float32Array]:
        """Return one array (1, T, D) for each sentence; a word without a vector is a zero vector."""
        for sentence in sentences:
            vectors = np.zeros((1, len(sentence), self.dim), dtype=np.float32)
            for position, word in enumerate(sentence):
                vector = self.vector(word)
                if vector is not None:
                    vectors[0, position] = vector
            yield vectors

    def similar(self, word: str, count: int = 10) -> list[SimilarWord]:
        """Return the nearest words by cosine, without the word itself.

        Raises:
            InputError: The word has no vector, or `count` is less than 1.
        """
        return self._nearest(self._unit_vector(word), (word,), count)

    def analogy(self, a: str, b: str, c: str, count: int = 10) -> list[SimilarWord]:
        """Return the words nearest to a - b + c (king - man + woman) on unit vectors, without a, b and c (3CosAdd).

        Raises:
            InputError: A word has no vector, or `count` is less than 1.
        """
        return self._nearest(self._unit_vector(a) - self._unit_vector(b) + self._unit_vector(c), (a, b, c), count)

    def _unit_vector(self, word: str) -> Float32Array:
        vector = self.vector(word)
        if vector is None:
            hint = "" if self.lower_unknown or word.lower() not in self.index else f" {word.lower()!r} is in it."
            raise InputError(f"{self.name}: {word!r} is not in the vocabulary of {len(self):,} words.{hint}")
        return unit_vectors(vector)

    def _nearest(self, target: Float32Array, excluded: Sequence[str], count: int) -> list[SimilarWord]:
        if count < 1:
            raise InputError(f"count is {count}; it must be at least 1")
        cosines = self.unit @ unit_vectors(target)
        rows = [row for row in map(self.row, excluded) if row is not None]
        cosines[rows] = -np.inf
        best = np.argsort(-cosines, kind="stable")[: min(count, len(self) - len(set(rows)))]
        return [SimilarWord(self.words[row], float(cosines[row])) for row in best]


def unit_vectors(vectors: Float32Array) -> Float32Array:  # (..., D)
    """Scale vectors to length 1, so that their products are cosines. Zero vectors stay zero."""
    scaled: Float32Array = vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)
    return scaled
