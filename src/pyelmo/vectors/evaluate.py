"""Evaluation of static vectors: analogies (Google, Korean) and word similarity (WordSim-353, SimLex-999, WS-353).

Analogies: a is to b as c is to d. The answer is the word nearest to b - a + c on unit vectors, without a, b and c
(3CosAdd). A question with an out-of-vocabulary word is skipped, and the coverage shows how many there are.
Similarity: Spearman's correlation of cosines with human ratings, once over all pairs, where a pair with an
out-of-vocabulary word has the similarity 0, and once over the known pairs only.
Case is ignored by default: of several spellings of a word the first in the file counts, which is the most frequent one.

N words, D vector, Q questions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pyelmo.arrays import Float32Array
from pyelmo.errors import FormatError
from pyelmo.text.lines import existing, numbered_lines
from pyelmo.vectors.static import StaticVectors, unit_vectors

_SCORES = 1 << 24  # cosines in memory: 64 MiB
_SYNTACTIC = ("gram", "syn")  # prefixes of the names of such sections, of Google's questions and of the Korean ones

Analogy = tuple[str, str, str, str]


@dataclass(frozen=True)
class AnalogyScore:
    """The number of right answers, of questions whose words are all known, and of all questions."""

    right: int
    known: int
    questions: int

    @property
    def accuracy(self) -> float | None:
        """Right answers in percent of the known questions."""
        return 100 * self.right / self.known if self.known else None

    @property
    def coverage(self) -> float:
        """Known questions in percent of all questions."""
        return 100 * self.known / self.questions if self.questions else 0.0


@dataclass(frozen=True)
class AnalogyResult:
    """Scores for each section, for semantic and syntactic sections, and in total."""

    sections: dict[str, AnalogyScore]
    semantic: AnalogyScore
    syntactic: AnalogyScore
    total: AnalogyScore


@dataclass(frozen=True)
class PairResult:
    """Spearman's correlation; None if all cosines or all ratings are equal."""

    spearman: float | None  # over all pairs; a pair with an out-of-vocabulary word has the cosine 0
    spearman_known: float | None  # over the known pairs
    known: int
    pairs: int

    @property
    def coverage(self) -> float:
        """Known pairs in percent of all pairs."""
        return 100 * self.known / self.pairs


def read_analogies(path: str | Path) -> dict[str, list[Analogy]]:
    """Read questions by section: a line ": name", then lines of four words."""
    sections: dict[str, list[Analogy]] = {}
    section: list[Analogy] | None = None
    for number, line in numbered_lines(existing(path)):
        words = line.split()
        if line.startswith(":"):
            section = sections.setdefault(line[1:].strip(), [])
        elif len(words) == 4 and section is not None:
            section.append((words[0], words[1], words[2], words[3]))
        elif words:
            expected = "four words" if section is not None else 'a line ": section" first'
            raise FormatError(f"{path}, line {number}: expected {expected}, got {line[:60]!r}")
    if not any(sections.values()):
        raise FormatError(f"{path}: the file contains no questions. Is it empty, or in another format?")
    return sections


def read_pairs(path: str | Path) -> list[tuple[str, str, float]]:
    """Read two words and a rating from each line, separated by tabs or commas.

    A line that starts with # is a comment. The first line may hold the names of the columns.
    """
    pairs: list[tuple[str, str, float]] = []
    has_header = False
    for number, line in numbered_lines(existing(path)):
        line = line.removeprefix("\ufeff")
        if not line.strip() or line.startswith("#"):
            continue
        columns = [column.strip() for column in line.split("\t" if "\t" in line else ",")]
        try:
            first, second, score = columns
            pairs.append((first, second, float(score)))
        except ValueError:
            if len(columns) != 3 or pairs or has_header:
                raise FormatError(
                    f"{path}, line {number}: expected two words and a number, got {line[:60]!r}"
                ) from None
            has_header = True
    if not pairs:
        raise FormatError(f"{path}: the file contains no pairs. Is it empty, or in another format?")
    return pairs


class _Vocabulary:
    """The words of the evaluation: the first `vocab_size`, and of spellings that differ in case the first."""

    def __init__(self, vectors: StaticVectors, *, ignore_case: bool, vocab_size: int | None) -> None:
        self.vectors, self.ignore_case = vectors, ignore_case
        self.index: dict[str, int] = {}  # the row of a word in `unit`
        rows: list[int] = []
        for row, word in enumerate(vectors.words[:vocab_size]):
            word = self.fold(word)
            if word not in self.index:
                self.index[word] = len(rows)
                rows.append(row)
        self.unit = vectors.unit if len(rows) == len(vectors) else vectors.unit[rows]

    def fold(self, word: str) -> str:
        return word.lower() if self.ignore_case else word

    def vector(self, word: str) -> Float32Array | None:
        """Return the unit vector of a word; an out-of-vocabulary word has one if the vectors have n-grams."""
        row = self.index.get(self.fold(word))
        if row is not None:
            unit: Float32Array = self.unit[row]
            return unit
        vector = self.vectors.subwords.vector(word) if self.vectors.subwords else None
        return None if vector is None else unit_vectors(vector)


def analogies(
    vectors: StaticVectors,
    sections: dict[str, list[Analogy]],
    *,
    ignore_case: bool = True,
    vocab_size: int | None = None,
) -> AnalogyResult:
    """Return the accuracy by section.

    Args:
        vectors: The vectors.
        sections: Questions by section, from `read_analogies`.
        ignore_case: Treat spellings that differ in case as the same word.
        vocab_size: Use only the first words of the vectors, in questions and as answers (default: all).
    """
    vocabulary = _Vocabulary(vectors, ignore_case=ignore_case, vocab_size=vocab_size)
    scores = {}
    for name, questions in sections.items():
        rows = [[vocabulary.index.get(vocabulary.fold(word), -1) for word in question] for question in questions]
        known = np.array([row for row in rows if min(row) >= 0], dtype=np.int64).reshape(-1, 4)
        scores[name] = AnalogyScore(_count_right(vocabulary.unit, known), len(known), len(questions))
    syntactic = [score for name, score in scores.items() if name.startswith(_SYNTACTIC)]
    semantic = [score for name, score in scores.items() if not name.startswith(_SYNTACTIC)]
    return AnalogyResult(scores, _sum(semantic), _sum(syntactic), _sum(scores.values()))


def _count_right(unit: Float32Array, questions: npt.NDArray[np.int64]) -> int:  # (N, D), (Q, 4)
    right, batch = 0, max(_SCORES // len(unit), 1)
    for start in range(0, len(questions), batch):
        a, b, c, d = questions[start : start + batch].T
        cosines = (unit[b] - unit[a] + unit[c]) @ unit.T  # the length of the target does not change the order
        numbers = np.arange(len(a))
        for question_word in (a, b, c):
            cosines[numbers, question_word] = -np.inf
        best = cosines.argmax(1)
        # In a tiny vocabulary, no word may be left as an answer.
        right += int(((best == d) & (cosines[numbers, best] > -np.inf)).sum())
    return right


def _sum(scores: Iterable[AnalogyScore]) -> AnalogyScore:
    scores = list(scores)
    right, known = sum(score.right for score in scores), sum(score.known for score in scores)
    return AnalogyScore(right, known, sum(score.questions for score in scores))


def similarity(
    vectors: StaticVectors,
    pairs: list[tuple[str, str, float]],
    *,
    ignore_case: bool = True,
    vocab_size: int | None = None,
) -> PairResult:
    """Return the correlation of cosines with human ratings.

    Args:
        vectors: The vectors.
        pairs: Two words and their rating, from `read_pairs`.
        ignore_case: Treat spellings that differ in case as the same word.
        vocab_size: Use only the first words of the vectors (default: all).
    """
    vocabulary = _Vocabulary(vectors, ignore_case=ignore_case, vocab_size=vocab_size)
    cosines = np.zeros(len(pairs))
    known = np.zeros(len(pairs), dtype=bool)
    for number, (first, second, _) in enumerate(pairs):
        first_vector, second_vector = vocabulary.vector(first), vocabulary.vector(second)
        if first_vector is not None and second_vector is not None:
            cosines[number], known[number] = float(first_vector @ second_vector), True
    ratings = np.array([rating for *_, rating in pairs])
    return PairResult(
        spearman(cosines, ratings), spearman(cosines[known], ratings[known]), int(known.sum()), len(pairs)
    )


def spearman(first: npt.NDArray[np.float64], second: npt.NDArray[np.float64]) -> float | None:
    """Return Spearman's rank correlation; equal values have the mean of their ranks."""
    first_ranks, second_ranks = ranks(first), ranks(second)
    if len(first) < 2 or not first_ranks.std() or not second_ranks.std():
        return None
    return float(np.corrcoef(first_ranks, second_ranks)[0, 1])


def ranks(values: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """Return ranks from 1; equal values have the mean of their ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    mean_ranks: npt.NDArray[np.floating] = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    return mean_ranks
