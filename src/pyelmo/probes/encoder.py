"""What a probe asks of an encoder, what is near, and the few lines that all readers of labelled files share.

L layers, T tokens of a sentence, D vector, N words of many sentences.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt

from pyelmo.errors import InputError
from pyelmo.text.lines import existing as existing  # the readers of labelled files take both from here
from pyelmo.text.lines import numbered_lines as numbered_lines
from pyelmo.text.tokens import split_spans

Vectors = npt.NDArray[np.float32]
ROUNDING = 1e-5  # cosines of float32 vectors that differ by less do not differ
# Tokenised sentences -> one array (L, T, D) a sentence, in their order: `Embedder.stream` is one.
Encoder = Callable[[Sequence[list[str]]], Iterable[Vectors]]


def encode(embed: Encoder, sentences: Sequence[list[str]]) -> Iterator[Vectors]:
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


def of_whole_words(embed: Encoder, language: str) -> Encoder:
    """An encoder of given words, a treebank's for example, by a model that reads smaller ones (morphemes).

    A word's vector is the mean of those that begin in it, or that of the one that runs on into it where none does.
    """

    def encoder(sentences: Sequence[list[str]]) -> Iterator[Vectors]:
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


def unit(vectors: Vectors) -> Vectors:  # (..., D)
    """The vectors at length 1, so that products are cosines."""
    scaled: Vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)
    return scaled


def as_near_as_nearest(cosines: Vectors) -> npt.NDArray[np.bool_]:
    """Which candidates (the last axis) are the nearest, but for rounding."""
    near: npt.NDArray[np.bool_] = cosines >= cosines.max(-1, keepdims=True) - ROUNDING
    return near
