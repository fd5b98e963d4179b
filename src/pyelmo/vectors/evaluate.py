"""What static vectors know: analogies (Google's, Korean) and the similarity of pairs (WordSim-353, SimLex-999, WS-353).

Analogies: a is to b as c is to d; the answer is the nearest word to b - a + c on vectors of length 1, those three left
out (3CosAdd). A question with a word that the vectors lack is skipped, and counted as such.
Pairs: Spearman's correlation of cosines with the judgements of people. Over all pairs a pair with an unknown word has
similarity 0, so that vectors of few words gain nothing; over the known pairs it is left out. Both are told.
Case does not count unless asked: a word is the first of its spellings in the file, which is the most frequent one.

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

_SCORES = 1 << 24  # cosines at once: 64 MiB
_SYNTACTIC = ("gram", "syn")  # how the names of such sections begin, Google's and the Korean ones

Analogy = tuple[str, str, str, str]


@dataclass(frozen=True)
class AnalogyScore:
    """Right answers among the known questions, of all that were asked."""

    right: int
    known: int
    questions: int

    @property
    def accuracy(self) -> float | None:
        """Percent of the known questions."""
        return 100 * self.right / self.known if self.known else None

    @property
    def coverage(self) -> float:
        """Percent of all questions that are known."""
        return 100 * self.known / self.questions if self.questions else 0.0


@dataclass(frozen=True)
class AnalogyResult:
    sections: dict[str, AnalogyScore]
    semantic: AnalogyScore
    syntactic: AnalogyScore
    total: AnalogyScore


@dataclass(frozen=True)
class PairResult:
    """Spearman's correlation, or None where the pairs do not differ."""

    spearman: float | None  # over all pairs, one with an unknown word at 0
    spearman_known: float | None  # over the known pairs
    known: int
    pairs: int

    @property
    def coverage(self) -> float:
        """Percent of all pairs that are known."""
        return 100 * self.known / self.pairs


def read_analogies(path: str | Path) -> dict[str, list[Analogy]]:
    """Questions by section: a line ": name", then four words a line."""
    sections: dict[str, list[Analogy]] = {}
    section: list[Analogy] | None = None
    for number, line in numbered_lines(existing(path)):
        words = line.split()
        if line.startswith(":"):
            section = sections.setdefault(line[1:].strip(), [])
        elif len(words) == 4 and section is not None:
            section.append((words[0], words[1], words[2], words[3]))
        elif words:
            want = "four words" if section is not None else 'a line ": section" first'
            raise FormatError(f"{path}, line {number}: expected {want}, got {line[:60]!r}")
    if not any(sections.values()):
        raise FormatError(f"{path}: holds no questions")
    return sections


def read_pairs(path: str | Path) -> list[tuple[str, str, float]]:
    """Two words and a judgement a line, tabs or commas between; # begins a comment, names of columns may come first."""
    pairs: list[tuple[str, str, float]] = []
    named = False
    for number, line in numbered_lines(existing(path)):
        line = line.removeprefix("\ufeff")
        if not line.strip() or line.startswith("#"):
            continue
        columns = [column.strip() for column in line.split("\t" if "\t" in line else ",")]
        try:
            first, second, score = columns
            pairs.append((first, second, float(score)))
        except ValueError:
            if len(columns) != 3 or pairs or named:
                raise FormatError(
                    f"{path}, line {number}: expected two words and a number, got {line[:60]!r}"
                ) from None
            named = True
    if not pairs:
        raise FormatError(f"{path}: holds no pairs")
    return pairs


class _Table:
    """The words that count: the first `vocab_size`, and of spellings that differ by case the first."""

    def __init__(self, vectors: StaticVectors, *, ignore_case: bool, vocab_size: int | None) -> None:
        self.vectors, self.ignore_case = vectors, ignore_case
        self.index: dict[str, int] = {}  # a word's place among the rows that are kept
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
        """The vector at length 1; an unknown word's by its n-grams."""
        place = self.index.get(self.fold(word))
        if place is not None:
            row: Float32Array = self.unit[place]
            return row
        found = self.vectors.subwords.vector(word) if self.vectors.subwords else None
        return None if found is None else unit_vectors(found)


def analogies(
    vectors: StaticVectors,
    sections: dict[str, list[Analogy]],
    *,
    ignore_case: bool = True,
    vocab_size: int | None = None,
) -> AnalogyResult:
    """The accuracy by section. `vocab_size` keeps only the first words, as questions and as answers."""
    table = _Table(vectors, ignore_case=ignore_case, vocab_size=vocab_size)
    scores = {}
    for name, questions in sections.items():
        places = [[table.index.get(table.fold(word), -1) for word in question] for question in questions]
        known = np.array([row for row in places if min(row) >= 0], dtype=np.int64).reshape(-1, 4)
        scores[name] = AnalogyScore(_right(table.unit, known), len(known), len(questions))
    kinds: dict[bool, list[AnalogyScore]] = {False: [], True: []}
    for name, score in scores.items():
        kinds[name.startswith(_SYNTACTIC)].append(score)
    return AnalogyResult(scores, _sum(kinds[False]), _sum(kinds[True]), _sum(scores.values()))


def _right(unit: Float32Array, questions: npt.NDArray[np.int64]) -> int:  # (N, D), (Q, 4)
    right, batch = 0, max(_SCORES // len(unit), 1)
    for start in range(0, len(questions), batch):
        a, b, c, d = questions[start : start + batch].T
        cosines = (unit[b] - unit[a] + unit[c]) @ unit.T  # the target's length does not change the order
        each = np.arange(len(a))
        for asked in (a, b, c):
            cosines[each, asked] = -np.inf
        best = cosines.argmax(1)
        right += int(((best == d) & (cosines[each, best] > -np.inf)).sum())  # of few words none may be left
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
    """How cosines agree with people."""
    table = _Table(vectors, ignore_case=ignore_case, vocab_size=vocab_size)
    cosines = np.zeros(len(pairs))
    known = np.zeros(len(pairs), dtype=bool)
    for place, (first, second, _) in enumerate(pairs):
        one, other = table.vector(first), table.vector(second)
        if one is not None and other is not None:
            cosines[place], known[place] = float(one @ other), True
    judgements = np.array([score for *_, score in pairs])
    return PairResult(
        spearman(cosines, judgements), spearman(cosines[known], judgements[known]), int(known.sum()), len(pairs)
    )


def spearman(one: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> float | None:
    """The correlation of ranks; equal values share the mean of their ranks."""
    first, second = _ranks(one), _ranks(other)
    if len(first) < 2 or not first.std() or not second.std():
        return None
    return float(np.corrcoef(first, second)[0, 1])


def _ranks(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: npt.NDArray[np.float64] = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    return ranks
