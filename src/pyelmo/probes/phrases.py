"""Short phrases: is a word nearer to the same word in a phrase with the same sense than in one with another sense?

The bundled lists (lists/phrases.en.tsv, phrases.ko.tsv) have one line for each triple: the word, a phrase, a phrase
with the same sense, and a phrase with another sense, each of two to six words with asterisks around the word.

L layers, N triples, D vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pyelmo.arrays import Float32Array
from pyelmo.encoders.base import Encoder, SubstituteVectors
from pyelmo.errors import FormatError, InputError, NotFoundError
from pyelmo.probes.in_context import ROUNDING, WordInContext, read_word, substitute_units, vectors_in_context
from pyelmo.text.lines import numbered_lines
from pyelmo.vectors.static import unit_vectors


class Triple(NamedTuple):
    """A word in a phrase, in one with the same sense, and in one with another sense."""

    phrase: WordInContext
    same: WordInContext
    other: WordInContext


@dataclass(frozen=True)
class PhrasesResult:
    """The share of triples whose phrase with the same sense is the nearer one, in percent; a tie counts half."""

    layers: tuple[float, ...]
    mean: float  # for the mean of the layers
    substitutes: float | None  # for the vectors of substitutes; None for an encoder that predicts no words
    triples: int


def list_path(language: str) -> Path:
    """Return the file of the bundled list of a language ("en" or "ko")."""
    path = Path(__file__).parent / "lists" / f"phrases.{language}.tsv"
    if not path.is_file():
        raise NotFoundError(f"there is no list of short phrases for the language {language!r}. Use en or ko.")
    return path


def read_triples(path: str | Path, language: str) -> list[Triple]:
    """Read a list of triples, and split the phrases by the rules of `language`."""
    triples = []
    for number, line in numbered_lines(path):
        where = f"{path}, line {number}"
        columns = line.split("\t")
        if len(columns) != 4 or not all(columns):
            raise FormatError(f"{where}: expected a word and three phrases separated by tabs, got {line[:60]!r}")
        triples.append(Triple(*(read_word(phrase, language, where) for phrase in columns[1:])))
    return triples


def evaluate(embed: Encoder, triples: Sequence[Triple], substitutes: SubstituteVectors | None = None) -> PhrasesResult:
    """Return the shares by layer, for the mean of the layers, and for the vectors of substitutes."""
    if not triples:
        raise InputError("the list of short phrases is empty")
    words = [word for triple in triples for word in triple]
    layers = np.stack(list(vectors_in_context(embed, words)), axis=1)  # (L, 3 N, D)
    *shares, mean = _nearer(np.concatenate([layers, layers.mean(0, keepdims=True)]))
    by_substitutes = _nearer(substitute_units(substitutes, words))[0] if substitutes else None
    return PhrasesResult(layers=tuple(shares), mean=mean, substitutes=by_substitutes, triples=len(triples))


def _nearer(vectors: Float32Array) -> list[float]:  # (L, 3 N, D) -> L shares
    units = unit_vectors(vectors)
    phrase, same, other = units[:, 0::3], units[:, 1::3], units[:, 2::3]
    nearer = (phrase * same).sum(-1) - (phrase * other).sum(-1)  # (L, N)
    right = np.where(np.abs(nearer) <= ROUNDING, 0.5, nearer > 0)
    shares: list[float] = (100 * right.mean(1)).tolist()
    return shares
