"""Metrics: counts that each example adds, and the scores computed from their sums.

A score depends on the sums alone and is computed over the last axis, so the same function scores a file and all of its
bootstrap resamples at once. C counts of an example.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyelmo.arrays import Float64Array


@dataclass(frozen=True)
class Score:
    """Scores in percent by name, the main one first, and the sums they were computed from."""

    figures: dict[str, float]
    sums: dict[str, float]

    @property
    def main(self) -> float:
        return next(iter(self.figures.values()))

    def facts(self) -> dict[str, Any]:
        """Return all values for a JSON file; the main score is also under `score`, which all tasks have."""
        return {"score": self.main, **self.figures, **self.sums}

    def __str__(self) -> str:
        """Return the scores as text, the main one last."""
        main, *others = self.figures.items()
        return ", ".join(f"{name} {value:.2f}" for name, value in [*others, main])


@dataclass(frozen=True)
class Metric:
    """The names of the counts, and `figures`: sums (..., C) -> scores (...) in percent by name, the main one first."""

    name: str  # of the main score, as shown to users
    counts: tuple[str, ...]
    figures: Callable[[Float64Array], dict[str, Float64Array]]

    def main(self, sums: Float64Array) -> Float64Array:
        return next(iter(self.figures(sums).values()))

    def score(self, counts: Sequence[Sequence[float]]) -> Score:
        """Return the score of examples, given the C counts of each."""
        sums = np.array(counts, np.float64).sum(0)
        figures = {name: float(value) for name, value in self.figures(sums).items()}
        numbers = [int(value) if value.is_integer() else value for value in sums.tolist()]
        return Score(figures, dict(zip(self.counts, numbers, strict=True)))


def main_score(part: Mapping[str, Any]) -> float:
    """Return the main score of a data set in result.json. Old runs have it under `f1`."""
    return float(part["score"] if "score" in part else part["f1"])


def percentage(part: Float64Array, whole: Float64Array) -> Float64Array:
    """Return `part` of `whole` in percent, and 0 if `whole` is 0."""
    percent: Float64Array = 100 * part / np.where(whole > 0, whole, 1.0)
    return percent


def _span_scores(sums: Float64Array) -> dict[str, Float64Array]:
    correct, predicted, gold = np.moveaxis(sums, -1, 0)
    return {
        "f1": percentage(2 * correct, predicted + gold),
        "precision": percentage(correct, predicted),
        "recall": percentage(correct, gold),
    }


SPAN_F1 = Metric("span F1", ("right", "found", "gold"), _span_scores)
ACCURACY = Metric("accuracy", ("right", "of"), lambda sums: {"accuracy": percentage(sums[..., 0], sums[..., 1])})
