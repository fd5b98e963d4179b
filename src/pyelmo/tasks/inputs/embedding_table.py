"""The static word vectors of a task model: an embedding table whose row 0 is for out-of-vocabulary words.

V words, D static vector.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from pyelmo.arrays import Float32Array
from pyelmo.tasks.harness.settings import WordSettings
from pyelmo.tasks.harness.task import Words
from pyelmo.vectors.static import StaticVectors

FREQUENT = 100_000  # the first words of a vector file, which are the most frequent, are always in the table


def build_embedding_table(
    vectors: StaticVectors | None,
    train: Iterable[Words],
    others: Iterable[Words],
    settings: WordSettings,
    seed: int,
) -> tuple[tuple[str, ...], Tensor]:  # V words, (V + 1, D)
    """Return the words and the rows of the table.

    Vectors of a file come first. New random vectors follow for words of the training set that the file lacks, if there
    is no file or if its vectors are trained.
    """
    counts = Counter(word for words in train for word in words)
    known: dict[str, Float32Array] = {}
    if vectors is not None:
        known = dict(zip(vectors.words[:FREQUENT], vectors.matrix, strict=False))
        for word in dict.fromkeys([*counts, *(word for words in others for word in words)]):
            vector = None if word in known else vectors.vector(word)
            if vector is not None:
                known[word] = vector
    new: list[str] = []
    dim = settings.dim if vectors is None else vectors.dim
    if dim and (vectors is None or settings.tune):
        frequent = [word for word, count in counts.items() if count >= settings.min_count]
        new = [word for word in frequent if word not in known and word.lower() not in known]
    table = np.zeros((1 + len(known) + len(new), dim), dtype=np.float32)
    if known:
        table[1 : len(known) + 1] = list(known.values())
    if new:
        table[len(known) + 1 :] = np.random.default_rng(seed).normal(0, 0.1, (len(new), dim))
    return (*known, *new), torch.from_numpy(table)


class WordIndex(dict[str, int]):
    """The row of a word in the table: of the word itself, else of its lower-case form, else 0."""

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__(zip(words, range(1, 1 + len(words)), strict=True))

    def __missing__(self, word: str) -> int:
        return self.get(word.lower(), 0)
