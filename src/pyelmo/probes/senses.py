"""Words with two senses: does the nearest other occurrence of a word have the same sense?

The bundled lists (lists/senses.en.tsv, senses.ko.tsv) have one line for each sentence: word, sense, and the sentence
with asterisks around the word. The held-out lists were written after the bundled models had been chosen.

L layers, N sentences of a word, D vector.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pyelmo.arrays import Float32Array, Float64Array
from pyelmo.encoders.base import Encoder, SubstituteVectors
from pyelmo.errors import FormatError, InputError, NotFoundError
from pyelmo.probes.in_context import WordInContext, is_nearest, read_word, substitute_units, vectors_in_context
from pyelmo.text.lines import numbered_lines
from pyelmo.vectors.static import unit_vectors


@dataclass(frozen=True)
class Occurrence(WordInContext):
    """A word of a list in its sentence."""

    word: str
    sense: str


@dataclass(frozen=True)
class SensesResult:
    """The share of sentences whose nearest other sentence with the same word has the same sense, in percent.

    If several are equally near, as in a layer without context, the fraction with the same sense counts.
    """

    layers: tuple[float, ...]
    mean: float  # for the mean of the layers
    added: float | None  # for the top layer minus the layer below; None for an encoder with one layer
    substitutes: float | None  # for the vectors of substitutes; None for an encoder that predicts no words
    by_word: dict[str, float]  # for the mean of the layers
    chance: float  # for a neighbour chosen at random
    sentences: int


def listed(language: str, *, held_out: bool = False, split: str | None = None) -> list[Occurrence]:
    """Read the bundled list of a language ("en" or "ko"), split by its rules or by those of the language `split`."""
    return read_occurrences(list_path(language, held_out=held_out), split or language)


def list_path(language: str, *, held_out: bool = False) -> Path:
    """Return the file of a bundled list."""
    name = f"senses.{language}.heldout.tsv" if held_out else f"senses.{language}.tsv"
    path = Path(__file__).parent / "lists" / name
    if not path.is_file():
        raise NotFoundError(f"there is no list of words with two senses for the language {language!r}. Use en or ko.")
    return path


def read_occurrences(path: str | Path, language: str) -> list[Occurrence]:
    """Read a list of word, sense and sentence, and split the sentences by the rules of `language`."""
    occurrences = []
    senses: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for number, line in numbered_lines(path):
        where = f"{path}, line {number}"
        columns = line.split("\t")
        if len(columns) != 3 or not all(columns):
            raise FormatError(f"{where}: expected word, sense and sentence separated by tabs, got {line[:60]!r}")
        word, sense, sentence = columns
        marked = read_word(sentence, language, where)
        occurrences.append(Occurrence(marked.words, marked.position, word, sense))
        senses[word][sense] += 1
    for word, counts in senses.items():
        if len(counts) < 2 or min(counts.values()) < 2:
            raise FormatError(f"{path}: {word!r} needs at least two senses with two sentences each, got {dict(counts)}")
    return occurrences


def evaluate(
    embed: Encoder, occurrences: Sequence[Occurrence], substitutes: SubstituteVectors | None = None
) -> SensesResult:
    """Return the shares by layer, for the mean of the layers, for the top layer minus the layer below, and for the
    vectors of substitutes.

    A layer with a skip connection is the sum of the layer below and its own output; the difference is its own output.
    """
    if not occurrences:
        raise InputError("the list of words with two senses is empty")
    layers = np.stack(list(vectors_in_context(embed, occurrences)), axis=1)  # (L, N, D)
    mixes = [layers.mean(0), *([layers[-1] - layers[-2]] if len(layers) > 1 else [])]
    groups: dict[str, list[int]] = defaultdict(list)
    for row, occurrence in enumerate(occurrences):
        groups[occurrence.word].append(row)
    senses = np.array([occurrence.sense for occurrence in occurrences])
    right = _right(np.concatenate([layers, mixes]), senses, groups)  # (L + 2, N)
    shares = (100 * right.mean(1)).tolist()
    mean = len(layers)
    chance = [(np.sum(senses[rows] == senses[row]) - 1) / (len(rows) - 1) for rows in groups.values() for row in rows]
    return SensesResult(
        layers=tuple(shares[:mean]),
        mean=shares[mean],
        added=shares[mean + 1] if len(layers) > 1 else None,
        substitutes=100 * float(_right(substitute_units(substitutes, occurrences), senses, groups).mean())
        if substitutes
        else None,
        by_word={word: 100 * float(right[mean, rows].mean()) for word, rows in groups.items()},
        chance=100 * float(np.mean(chance)),
        sentences=len(occurrences),
    )


def _right(
    vectors: Float32Array, senses: npt.NDArray[np.str_], groups: Mapping[str, list[int]]
) -> Float64Array:  # (L, N, D) -> (L, N)
    """Return for each occurrence which fraction of the occurrences nearest to it have its sense."""
    right = np.zeros(vectors.shape[:2])
    for rows in groups.values():
        same = senses[rows][:, None] == senses[rows]
        nearest = _nearest_others(vectors[:, rows])
        right[:, rows] = (nearest & same).sum(2) / nearest.sum(2)
    return right


def _nearest_others(vectors: Float32Array) -> npt.NDArray[np.bool_]:  # (L, N, D) -> (L, N, N)
    scaled = unit_vectors(vectors)
    cosines = scaled @ scaled.transpose(0, 2, 1)
    itself = np.arange(cosines.shape[1])
    cosines[:, itself, itself] = -np.inf
    return is_nearest(cosines)
