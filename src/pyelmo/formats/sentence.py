"""The sentence form of a model: how the token layer becomes one vector per sentence (sentence.json).

    v = sum over t of w(t) x(t) / sum over t of w(t),    vector = v - sum over k of (u(k) . v) u(k)

x(t) is the token vector of word t. w(t) = a / (a + p(t)) is small for a frequent word: p(t) is its share of a text, the
smoothing a is a constant (smooth inverse frequency, Arora et al. 2017). u(k) are directions that are common to all
words, with the root of the share to remove as their length. Everything is a constant of the model, so a sentence has
the same vector in any batch.

sentence.json has the weights of words as an object, and the directions as the base64 of their float16 numbers: a list
of numbers would be five times as long, and slow to read.

T words of a sentence, W words, P vector of one direction, K common directions.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pyelmo.arrays import Float32Array
from pyelmo.config import ModelConfig
from pyelmo.errors import FormatError
from pyelmo.files import write_text
from pyelmo.parsing import field, read_json

SENTENCE = "sentence.json"
RARE = 0.99  # a word with at least this weight is not listed; words that are not listed have weight 1
HALF = np.dtype("<f2")


@dataclass(frozen=True, eq=False)
class SentenceForm:
    """The weights of frequent words in lower case, and the common directions (K, P)."""

    weights: Mapping[str, float]
    common: Float32Array

    def pool(self, words: Sequence[str], vectors: Float32Array) -> Float32Array:  # (T,), (T, P) -> (P,)
        """Return the vector of a sentence from the token vectors of its words; zeros if it has none."""
        if not words:
            return np.zeros(vectors.shape[-1], np.float32)
        weights = np.array([self.weights.get(word.lower(), 1.0) for word in words], np.float32)
        # Sums along an axis have one order of additions; matrix libraries have several.
        pooled = (weights[:, None] * vectors).sum(0) / weights.sum()
        shares = (self.common * pooled).sum(1)  # (K,)
        result: Float32Array = pooled - (shares[:, None] * self.common).sum(0)
        return result

    def to_json(self) -> str:
        values = {
            "weights": {word: float(f"{weight:.4g}") for word, weight in self.weights.items()},
            "common": base64.b64encode(self.common.astype(HALF).tobytes()).decode("ascii"),
        }
        return json.dumps(values, ensure_ascii=False, separators=(",", ":")) + "\n"

    def write(self, path: Path) -> None:
        write_text(path, self.to_json())


def word_weights(counts: Mapping[str, int], smoothing: float) -> dict[str, float]:
    """Return the weight of each frequent word, the most frequent first; words that differ in case count together."""
    total = sum(counts.values())
    folded: dict[str, int] = {}
    for word, count in counts.items():
        folded[word.lower()] = folded.get(word.lower(), 0) + count
    weights = ((word, smoothing / (smoothing + count / total)) for word, count in folded.items())
    return dict(sorted((item for item in weights if item[1] < RARE), key=lambda item: (item[1], item[0])))


def common_directions(vectors: Float32Array, count: int) -> Float32Array:  # (W, P) -> (K, P)
    """Return the directions in which the vectors of words are longest, as many as `count` or their rank allows.

    Their length is such that the form shortens each of them to the next direction.
    """
    exact = vectors.astype(np.float64)
    values, axes = np.linalg.eigh(exact.T @ exact)
    values, axes = values[::-1], axes[:, ::-1]  # the longest first
    count = max(0, min(count, int((values > 1e-9 * values[0]).sum()) - 1))
    removed = 1 - np.sqrt(values[count] / values[:count])
    return np.ascontiguousarray((axes[:, :count] * np.sqrt(removed)).T, dtype=np.float32)


def read_form(folder: Path, config: ModelConfig) -> SentenceForm | None:
    """Return the sentence form of a model folder; None if it has none."""
    path = folder / SENTENCE
    if not path.is_file():
        return None
    values = read_json(path)
    weights, text = field(values, "weights", dict, path), field(values, "common", str, path)
    for word, weight in weights.items():
        if not isinstance(weight, (int, float)) or not 0 < weight <= 1:
            raise FormatError(
                f"{path}: the weight of {word[:40]!r} is {str(weight)[:40]}, expected more than 0, at most 1"
            )
    size = config.lstm.dim
    try:
        common = np.frombuffer(base64.b64decode(text, validate=True), HALF).astype(np.float32).reshape(-1, size)
    except (binascii.Error, ValueError):  # not base64, or not whole vectors
        common = np.full((1, size), np.inf, np.float32)
    longest = np.linalg.norm(common, axis=1).max(initial=0)
    if not longest < 1.01 or len(common) > size:
        raise FormatError(
            f"{path}: 'common' must be vectors of {size} numbers, no longer than 1. Is it another model's?"
        )
    return SentenceForm(weights, common)
