"""The paired bootstrap test: is the difference between two runs larger than chance?

A resample draws test examples with replacement, the same ones for both runs. Examples that belong together, such as the
questions about one article, are one unit and are drawn together. The score depends on the seeds, too, but a run has two
or three, and drawing among so few shows too little variance. So each resample adds a draw of the t distribution, scaled
by the standard error of the difference over seeds. The variance is that of the seeds of both runs: a run with a single
seed is taken to vary as much as the other. If both have a single seed, the variance of seeds is not known and left out.
Noise that differs by seed and example is in both draws, so p errs on the careful side.

S seeds, N examples, U units, C counts of a metric, R resamples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pyelmo.arrays import Float64Array
from pyelmo.errors import InputError
from pyelmo.tasks.harness.metrics import Metric

RESAMPLES = 10_000
CHUNK = 1_000  # resamples drawn at a time, to limit memory


@dataclass(frozen=True)
class BootstrapResult:
    """A paired bootstrap of the difference between two runs."""

    p: float  # the share of resamples in which the second run is not better
    low: float  # 95 % confidence interval of the difference
    high: float
    units: int  # how many were drawn, and from how many
    seeds: tuple[int, int]  # of the first and of the second run


def paired_bootstrap(
    first: Float64Array,
    second: Float64Array,
    metric: Metric,
    *,
    units: npt.NDArray[np.int64] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> BootstrapResult:
    """Compare the mean scores of two runs, given the counts (S, N, C) of each.

    `units` (N,) has the number of each example's unit; by default each example is a unit.
    """
    examples = first.shape[1]
    if second.shape[1] != examples:
        raise InputError(
            f"the runs have predictions for {examples} and {second.shape[1]} examples. Compare runs on the same data."
        )
    if units is not None:
        first, second = _by_unit(first, units), _by_unit(second, units)
    number = first.shape[1]
    freedom, error = _seed_error(metric.main(first.sum(1)), metric.main(second.sum(1)))
    random = np.random.default_rng(seed)
    differences = []
    for start in range(0, resamples, CHUNK):
        rows = min(CHUNK, resamples - start)
        weights = random.multinomial(number, np.full(number, 1 / number), rows).astype(np.float64)  # (R, U)
        old, new = (
            metric.main(np.einsum("ru,suc->src", weights, counts, optimize=True)).mean(0) for counts in (first, second)
        )  # (R,) each
        differences.append(new - old + error * random.standard_t(max(1, freedom), rows))
    resampled = np.concatenate(differences)
    low, high = np.percentile(resampled, [2.5, 97.5])
    # The tolerance keeps rounding from deciding between equal scores. The + 1 is there because no finite number of
    # resamples proves that p is 0.
    not_better = int((resampled <= 1e-9).sum())
    p = (not_better + 1) / (resamples + 1)
    return BootstrapResult(p, float(low), float(high), number, (len(first), len(second)))


def _by_unit(counts: Float64Array, units: npt.NDArray[np.int64]) -> Float64Array:  # (S, N, C) -> (S, U, C)
    """Return the sums of the counts over the examples of each unit."""
    numbers = np.unique(units, return_inverse=True)[1]
    sums = np.zeros((int(numbers.max(initial=-1)) + 1, counts.shape[0], counts.shape[2]))
    np.add.at(sums, numbers, counts.swapaxes(0, 1))
    return sums.swapaxes(0, 1)


def _seed_error(first: Float64Array, second: Float64Array) -> tuple[int, float]:  # (S,), (S,)
    """Return the degrees of freedom and the standard error of the difference between the mean scores of seeds."""
    freedom = len(first) + len(second) - 2
    squares = sum(((scores - scores.mean()) ** 2).sum() for scores in (first, second))
    return freedom, float(np.sqrt(squares / max(1, freedom) * (1 / len(first) + 1 / len(second))))


def describe_draws(result: BootstrapResult, unit: str, *, saved: bool) -> str:
    """Say what was drawn, such as "48 articles; 1 and 3 seeds"; `saved`: whether the runs have the examples' units."""
    drawn = unit if saved else "example"
    missing = "" if drawn == unit else f" (no {unit} saved)"
    first, second = result.seeds
    return f"{result.units:,} {drawn}{'' if result.units == 1 else 's'}{missing}; {first} and {second} seeds"
