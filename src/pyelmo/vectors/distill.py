"""Static vectors from ELMo: the mean contextual vector of each frequent word over a sample of its occurrences.

    corpus --> sentences in a random order --> those with a word that still needs occurrences --> embedder --> means

N words, L layers, T tokens of a sentence, D vector.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pyelmo.arrays import Float32Array
from pyelmo.corpus.corpus import Corpus
from pyelmo.embed.embedder import Embedder
from pyelmo.embed.layers import LayerChoice
from pyelmo.errors import ConfigError, FormatError, InputError
from pyelmo.vectors.static import StaticVectors

_SPECIAL = 3  # <S>, </S> and <UNK> are not words


@dataclass(frozen=True, kw_only=True)
class DistillSettings:
    """Which words get a vector, and from how many of their occurrences."""

    occurrences: int = 20  # of each word, drawn at random; a word with fewer uses all of them
    vocab_size: int = 20_000  # the most frequent words of the corpus
    min_count: int = 5  # rarer words have no vector
    seed: int = 1

    def __post_init__(self) -> None:
        for name in ("occurrences", "vocab_size", "min_count"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.seed < 0:
            raise ConfigError(f"seed is {self.seed}; it must be at least 0")


def distill(
    embedder: Embedder,
    folder: str | Path,
    settings: DistillSettings | None = None,
    *,
    layers: LayerChoice = 1,
    progress: bool = False,
) -> StaticVectors:
    """Return the mean contextual vectors of the most frequent words of a prepared corpus.

    The same model, corpus and settings give the same vectors.

    Args:
        embedder: The model.
        folder: A corpus that `elmo prepare` wrote, with the model's language.
        settings: The number of words and of their occurrences.
        layers: "top", "average", the number of a layer (1, the first LSTM, is best at word similarity and analogies),
            or the weights of a mix.
        progress: Show a progress bar.

    Returns:
        The vectors, the most frequent word first.

    Raises:
        InputError: `layers` is "all", or no word occurs `min_count` times.
        FormatError: The corpus is damaged.
    """
    if isinstance(layers, str) and layers == "all":
        raise InputError("static vectors have one layer: 'top', 'average', the number of a layer, or weights of a mix")
    words, means = mean_vectors(embedder, folder, settings, layers=layers, progress=progress)
    return StaticVectors(words, means, name=str(folder))


def mean_vectors(
    embedder: Embedder,
    folder: str | Path,
    settings: DistillSettings | None = None,
    *,
    layers: LayerChoice = "all",
    progress: bool = False,
) -> tuple[list[str], Float32Array]:
    """Return the words and their mean vectors (N, D), or (L, N, D) for all layers; see `distill`."""
    from tqdm import tqdm

    settings = settings or DistillSettings()
    corpus = Corpus.open(folder)
    needed = _needed(corpus, settings)
    types = np.array(corpus.types, dtype=object)
    embedded: deque[npt.NDArray[np.int64]] = deque()  # for each sentence at the embedder, its words that count
    total = int(needed.sum())

    def sentences() -> Iterator[list[str]]:
        for ids, counted in _sample(corpus, needed, settings.seed):
            embedded.append(np.where(counted, ids, 0))
            yield types[ids].tolist()

    count = int(np.count_nonzero(needed))
    sums: Float32Array | None = None
    counts = np.zeros(count, dtype=np.int64)
    with tqdm(total=total, unit=" occurrences", unit_scale=True, file=sys.stderr, disable=not progress) as bar:
        for vectors in embedder.stream(sentences(), layers=layers):  # (.., T, D)
            ids = embedded.popleft()
            rows, positions = ids[ids > 0] - _SPECIAL, np.flatnonzero(ids)
            if sums is None:
                sums = np.zeros((count, *vectors.shape[:-2], vectors.shape[-1]), dtype=np.float32)
            for row, position in zip(rows.tolist(), positions.tolist(), strict=True):
                sums[row] += vectors[..., position, :]
                counts[row] += 1
            bar.update(len(rows))
    assert sums is not None
    sums /= counts.reshape(-1, *[1] * (sums.ndim - 1))
    return types[_SPECIAL : _SPECIAL + count].tolist(), np.moveaxis(sums, 0, -2)


def _needed(corpus: Corpus, settings: DistillSettings) -> npt.NDArray[np.int64]:
    """Return how many occurrences each word type needs: 0 for all but the frequent ones, which come first."""
    counts = corpus.counts.copy()
    counts[:_SPECIAL] = 0
    counts[_SPECIAL + settings.vocab_size :] = 0
    counts[counts < settings.min_count] = 0
    if not counts.any():
        raise InputError(
            f"{corpus.folder}: no word occurs {settings.min_count} times. Use more text, or a smaller min_count."
        )
    return np.minimum(counts, settings.occurrences)


def _sample(
    corpus: Corpus, needed: npt.NDArray[np.int64], seed: int
) -> Iterator[tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]]:
    """Yield sentences in a random order as long as they have a word that needs occurrences, and which words count.

    So the occurrences of a word are a random sample, and frequent words cost no more than rare ones.
    """
    shards, starts = corpus.shards(), corpus.sentence_starts()
    firsts = np.cumsum([0, *(len(index) - 1 for index in starts)])  # number of the first sentence of each shard
    missing, words_left = needed.copy(), int(np.count_nonzero(needed))
    for number in np.random.default_rng(seed).permutation(firsts[-1]).tolist():
        if not words_left:
            return
        shard = int(np.searchsorted(firsts, number, "right")) - 1
        start, end = starts[shard][number - firsts[shard] : number - firsts[shard] + 2]
        ids = shards[shard][start : end - 1]
        try:
            counted = missing[ids] > 0
        except IndexError:
            raise FormatError(
                f"{corpus.folder}: the corpus contains an id that is not in types.txt. Prepare the corpus again."
            ) from None
        if counted.any():
            np.subtract.at(missing, ids[counted], 1)
            words_left -= int(np.count_nonzero(missing[np.unique(ids[counted])] <= 0))
            yield ids, counted
