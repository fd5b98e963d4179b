"""The paired bootstrap test: is the difference between two runs larger than chance?

A resample draws the examples with replacement, the same ones for both runs, and the seeds of each run with replacement,
because the score depends on both. Examples that belong together, such as the questions about one article, are drawn
together.

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

    `units` (N,) numbers from 0 the units that are drawn; by default each example is a unit.
    """
    examples = first.shape[1]
    if second.shape[1] != examples:
        raise InputError(
            f"the runs have predictions for {examples} and {second.shape[1]} examples. Compare runs on the same data."
        )
    if units is None:
        units = np.arange(examples)
    number = int(units.max(initial=-1)) + 1
    random = np.random.default_rng(seed)
    differences = []
    for start in range(0, resamples, CHUNK):
        rows = min(CHUNK, resamples - start)
        weights = random.multinomial(number, np.full(number, 1 / number), rows)[:, units].astype(np.float64)  # (R, N)
        difference = np.zeros(rows)
        for sign, counts in ((1, second), (-1, first)):
            drawn = random.multinomial(len(counts), np.full(len(counts), 1 / len(counts)), rows)  # (R, S)
            sums = np.einsum("rn,snc->src", weights, counts, optimize=True)
            difference += sign * (metric.main(sums) * drawn.T).sum(0) / len(counts)
        differences.append(difference)
    resampled = np.concatenate(differences)
    low, high = np.percentile(resampled, [2.5, 97.5])
    # The tolerance keeps rounding from deciding between equal scores. The + 1 is there because no finite number of
    # resamples proves that p is 0.
    not_better = int((resampled <= 1e-9).sum())
    return BootstrapResult((not_better + 1) / (resamples + 1), float(low), float(high))
