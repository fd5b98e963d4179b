"""Scores of clusters of mentions: MUC, B-cubed and CEAF (phi 4) as the reference scorer (v8.01) counts them.

A mention is correct if its bounds are. A cluster of one mention counts like any other for B-cubed and CEAF, but not for
MUC, which counts links. A mention that an answer repeats counts once, in the first cluster that has it.

The counts of documents add up. They are, for each metric in the order of METRICS, the numerators and denominators of
precision and recall. `f1` and `mean_f1` turn sums of counts, for any number of resamples at once, into scores.

K gold clusters (the key), R predicted clusters (the response).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from pyelmo.arrays import Float64Array

METRICS = ("muc", "b3", "ceafe")
PARTS = ("p_num", "p_den", "r_num", "r_den")
FIELDS = tuple(f"{metric}_{part}" for metric in METRICS for part in PARTS)  # names of a document's counts
_Clusters = list[frozenset[Hashable]]


def count_clusters(gold: Iterable[Iterable[Hashable]], predicted: Iterable[Iterable[Hashable]]) -> tuple[float, ...]:
    """Return the counts of one document in the order of FIELDS. A mention is any hashable value: (start, end)."""
    key, response = _distinct(gold), _distinct(predicted)
    by_response, by_key = _cluster_numbers(response), _cluster_numbers(key)
    muc_p, muc_r = _links(response, by_key), _links(key, by_response)
    b3_p, b3_r = _shares(response, by_key), _shares(key, by_response)
    similarity = best_sum(_similarity(key, by_response, [len(cluster) for cluster in response]))
    return (*muc_p, *muc_r, *b3_p, *b3_r, similarity, float(len(response)), similarity, float(len(key)))


def f1(counts: npt.ArrayLike) -> Float64Array:  # (..., 12) -> (..., 3)
    """Return the F1 of each metric in percent, 0 if nothing is correct."""
    parts = np.asarray(counts, np.float64).reshape(*np.shape(counts)[:-1], len(METRICS), len(PARTS))
    p_num, p_den, r_num, r_den = np.moveaxis(parts, -1, 0)
    precision = np.divide(p_num, p_den, out=np.zeros_like(p_num), where=p_den > 0)
    recall = np.divide(r_num, r_den, out=np.zeros_like(r_num), where=r_den > 0)
    total = precision + recall
    scores: Float64Array = np.divide(200 * precision * recall, total, out=np.zeros_like(total), where=total > 0)
    return scores


def mean_f1(counts: npt.ArrayLike) -> Float64Array:  # (..., 12) -> (...)
    """Return the score of the CoNLL-2012 shared task: the mean of the three."""
    scores: Float64Array = f1(counts).mean(-1)
    return scores


def best_sum(values: Float64Array) -> float:  # (K, R)
    """Return the largest sum of non-negative values of which no two share a row or a column (Hungarian algorithm)."""
    used = values[values.any(1)][:, values.any(0)]  # rows and columns of zeros add nothing
    if not used.size:
        return 0.0
    gains = used if used.shape[0] <= used.shape[1] else used.T
    return float(gains[np.arange(len(gains)), assign(-gains)].sum())


def assign(costs: Float64Array) -> npt.NDArray[np.int64]:  # (K, R), K <= R -> (K,)
    """Return the column of each row in the cheapest assignment, by shortest augmenting paths with potentials.

    Row 0 and column 0 are outside the matrix: column 0 holds the row that is being assigned.
    """
    rows, columns = costs.shape
    row_prices, column_prices = np.zeros(rows + 1), np.zeros(columns + 1)
    owner = np.zeros(columns + 1, np.int64)  # the row assigned to each column, 0 for none
    for row in range(1, rows + 1):
        owner[0], column = row, 0
        shortest = np.full(columns + 1, np.inf)
        before = np.zeros(columns + 1, np.int64)
        visited = np.zeros(columns + 1, bool)
        while owner[column]:
            visited[column] = True
            current = owner[column]
            lengths = costs[current - 1] - row_prices[current] - column_prices[1:]
            better = ~visited[1:] & (lengths < shortest[1:])
            shortest[1:][better] = lengths[better]
            before[1:][better] = column
            column = int(np.where(visited, np.inf, shortest)[1:].argmin()) + 1
            step = shortest[column]
            row_prices[owner[visited]] += step
            column_prices[visited] -= step
            shortest[~visited] -= step
        while column:
            owner[column] = owner[before[column]]
            column = int(before[column])
    assignment = np.zeros(rows, np.int64)
    taken = np.flatnonzero(owner[1:])
    assignment[owner[1:][taken] - 1] = taken
    return assignment


def _distinct(clusters: Iterable[Iterable[Hashable]]) -> _Clusters:
    """Drop mentions that an earlier cluster has, and clusters that are then empty."""
    seen: set[Hashable] = set()
    distinct = []
    for cluster in clusters:
        new = frozenset(cluster) - seen
        seen |= new
        if new:
            distinct.append(new)
    return distinct


def _cluster_numbers(clusters: _Clusters) -> dict[Hashable, int]:
    return {mention: number for number, cluster in enumerate(clusters) for mention in cluster}


def _links(clusters: _Clusters, others: dict[Hashable, int]) -> tuple[float, float]:
    """MUC: return the number of links that both sides have, and of all links needed to connect each cluster."""
    correct = links = 0
    for cluster in clusters:
        parts = {others[mention] for mention in cluster if mention in others}
        alone = sum(mention not in others for mention in cluster)
        links += len(cluster) - 1
        correct += len(cluster) - len(parts) - alone
    return float(correct), float(links)


def _shares(clusters: _Clusters, others: dict[Hashable, int]) -> tuple[float, float]:
    """B-cubed: return the sum, over mentions, of the share of its cluster that the other side also groups with it."""
    total = 0.0
    for cluster in clusters:
        together = Counter(others[mention] for mention in cluster if mention in others)
        total += sum(count * count for count in together.values()) / len(cluster)
    return total, float(sum(len(cluster) for cluster in clusters))


def _similarity(key: _Clusters, by_response: dict[Hashable, int], sizes: Sequence[int]) -> Float64Array:  # (K, R)
    """CEAF's phi 4: return twice the mentions that two clusters share, divided by the mentions of both."""
    values = np.zeros((len(key), len(sizes)))
    for row, cluster in enumerate(key):
        for column, count in Counter(by_response[mention] for mention in cluster if mention in by_response).items():
            values[row, column] = 2 * count / (len(cluster) + sizes[column])
    return values
