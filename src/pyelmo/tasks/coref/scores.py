"""How well clusters of mentions agree: MUC, B-cubed and CEAF (phi 4) as the reference scorer (v8.01) counts them.

A mention is right if its bounds are. A cluster of one mention counts as any other for B-cubed and CEAF and is nothing
to MUC, which counts links. What stands twice in an answer counts once, in the first cluster that has it.

Counts of documents add up: for each metric, in the order of METRICS, the numerators and denominators of precision and
recall. `f1` and `mean_f1` make scores from sums of them, of any number of documents and resamples at once.

K clusters wanted, R clusters given.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from pyelmo.arrays import Float64Array

METRICS = ("muc", "b3", "ceafe")
PARTS = ("p_num", "p_den", "r_num", "r_den")
FIELDS = tuple(f"{metric}_{part}" for metric in METRICS for part in PARTS)  # the names of a document's counts
_Clusters = list[frozenset[Hashable]]


def count_clusters(wanted: Iterable[Iterable[Hashable]], given: Iterable[Iterable[Hashable]]) -> tuple[float, ...]:
    """The counts of one document, named by FIELDS. A mention is anything that can be compared: (start, end)."""
    key, response = _distinct(wanted), _distinct(given)
    by_response, by_key = _places(response), _places(key)
    muc_p, muc_r = _links(response, by_key), _links(key, by_response)
    b3_p, b3_r = _shares(response, by_key), _shares(key, by_response)
    alike = best_sum(_similarity(key, by_response, [len(cluster) for cluster in response]))
    return (*muc_p, *muc_r, *b3_p, *b3_r, alike, float(len(response)), alike, float(len(key)))


def f1(counts: npt.ArrayLike) -> Float64Array:  # (..., 12) -> (..., 3)
    """The F1 of each metric in percent, 0 where nothing is right."""
    parts = np.asarray(counts, np.float64).reshape(*np.shape(counts)[:-1], len(METRICS), len(PARTS))
    p_num, p_den, r_num, r_den = np.moveaxis(parts, -1, 0)
    precision = np.divide(p_num, p_den, out=np.zeros_like(p_num), where=p_den > 0)
    recall = np.divide(r_num, r_den, out=np.zeros_like(r_num), where=r_den > 0)
    both = precision + recall
    found: Float64Array = np.divide(200 * precision * recall, both, out=np.zeros_like(both), where=both > 0)
    return found


def mean_f1(counts: npt.ArrayLike) -> Float64Array:  # (..., 12) -> (...)
    """The score of the CoNLL-2012 task: the mean of the three."""
    found: Float64Array = f1(counts).mean(-1)
    return found


def best_sum(values: Float64Array) -> float:  # (K, R)
    """The largest sum of values (none negative) of which no two share a row or a column: the Hungarian algorithm."""
    used = values[values.any(1)][:, values.any(0)]  # the others bring nothing
    if not used.size:
        return 0.0
    gains = used if used.shape[0] <= used.shape[1] else used.T
    return float(gains[np.arange(len(gains)), assign(-gains)].sum())


def assign(costs: Float64Array) -> npt.NDArray[np.int64]:  # (K, R), K <= R -> (K,)
    """The column of each row in the cheapest assignment, by shortest augmenting paths with potentials.

    Row 0 and column 0 are outside of the matrix: column 0 holds the row that is being assigned.
    """
    rows, columns = costs.shape
    row_prices, column_prices = np.zeros(rows + 1), np.zeros(columns + 1)
    owner = np.zeros(columns + 1, np.int64)  # the row that has a column, 0 for none
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
    found = np.zeros(rows, np.int64)
    taken = np.flatnonzero(owner[1:])
    found[owner[1:][taken] - 1] = taken
    return found


def _distinct(clusters: Iterable[Iterable[Hashable]]) -> _Clusters:
    seen: set[Hashable] = set()
    found = []
    for cluster in clusters:
        new = frozenset(cluster) - seen
        seen |= new
        if new:
            found.append(new)
    return found


def _places(clusters: _Clusters) -> dict[Hashable, int]:
    return {mention: place for place, cluster in enumerate(clusters) for mention in cluster}


def _links(clusters: _Clusters, others: dict[Hashable, int]) -> tuple[float, float]:
    """MUC: of the links that hold each cluster together, those that the other side has too."""
    right = links = 0
    for cluster in clusters:
        parts = {others[mention] for mention in cluster if mention in others}
        alone = sum(mention not in others for mention in cluster)
        links += len(cluster) - 1
        right += len(cluster) - len(parts) - alone
    return float(right), float(links)


def _shares(clusters: _Clusters, others: dict[Hashable, int]) -> tuple[float, float]:
    """B-cubed: for each mention, the share of its cluster that is with it on the other side too."""
    total = 0.0
    for cluster in clusters:
        together = Counter(others[mention] for mention in cluster if mention in others)
        total += sum(count * count for count in together.values()) / len(cluster)
    return total, float(sum(len(cluster) for cluster in clusters))


def _similarity(key: _Clusters, by_response: dict[Hashable, int], sizes: Sequence[int]) -> Float64Array:  # (K, R)
    """CEAF's phi 4: twice the mentions that two clusters share, by the mentions of both."""
    values = np.zeros((len(key), len(sizes)))
    for row, cluster in enumerate(key):
        for column, count in Counter(by_response[one] for one in cluster if one in by_response).items():
            values[row, column] = 2 * count / (len(cluster) + sizes[column])
    return values
