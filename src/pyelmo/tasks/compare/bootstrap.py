"""The paired bootstrap test: is the difference between two runs larger than chance?

S seeds, N examples, C counts of a metric, R resamples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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
    first: Float64Array, second: Float64Array, metric: Metric, *, resamples: int = RESAMPLES, seed: int = 0
) -> BootstrapResult:  # (S, N, C) each
    """Resample the examples with replacement, the same for both runs and all seeds, and compare the mean scores."""
    examples = first.shape[1]
    if second.shape[1] != examples:
        raise InputError(
            f"the runs have predictions for {examples} and {second.shape[1]} examples. Compare runs on the same data."
        )
    random = np.random.default_rng(seed)
    differences = []
    for start in range(0, resamples, CHUNK):
        times = random.multinomial(examples, np.full(examples, 1 / examples), min(CHUNK, resamples - start))
        weights = times.astype(np.float64)  # (R, N)
        differences.append(_mean_scores(weights, second, metric) - _mean_scores(weights, first, metric))
    drawn = np.concatenate(differences)
    low, high = np.percentile(drawn, [2.5, 97.5])
    # The tolerance keeps rounding from deciding between equal scores. The + 1 is there because no finite number of
    # resamples proves that p is 0.
    not_better = int((drawn <= 1e-9).sum())
    return BootstrapResult((not_better + 1) / (resamples + 1), float(low), float(high))


def _mean_scores(weights: Float64Array, counts: Float64Array, metric: Metric) -> Float64Array:
    """Return the main score of each resample, averaged over the seeds: (R, N), (S, N, C) -> (R,)."""
    sums = np.einsum("rn,snc->src", weights, counts, optimize=True)
    means: Float64Array = metric.main(sums).mean(0)
    return means
