"""Groups of near vectors: which occurrences of a word belong together, without being told how many groups there are.

N vectors, D vector, K groups.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pyelmo.arrays import Float32Array
from pyelmo.probes.in_context import ROUNDING
from pyelmo.vectors.static import unit_vectors

Labels = npt.NDArray[np.int64]
MOST = 5  # groups; more are hard to tell apart by colour
CLEAR = 0.15  # the mean silhouette below which vectors are one group
MARGIN = 0.02  # by which more groups must be better than fewer
STARTS, ROUNDS = 6, 30  # of k-means


def cluster(vectors: Float32Array) -> Labels:  # (N, D) -> (N,)
    """Return the number of each vector's group; group 0 is the largest.

    The groups come from k-means on unit vectors minus their mean, which holds what all occurrences of a word share. The
    number of groups is the one with the largest silhouette (Rousseeuw 1987): how much nearer a vector is to its own
    group than to the next. It is one group if no division is clear.
    """
    units = unit_vectors(vectors)
    centred = units - units.mean(0)
    best, best_score = np.zeros(len(vectors), dtype=np.int64), CLEAR - MARGIN
    if len(vectors) < 4 or np.linalg.norm(centred, axis=1).max() < ROUNDING:
        return best
    units = unit_vectors(centred)
    for count in range(2, min(MOST, len(vectors) - 1) + 1):
        labels = _k_means(units, count)
        score = silhouette(units, labels)
        if score > best_score + MARGIN:
            best, best_score = labels, score
    order = np.argsort(-np.bincount(best), kind="stable")
    numbers: Labels = np.argsort(order)[best]
    return numbers


def silhouette(units: Float32Array, labels: Labels) -> float:  # (N, D), (N,)
    """Return the mean silhouette, by squared distances, of a division; a group of one counts as 0."""
    distances = np.maximum(1 - (units @ units.T).astype(np.float64), 0)
    member = labels[:, None] == np.arange(labels.max() + 1)  # (N, K)
    sizes = member.sum(0)
    if np.count_nonzero(sizes) < 2:
        return 0.0
    sums = distances @ member  # (N, K)
    own, rows = sizes[labels], np.arange(len(labels))
    inside = sums[rows, labels] / np.maximum(own - 1, 1)
    means = np.where(sizes > 0, sums / np.maximum(sizes, 1), np.inf)
    means[rows, labels] = np.inf
    nearest = means.min(1)
    values = np.where(own > 1, (nearest - inside) / np.maximum(np.maximum(nearest, inside), 1e-12), 0)
    return float(values.mean())


def _k_means(units: Float32Array, count: int) -> Labels:
    """Return the best of several divisions; their random starts have a fixed seed."""
    random = np.random.default_rng(0)
    best: tuple[float, Labels] | None = None
    for _ in range(STARTS):
        centres = units[random.choice(len(units), count, replace=False)]
        labels = np.full(len(units), -1, dtype=np.int64)
        for _ in range(ROUNDS):
            nearest = (units @ centres.T).argmax(1)
            if (nearest == labels).all():
                break
            labels = nearest
            sums = np.stack([units[labels == group].sum(0) for group in range(count)])
            centres = unit_vectors(sums)
        near = float((units * centres[labels]).sum())
        if best is None or near > best[0]:
            best = (near, labels)
    assert best is not None
    return best[1]
