"""SCWS, similarity of words in contexts (Huang et al. 2012): do cosines rank pairs of words like human ratings?

    the cosine of two words in their contexts --> Spearman's correlation with the mean of ten ratings, for each layer

A line of the published ratings.txt is a pair: number, two words with their parts of speech, two tokenised contexts of
about a hundred words with the word between <b> and </b>, the mean rating, and the ten ratings. A context is treated as
one sentence.

L layers, N pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pyelmo.encoders.base import Encoder
from pyelmo.errors import FormatError, InputError
from pyelmo.probes.in_context import Cosines, WordInContext, pair_cosines
from pyelmo.text.lines import check_published, existing, numbered_lines
from pyelmo.vectors.evaluate import ranks

PAIRS = 2003  # as published
_COLUMNS = 18


@dataclass(frozen=True)
class RatedPair:
    """Two words in their contexts and the mean of their ratings."""

    first: WordInContext
    second: WordInContext
    rating: float  # from 0 to 10


@dataclass(frozen=True)
class ScwsResult:
    """Spearman's rank correlation, times 100."""

    spearman: tuple[float, ...]  # by layer
    pairs: int
    without: int  # pairs with a word that has no vector; their cosine is 0


def read_scws(path: str | Path) -> list[RatedPair]:
    """Read the pairs of ratings.txt."""
    pairs = []
    for number, line in numbered_lines(existing(path)):
        where = f"{path}, line {number}"
        columns = line.split("\t")
        if len(columns) != _COLUMNS:
            raise FormatError(f"{where}: {len(columns)} columns, expected {_COLUMNS} columns separated by tabs")
        try:
            mean, *ratings = map(float, columns[7:])
        except ValueError:
            raise FormatError(
                f"{where}: expected eleven numbers in the last columns, got {str(columns[7:])[:80]}"
            ) from None
        if abs(mean - sum(ratings) / len(ratings)) > 0.01:
            raise FormatError(f"{where}: {mean} is not the mean of {str(ratings)[:80]}")
        pairs.append(RatedPair(_context(columns[5], where), _context(columns[6], where), mean))
    check_published(path, len(pairs), PAIRS if Path(path).name == "ratings.txt" else None, "pairs", exact=True)
    return pairs


def _context(text: str, where: str) -> WordInContext:
    words = text.split()
    tags = [position for position, word in enumerate(words) if word in ("<b>", "</b>")]
    if [words[position] for position in tags] != ["<b>", "</b>"] or tags[1] - tags[0] < 2:
        raise FormatError(f"{where}: expected one word between <b> and </b> in each context, got {text[:60]!r}")
    first, last = tags
    return WordInContext([*words[:first], *words[first + 1 : last], *words[last + 1 :]], first)


def evaluate(embed: Encoder, pairs: Sequence[RatedPair]) -> ScwsResult:
    """Return the correlation by layer."""
    if len(pairs) < 2:
        raise InputError(f"a correlation needs at least 2 pairs, got {len(pairs)}")
    cosines = pair_cosines(embed, [(pair.first, pair.second) for pair in pairs])  # (L, N)
    ratings = np.array([pair.rating for pair in pairs])
    return ScwsResult(
        spearman=tuple(100 * spearman(row, ratings) for row in cosines),
        pairs=len(pairs),
        without=int((cosines == 0).all(0).sum()),
    )


def spearman(first: Cosines, second: Cosines) -> float:
    """Return the correlation of the ranks, or 0 if all values on one side are equal."""
    first_ranks, second_ranks = (ranks(values) - (len(values) + 1) / 2 for values in (first, second))
    size = float(np.sqrt((first_ranks @ first_ranks) * (second_ranks @ second_ranks)))
    return float(first_ranks @ second_ranks) / size if size else 0.0
