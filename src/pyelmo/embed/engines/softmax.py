"""The softmax over the vocabulary on a CPU, without gradients: log p(w | context) for vectors of the top layer.

M vectors, P vector of one direction, V words.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from pyelmo.arrays import Float32Array, Float64Array, Int64Array
from pyelmo.config import ModelConfig
from pyelmo.formats.pretrained import StoredWeight, floats
from pyelmo.kernels.cpu import compiled, plain

# Vectors whose scores (M, V) are computed at once, and words whose weights are converted and packed at once: few, to
# bound the memory.
VECTORS_AT_ONCE = 256
WORDS_AT_ONCE = 4096


class WordSoftmax(Protocol):
    """Predicts words. The scores of a vector do not depend on the others."""

    def log_probabilities(self, vectors: Float32Array) -> Float32Array:
        """(M, P) -> the log probability of every word (M, V)."""

    def losses(self, vectors: Float32Array, targets: Int64Array) -> Float64Array:
        """(M, P), (M,) -> the negative log probability of each target (M,)."""


class CpuSoftmax:
    """Implements `WordSoftmax`, the full and the adaptive one, from weights by their names in `BiLM`."""

    def __init__(self, config: ModelConfig, fetch: Callable[[str], StoredWeight], *, threads: int = 1) -> None:
        assert config.softmax is not None
        self._kernels: ModuleType = compiled if compiled.available() else plain
        self._words, self._cutoffs, self._threads = config.softmax, config.softmax_cutoffs, threads
        if self._cutoffs:
            self._head = self._linear(fetch, "softmax.clusters.head.weight", "softmax.clusters.head.bias")
            self._tails = [
                [self._linear(fetch, f"softmax.clusters.tail.{number}.{part}.weight") for part in (0, 1)]
                for number in range(len(self._cutoffs))
            ]
        else:
            weight = "words.weight" if config.softmax_shares_words else "softmax.weight"
            self._head = self._linear(fetch, weight, "softmax.bias")

    def _linear(self, fetch: Callable[[str], StoredWeight], weight: str, bias: str | None = None) -> Callable[..., Any]:
        """Return the function (M, P) -> (M, rows of the weight)."""
        stored = fetch(weight)
        offsets = None if bias is None else floats(fetch(bias))
        rows = len(stored.scales) if not isinstance(stored, np.ndarray) else len(stored)
        if isinstance(stored, np.ndarray) and not stored.size:  # a cluster of an adaptive softmax without vectors
            return lambda vectors: np.zeros((len(vectors), rows), np.float32)
        parts = [slice(start, start + WORDS_AT_ONCE) for start in range(0, rows, WORDS_AT_ONCE)]
        matrices = [self._kernels.Matrix(np.ascontiguousarray(floats(stored[part]))) for part in parts]
        biases = [None if offsets is None else np.ascontiguousarray(offsets[part]) for part in parts]

        def run(vectors: Float32Array) -> Float32Array:
            return np.concatenate(
                [self._kernels.linear(*part, vectors) for part in zip(matrices, biases, strict=True)], 1
            )

        return run

    def log_probabilities(self, vectors: Float32Array) -> Float32Array:  # (M, P) -> (M, V)
        vectors = np.ascontiguousarray(vectors)
        head = _log_softmax(self._head(vectors))
        if not self._cutoffs:
            return head
        scores = np.empty((len(vectors), self._words), np.float32)
        scores[:, : self._cutoffs[0]] = head[:, : self._cutoffs[0]]
        for number, (first, end) in enumerate(itertools.pairwise((*self._cutoffs, self._words))):
            smaller, words = self._tails[number]
            cluster = head[:, self._cutoffs[0] + number, None]
            scores[:, first:end] = cluster + _log_softmax(words(smaller(vectors)))
        return scores

    def losses(self, vectors: Float32Array, targets: Int64Array) -> Float64Array:  # (M, P), (M,) -> (M,)
        starts = range(0, len(vectors), VECTORS_AT_ONCE)

        def run(start: int) -> Float32Array:
            some = slice(start, start + VECTORS_AT_ONCE)
            scores = self.log_probabilities(vectors[some])
            return -scores[np.arange(len(scores)), targets[some]]

        if self._threads == 1 or len(starts) < 2:
            parts = list(map(run, starts))
        else:
            with ThreadPoolExecutor(self._threads) as pool:
                parts = list(pool.map(run, starts))
        return np.concatenate([np.zeros(0), *parts])


def _log_softmax(scores: Float32Array) -> Float32Array:  # changes its argument
    scores -= scores.max(-1, keepdims=True, initial=-np.inf)
    scores -= np.log(np.exp(scores).sum(-1, keepdims=True, dtype=np.float64)).astype(np.float32)
    return scores
