"""WiC, words in context (Pilehvar & Camacho-Collados 2019): does a word mean the same in two sentences?

    the cosine of its two vectors --> "the same" from a threshold on, fitted on the training part, for each layer

The published folders train, dev and test hold NAME.data.txt (word, part of speech, the two places, two tokenised
sentences) and NAME.gold.txt (T or F).

L layers, N pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pyelmo.encoders.base import Encoder
from pyelmo.errors import FormatError, InputError
from pyelmo.probes.in_context import Cosines, WordInContext, pair_cosines
from pyelmo.text.lines import check_published, existing, numbered_lines

PAIRS = {"train": 5428, "dev": 638, "test": 1400}  # as published


@dataclass(frozen=True)
class WicPair:
    """A word in two sentences."""

    word: str
    first: WordInContext
    second: WordInContext
    same: bool


@dataclass(frozen=True)
class WicResult:
    """Accuracy in percent, by layer. Half of the pairs of each part are the same, so chance is 50."""

    train: tuple[float, ...]
    dev: tuple[float, ...]
    test: tuple[float, ...]
    thresholds: tuple[float, ...]
    pairs: dict[str, int]


def read_wic(data: str | Path) -> list[WicPair]:
    """The pairs of a NAME.data.txt with NAME.gold.txt beside it."""
    data = existing(data)
    name = data.name.removesuffix(".data.txt")
    gold = [line for _, line in numbered_lines(existing(data.with_name(f"{name}.gold.txt")))]
    pairs = []
    for number, line in numbered_lines(data):
        where = f"{data}, line {number}"
        columns = line.split("\t")
        if len(columns) != 5:
            raise FormatError(f"{where}: {len(columns)} columns, expected word, tag, places and two sentences")
        word, _, places, *sentences = columns
        found = places.split("-")
        if len(found) != 2 or not all(place.isdecimal() for place in found):
            raise FormatError(f"{where}: expected two places like 2-5, got {places[:20]!r}")
        first, second = (WordInContext(text.split(), int(place)) for text, place in zip(sentences, found, strict=True))
        if first.position >= len(first.words) or second.position >= len(second.words):
            raise FormatError(f"{where}: a place of {places} is beyond its sentence")
        if number > len(gold) or gold[number - 1] not in ("T", "F"):
            raise FormatError(f"{where}: line {number} of {name}.gold.txt is neither T nor F")
        pairs.append(WicPair(word, first, second, gold[number - 1] == "T"))
    check_published(data, len(pairs), PAIRS.get(name), "pairs", exact=True)
    if len(gold) != len(pairs):
        raise FormatError(f"{data}: {len(pairs):,} pairs, but {name}.gold.txt has {len(gold):,} answers")
    return pairs


def evaluate(embed: Encoder, train: Sequence[WicPair], dev: Sequence[WicPair], test: Sequence[WicPair]) -> WicResult:
    """The accuracy by layer; only the threshold is fitted, on the training part alone."""
    parts = {"train": train, "dev": dev, "test": test}
    if not all(parts.values()):
        raise InputError("the probe needs pairs to fit its threshold on, and pairs to test")
    pairs = [pair for part in parts.values() for pair in part]
    cosines = pair_cosines(embed, [(pair.first, pair.second) for pair in pairs])  # (L, N)
    same = np.array([pair.same for pair in pairs])
    thresholds = np.array([fit_threshold(row[: len(train)], same[: len(train)]) for row in cosines])
    right = (cosines >= thresholds[:, None]) == same
    ends = np.cumsum([len(part) for part in parts.values()])
    shares = [100 * part.mean(1) for part in np.split(right, ends[:-1], axis=1)]
    accuracy = {name: tuple(share.tolist()) for name, share in zip(parts, shares, strict=True)}
    counts = {name: len(part) for name, part in parts.items()}
    return WicResult(**accuracy, thresholds=tuple(thresholds.tolist()), pairs=counts)


def fit_threshold(cosines: Cosines, same: npt.NDArray[np.bool_]) -> float:
    """From which cosine on "the same" is right most often: halfway between two neighbours, the lowest of the best."""
    values, inverse = np.unique(cosines, return_inverse=True)  # rising
    gains = np.bincount(inverse, weights=np.where(same, 1, -1), minlength=len(values))
    right = np.append(np.cumsum(gains[::-1])[::-1], 0)  # for a threshold below the n-th value; the last: above them all
    best = int(right.argmax())
    if best == 0:
        return float(values[0]) - 1
    if best == len(values):
        return float(values[-1]) + 1
    return (float(values[best - 1]) + float(values[best])) / 2
