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

from pyelmo.encoders.base import Encoder
from pyelmo.errors import FormatError, InputError, NotFoundError
from pyelmo.probes.in_context import ROUNDING, WordInContext, read_word, vectors_in_context
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


def evaluate(embed: Encoder, triples: Sequence[Triple]) -> PhrasesResult:
    """Return the shares by layer, and for the mean of the layers."""
    if not triples:
        raise InputError("the list of short phrases is empty")
    words = [word for triple in triples for word in triple]
    layers = np.stack(list(vectors_in_context(embed, words)), axis=1)  # (L, 3 N, D)
    kinds = unit_vectors(np.concatenate([layers, layers.mean(0, keepdims=True)]))  # (L + 1, 3 N, D)
    phrase, same, other = kinds[:, 0::3], kinds[:, 1::3], kinds[:, 2::3]
    nearer = (phrase * same).sum(-1) - (phrase * other).sum(-1)  # (L + 1, N)
    right = np.where(np.abs(nearer) <= ROUNDING, 0.5, nearer > 0)
    shares = (100 * right.mean(1)).tolist()
    return PhrasesResult(layers=tuple(shares[:-1]), mean=shares[-1], triples=len(triples))
