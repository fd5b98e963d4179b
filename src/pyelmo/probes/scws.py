"""SCWS, similarities of words in contexts (Huang et al. 2012): do cosines rank pairs of words as people do?

    the cosine of two words in their contexts --> Spearman's correlation with the mean of ten ratings, for each layer

The published ratings.txt has a pair a line: number, two words with their parts of speech, two tokenised contexts of
about a hundred words with the word between <b> and </b>, the mean rating and the ten of it. A context is read as one
sentence.

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
    """Two words in contexts."""

    first: WordInContext
    second: WordInContext
    rating: float  # the mean, 0 to 10


@dataclass(frozen=True)
class ScwsResult:
    """Spearman's rank correlation times 100."""

    spearman: tuple[float, ...]  # by layer
    pairs: int
    without: int  # pairs of which a word has no vector: their cosine counts as 0


def read_scws(path: str | Path) -> list[RatedPair]:
    """The pairs of ratings.txt."""
    pairs = []
    for number, line in numbered_lines(existing(path)):
        where = f"{path}, line {number}"
        columns = line.split("\t")
        if len(columns) != _COLUMNS:
            raise FormatError(f"{where}: {len(columns)} columns, expected {_COLUMNS} with tabs between")
        try:
            mean, *ratings = map(float, columns[7:])
        except ValueError:
            raise FormatError(f"{where}: expected eleven numbers at the end, got {columns[7:]}") from None
        if abs(mean - sum(ratings) / len(ratings)) > 0.01:
            raise FormatError(f"{where}: {mean} is not the mean of {ratings}")
        pairs.append(RatedPair(_context(columns[5], where), _context(columns[6], where), mean))
    check_published(path, len(pairs), PAIRS if Path(path).name == "ratings.txt" else None, "pairs", exact=True)
    return pairs


def _context(text: str, where: str) -> WordInContext:
    words = text.split()
    marks = [place for place, word in enumerate(words) if word in ("<b>", "</b>")]
    if [words[place] for place in marks] != ["<b>", "</b>"] or marks[1] - marks[0] < 2:
        raise FormatError(f"{where}: expected one word between <b> and </b> in each context, got {text[:60]!r}")
    first, last = marks
    return WordInContext([*words[:first], *words[first + 1 : last], *words[last + 1 :]], first)


def evaluate(embed: Encoder, pairs: Sequence[RatedPair]) -> ScwsResult:
    """The correlation by layer."""
    if len(pairs) < 2:
        raise InputError("a correlation needs two pairs or more")
    cosines = pair_cosines(embed, [(pair.first, pair.second) for pair in pairs])  # (L, N)
    ratings = np.array([pair.rating for pair in pairs])
    return ScwsResult(
        spearman=tuple(100 * spearman(row, ratings) for row in cosines),
        pairs=len(pairs),
        without=int((cosines == 0).all(0).sum()),
    )


def spearman(first: Cosines, second: Cosines) -> float:
    """Pearson's correlation of the ranks; 0 where all of one side are equal."""
    one, two = (ranks(values) - (len(values) + 1) / 2 for values in (first, second))
    size = float(np.sqrt((one @ one) * (two @ two)))
    return float(one @ two) / size if size else 0.0
