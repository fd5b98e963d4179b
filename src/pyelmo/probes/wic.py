"""WiC, words in context (Pilehvar & Camacho-Collados 2019): does a word mean the same in two sentences?

    the cosine of its two vectors --> "the same" above a threshold, which is fitted on the train set, for each layer

The published folders train, dev and test hold NAME.data.txt (word, part of speech, the positions of the word, two
tokenised sentences) and NAME.gold.txt (T or F).

L layers, N pairs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pyelmo.encoders.base import Encoder, SubstituteVectors
from pyelmo.errors import FormatError, InputError
from pyelmo.probes.in_context import Cosines, WordInContext, pair_cosines, substitute_cosines
from pyelmo.text.lines import check_published, existing, numbered_lines

PAIRS = {"train": 5428, "dev": 638, "test": 1400}  # as published


@dataclass(frozen=True)
class WicPair:
    """A word in two sentences, and whether its sense is the same."""

    word: str
    first: WordInContext
    second: WordInContext
    same: bool


@dataclass(frozen=True)
class WicResult:
    """Accuracy in percent, by layer. In each data set half of the pairs have the same sense, so chance is 50.

    `substitutes` has the same for the vectors of substitutes; None for an encoder that predicts no words.
    """

    train: tuple[float, ...]
    dev: tuple[float, ...]
    test: tuple[float, ...]
    thresholds: tuple[float, ...]
    pairs: dict[str, int]
    substitutes: WicResult | None = None


def read_wic(data: str | Path) -> list[WicPair]:
    """Read the pairs of NAME.data.txt and of NAME.gold.txt in the same folder."""
    data = existing(data)
    name = data.name.removesuffix(".data.txt")
    gold = [line for _, line in numbered_lines(existing(data.with_name(f"{name}.gold.txt")))]
    pairs = []
    for number, line in numbered_lines(data):
        where = f"{data}, line {number}"
        columns = line.split("\t")
        if len(columns) != 5:
            raise FormatError(f"{where}: {len(columns)} columns, expected word, tag, positions and two sentences")
        word, _, pair, *sentences = columns
        positions = pair.split("-")
        if len(positions) != 2 or not all(re.fullmatch("[0-9]{1,6}", position) for position in positions):
            raise FormatError(f"{where}: expected two positions like 2-5, got {pair[:20]!r}")
        first, second = (
            WordInContext(text.split(), int(position)) for text, position in zip(sentences, positions, strict=True)
        )
        if first.position >= len(first.words) or second.position >= len(second.words):
            raise FormatError(f"{where}: a position of {pair} is outside its sentence")
        if number > len(gold) or gold[number - 1] not in ("T", "F"):
            raise FormatError(f"{where}: line {number} of {name}.gold.txt is neither T nor F")
        pairs.append(WicPair(word, first, second, gold[number - 1] == "T"))
    check_published(data, len(pairs), PAIRS.get(name), "pairs", exact=True)
    if len(gold) != len(pairs):
        raise FormatError(f"{data}: {len(pairs):,} pairs, but {name}.gold.txt has {len(gold):,} answers")
    return pairs


def evaluate(
    embed: Encoder,
    train: Sequence[WicPair],
    dev: Sequence[WicPair],
    test: Sequence[WicPair],
    substitutes: SubstituteVectors | None = None,
) -> WicResult:
    """Return the accuracy by layer, and for the vectors of substitutes. Only thresholds are fitted, on train."""
    sets = {"train": train, "dev": dev, "test": test}
    if not all(sets.values()):
        raise InputError("the train, dev or test set has no pairs")
    pairs = [(pair.first, pair.second) for pairs_of_set in sets.values() for pair in pairs_of_set]
    result = _result(pair_cosines(embed, pairs), sets)
    if substitutes is None:
        return result
    return replace(result, substitutes=_result(substitute_cosines(substitutes, pairs), sets))


def _result(cosines: Cosines, sets: Mapping[str, Sequence[WicPair]]) -> WicResult:  # (L, N)
    same = np.array([pair.same for pairs_of_set in sets.values() for pair in pairs_of_set])
    train = len(sets["train"])
    thresholds = np.array([fit_threshold(row[:train], same[:train]) for row in cosines])
    right = (cosines >= thresholds[:, None]) == same
    counts = {name: len(pairs_of_set) for name, pairs_of_set in sets.items()}
    ends = np.cumsum(list(counts.values()))
    shares = [100 * right_of_set.mean(1) for right_of_set in np.split(right, ends[:-1], axis=1)]
    right_train, right_dev, right_test = (tuple(share.tolist()) for share in shares)
    return WicResult(right_train, right_dev, right_test, tuple(thresholds.tolist()), counts)


def fit_threshold(cosines: Cosines, same: npt.NDArray[np.bool_]) -> float:
    """Return the threshold with the best accuracy, halfway between two cosines; of several the lowest."""
    values, inverse = np.unique(cosines, return_inverse=True)  # increasing
    gains = np.bincount(inverse, weights=np.where(same, 1, -1), minlength=len(values))
    # The accuracy of a threshold below the n-th value; the last threshold is above all values.
    right = np.append(np.cumsum(gains[::-1])[::-1], 0)
    best = int(right.argmax())
    if best == 0:
        return float(values[0]) - 1
    if best == len(values):
        return float(values[-1]) + 1
    return (float(values[best - 1]) + float(values[best])) / 2
