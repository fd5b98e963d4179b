"""How good answers are: numbers that each example adds, and the figures that their sums make.

A figure is a function of sums alone, over the last axis, so that the same one scores a file and every resample of it.
C numbers an example adds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyelmo.arrays import Float64Array


@dataclass(frozen=True)
class Score:
    """Figures in percent, the main one first, and the sums behind them."""

    figures: dict[str, float]
    sums: dict[str, float]

    @property
    def main(self) -> float:
        return next(iter(self.figures.values()))

    def facts(self) -> dict[str, Any]:
        """For a file: the main figure under a name that all tasks share, and all by their own."""
        return {"score": self.main, **self.figures, **self.sums}

    def __str__(self) -> str:
        """The figures for people, the main one last."""
        main, *others = self.figures.items()
        return ", ".join(f"{name} {value:.2f}" for name, value in [*others, main])


@dataclass(frozen=True)
class Metric:
    """What is counted, by name, and what the sums (..., C) say: figures (...) in percent, the main one first."""

    name: str  # of the main figure, in words
    counts: tuple[str, ...]
    figures: Callable[[Float64Array], dict[str, Float64Array]]

    def main(self, sums: Float64Array) -> Float64Array:
        return next(iter(self.figures(sums).values()))

    def score(self, counts: Sequence[Sequence[float]]) -> Score:
        """Of examples, each with its C numbers."""
        sums = np.array(counts, np.float64).sum(0)
        figures = {name: float(value) for name, value in self.figures(sums).items()}
        numbers = [int(value) if value.is_integer() else value for value in sums.tolist()]
        return Score(figures, dict(zip(self.counts, numbers, strict=True)))


def main_score(part: Mapping[str, Any]) -> float:
    """The metric in a part of result.json; runs before there was `score` called it f1."""
    return float(part["score"] if "score" in part else part["f1"])


def percentage(part: Float64Array, whole: Float64Array) -> Float64Array:
    """In percent; 0 of nothing."""
    found: Float64Array = 100 * part / np.where(whole > 0, whole, 1.0)
    return found


def _spans(sums: Float64Array) -> dict[str, Float64Array]:
    right, found, gold = np.moveaxis(sums, -1, 0)
    return {
        "f1": percentage(2 * right, found + gold),
        "precision": percentage(right, found),
        "recall": percentage(right, gold),
    }


SPAN_F1 = Metric("span F1", ("right", "found", "gold"), _spans)
ACCURACY = Metric("accuracy", ("right", "of"), lambda sums: {"accuracy": percentage(sums[..., 0], sums[..., 1])})
