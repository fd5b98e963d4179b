"""What a probe asks of an encoder, what is near, and the few lines that all readers of labelled files share.

L layers, T tokens of a sentence, D vector, N words of many sentences.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt

from pyelmo.arrays import Float32Array
from pyelmo.embed.embedder import Embedder
from pyelmo.errors import InputError
from pyelmo.text.tokens import split_spans
from pyelmo.vectors.static import unit_vectors

Cosines = npt.NDArray[np.floating]
_WINDOW = 16  # batches whose sentences are sorted by length
DIGITS = 5
ROUNDING = 10**-DIGITS  # cosines of float32 vectors that differ by less do not differ
# Tokenised sentences -> one array (L, T, D) a sentence, in their order: `Embedder.stream` is one.
Encoder = Callable[[Sequence[list[str]]], Iterable[Float32Array]]


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """An encoder that has been read."""

    embed: Encoder
    layers: tuple[str, ...]  # names
    split: str | None = None  # the language by whose rules its own text was split, where that is known
    knows: Callable[[str], bool] | None = None  # which words have a vector, where not all have
    embedder: Embedder | None = None  # of an ELMo, which can be trained further


def encode(embed: Encoder, sentences: Sequence[list[str]]) -> Iterator[Float32Array]:
    """The arrays (L, T, D) of all sentences, each checked against its words."""
    count = 0
    for vectors in embed(sentences):
        if count == len(sentences):
            raise InputError(f"the encoder gave more than {len(sentences)} arrays, one for each sentence")
        words = sentences[count]
        if vectors.ndim != 3 or vectors.shape[1] != len(words):
            raise InputError(
                f"the encoder gave an array {vectors.shape} for sentence {count} of {len(words)} words; "
                f"expected (layers, {len(words)}, size)"
            )
        yield vectors
        count += 1
    if count < len(sentences):
        raise InputError(f"the encoder gave {count} arrays for {len(sentences)} sentences")


def by_length(
    sentences: Sequence[list[str]], batch: int, run: Callable[[list[list[str]]], Sequence[Float32Array]]
) -> Iterator[Float32Array]:
    """`run` over batches of sentences of like length; its arrays come out in the order of the sentences."""
    for start in range(0, len(sentences), _WINDOW * batch):
        window = sentences[start : start + _WINDOW * batch]
        order = sorted(range(len(window)), key=lambda row: len(window[row]))
        found: dict[int, Float32Array] = {}
        for first in range(0, len(window), batch):
            rows = order[first : first + batch]
            found.update(zip(rows, run([window[row] for row in rows]), strict=True))
        for row in range(len(window)):
            yield found.pop(row)


def of_whole_words(embed: Encoder, language: str) -> Encoder:
    """An encoder of given words, a treebank's for example, by a model that reads smaller ones (morphemes).

    A word's vector is the mean of those that begin in it, or that of the one that runs on into it where none does.
    """

    def encoder(sentences: Sequence[list[str]]) -> Iterator[Float32Array]:
        split = [split_spans(" ".join(words), language) for words in sentences]
        arrays = encode(embed, [[span.word for span in spans] for spans in split])
        for words, spans, layers in zip(sentences, split, arrays, strict=True):
            starts = list(accumulate((len(word) + 1 for word in words[:-1]), initial=0))
            owners = np.array([bisect_right(starts, span.start) - 1 for span in spans])  # rising
            firsts = np.searchsorted(owners, np.arange(len(words) + 1))
            pooled = np.empty((len(layers), len(words), layers.shape[2]), dtype=np.float32)
            for place, (first, last) in enumerate(pairwise(firsts)):
                first = first if first < last else max(last - 1, 0)
                pooled[:, place] = layers[:, first : max(last, first + 1)].mean(1, dtype=np.float32)
            yield pooled

    return encoder


@dataclass(frozen=True)
class WordInContext:
    """A word in a sentence: `words[place]` is the word, or holds it (Korean by eojeol: with its particle)."""

    words: list[str]
    place: int


def at_places(embed: Encoder, places: Sequence[WordInContext]) -> Iterator[Float32Array]:
    """The vectors (L, D) of each word that is pointed at."""
    arrays = encode(embed, [place.words for place in places])
    for place, layers in zip(places, arrays, strict=True):
        yield layers[:, place.place]


def pair_cosines(embed: Encoder, pairs: Sequence[tuple[WordInContext, WordInContext]]) -> Cosines:  # (L, N)
    """The cosine of the two words of each pair, by layer, without rounding errors; 0 where one has no vector."""
    vectors = at_places(embed, [place for pair in pairs for place in pair])
    cosines = [np.einsum("ld,ld->l", unit_vectors(first), unit_vectors(next(vectors))) for first in vectors]
    # Equal words have equal vectors in a layer without context: rounding must not rank them.
    return np.round(np.stack(cosines, axis=1).astype(np.float64), DIGITS)


def as_near_as_nearest(cosines: Float32Array) -> npt.NDArray[np.bool_]:
    """Which candidates (the last axis) are the nearest, but for rounding."""
    near: npt.NDArray[np.bool_] = cosines >= cosines.max(-1, keepdims=True) - ROUNDING
    return near
