"""Occurrences on a plane: all occurrences of a word with their groups, and two axes for all occurrences of an index.

N occurrences, D vector.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pyelmo.arrays import Float32Array, Float64Array
from pyelmo.errors import InputError
from pyelmo.neighbours.search import Index, Neighbour
from pyelmo.probes.clusters import cluster
from pyelmo.probes.explore import project
from pyelmo.text.tokens import split_words

SHOWN = 400  # occurrences of a word on its map
FITTED = 20_000  # occurrences that the axes of a whole index are computed from
AROUND = 5  # words on each side that describe a group
TYPICAL = 4  # words that describe a group


@dataclass(frozen=True)
class WordMap:
    """Occurrences of a word: points (N, 2), the group of each, and the words that are typical of each group."""

    occurrences: list[Neighbour]
    points: npt.NDArray[np.floating]
    shown: float  # the share of the variance in the two dimensions
    groups: list[int]
    typical: list[list[str]]
    total: int  # occurrences in the index; more than SHOWN are thinned out evenly


def map_word(index: Index, word: str, *, frequent: Collection[str] = ()) -> WordMap:
    """Return the map of all occurrences of a word; words that are `frequent` are typical of no group."""
    rows = index.rows(word)
    if not len(rows):
        raise InputError(f"the index holds no occurrence of {word!r}. Choose a word of the text.")
    chosen = rows[np.linspace(0, len(rows) - 1, min(len(rows), SHOWN)).astype(np.int64)]
    vectors = index.vectors(chosen)
    points, shown = project(vectors)
    groups = cluster(vectors).tolist()
    occurrences = [index.occurrence(row) for row in chosen.tolist()]
    language = index.manifest.get("language") or "general"
    return WordMap(occurrences, points, shown, groups, _typical(occurrences, groups, language, frequent), len(rows))


def _typical(
    occurrences: Sequence[Neighbour], groups: Sequence[int], language: str, frequent: Collection[str]
) -> list[list[str]]:
    """Return for each group the words around its occurrences that are more frequent there than in the others."""
    around: list[Counter[str]] = [Counter() for _ in range(max(groups) + 1)]
    for occurrence, group in zip(occurrences, groups, strict=True):
        before = split_words(occurrence.sentence[: occurrence.start], language)[-AROUND:]
        after = split_words(occurrence.sentence[occurrence.end :], language)[:AROUND]
        words = {word.casefold() for word in (*before, *after) if len(word) > 1 and any(map(str.isalpha, word))}
        around[group].update(words - {occurrence.word.casefold(), *frequent})
    sizes = Counter(groups)
    everywhere = sum(around, Counter[str]())

    def weight(word: str, group: int) -> float:
        share = around[group][word] / sizes[group]
        others = (everywhere[word] - around[group][word]) / max(len(groups) - sizes[group], 1)
        return share - others

    return [
        [word for word in sorted(words, key=lambda word: (-weight(word, group), word)) if words[word] > 1][:TYPICAL]
        for group, words in enumerate(around)
    ]


def fit_axes(index: Index) -> tuple[Float64Array, Float64Array]:
    """Return the mean (D,) and the first two principal components (D, 2) of the occurrences of an index."""
    rows = np.linspace(0, len(index) - 1, min(len(index), FITTED)).astype(np.int64)
    vectors: Float32Array = index.vectors(rows)
    mean = vectors.mean(0, dtype=np.float64)
    centred = vectors - mean
    _, directions = np.linalg.eigh(centred.T @ centred)
    axes = directions[:, :-3:-1]  # the largest eigenvalues are last
    largest = np.abs(axes).argmax(0)
    return mean, axes * np.sign(axes[largest, [0, 1]])
