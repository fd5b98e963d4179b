"""Words in their sentences: their vectors, their cosines, and which of several are the nearest.

L layers, N words or pairs of words, D vector.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from pyelmo.arrays import Float32Array
from pyelmo.encoders.base import Encoder, SubstituteVectors, encode
from pyelmo.errors import FormatError, InputError
from pyelmo.text.marked import read_marked
from pyelmo.vectors.static import unit_vectors

Cosines = npt.NDArray[np.floating]
DIGITS = 5
ROUNDING = 10**-DIGITS  # cosines of float32 vectors that differ by less are equal


@dataclass(frozen=True)
class WordInContext:
    """A word in a sentence: `words[position]` is the word, or contains it (a Korean eojeol with its particle).

    `text` is the sentence as it was written, with the character offsets of each word; empty if only words are known.
    """

    words: list[str]
    position: int
    text: str = field(default="", kw_only=True)
    offsets: tuple[tuple[int, int], ...] = field(default=(), kw_only=True)

    def written(self, context: int | None = None) -> tuple[str, str, str]:
        """Return the text before the word, the word and the text after it, with at most `context` words a side."""
        first = 0 if context is None else max(self.position - context, 0)
        last = len(self.words) - 1 if context is None else min(self.position + context, len(self.words) - 1)
        if self.offsets:
            start, end = self.offsets[self.position]
            begin = 0 if context is None else self.offsets[first][0]
            stop = len(self.text) if context is None else max(end, self.offsets[last][1])
            return self.text[begin:start], self.text[start:end], self.text[end:stop]
        before, after = self.words[first : self.position], self.words[self.position + 1 : last + 1]
        return "".join(f"{word} " for word in before), self.words[self.position], "".join(f" {word}" for word in after)


def read_word(sentence: str, language: str, where: str) -> WordInContext:
    """Split a sentence of a list, and find its word between asterisks; `where` is its file and line."""
    try:
        marked = read_marked(sentence, language)
    except InputError as error:
        raise FormatError(f"{where}: {error}") from error
    if len(marked.positions) != 1:
        raise FormatError(f"{where}: expected one word between asterisks, got {sentence[:60]!r}")
    return WordInContext(marked.words, marked.positions[0])


def vectors_in_context(embed: Encoder, occurrences: Sequence[WordInContext]) -> Iterator[Float32Array]:
    """Return the vectors (L, D) of each word."""
    arrays = encode(embed, [occurrence.words for occurrence in occurrences])
    for occurrence, layers in zip(occurrences, arrays, strict=True):
        yield layers[:, occurrence.position]


def substitute_units(substitutes: SubstituteVectors, occurrences: Sequence[WordInContext]) -> Float32Array:
    """Return the substitute vectors of words as one layer more: (1, N, V)."""
    return np.stack(list(substitutes((each.words, each.position) for each in occurrences)))[None]


def pair_cosines(embed: Encoder, pairs: Sequence[tuple[WordInContext, WordInContext]]) -> Cosines:  # (L, N)
    """Return the rounded cosine of each pair of words by layer; it is 0 for a word without a vector."""
    vectors = vectors_in_context(embed, [occurrence for pair in pairs for occurrence in pair])
    cosines = [np.einsum("ld,ld->l", unit_vectors(first), unit_vectors(next(vectors))) for first in vectors]
    # In a layer without context, equal words have equal vectors: rounding errors must not rank them.
    return np.round(np.stack(cosines, axis=1).astype(np.float64), DIGITS)


def substitute_cosines(
    substitutes: SubstituteVectors, pairs: Sequence[tuple[WordInContext, WordInContext]]
) -> Cosines:  # (1, N)
    """Return the rounded cosine of the substitute vectors of each pair of words, as one layer."""
    vectors = substitutes((each.words, each.position) for pair in pairs for each in pair)
    cosines = [float(first @ next(vectors)) for first in vectors]  # of length 1
    return np.round(np.array([cosines]), DIGITS)


def is_nearest(cosines: Float32Array) -> npt.NDArray[np.bool_]:
    """Mark the candidates (last axis) that are as near as the nearest, up to rounding errors."""
    nearest: npt.NDArray[np.bool_] = cosines >= cosines.max(-1, keepdims=True) - ROUNDING
    return nearest
