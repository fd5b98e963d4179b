"""Scores of clusters: known values of the reference scorer, the paper's worked example, and invariants."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyelmo.tasks.coref.scores import FIELDS, METRICS, assign, best_sum, count_clusters, f1, mean_f1

KEY = ["a", "bc", "def"]

# Clusters given for KEY (x, y, z are in no cluster wanted) and recall, precision of MUC, B-cubed and CEAF as known of
# the reference scorer's own cases; None where those name no value.
CASES = {
    "A1": (KEY, ["a", "bc", "def"], (1, 1), (1, 1), (1, 1)),
    "A2": (KEY, ["a", "de"], (1 / 3, 1), (7 / 18, 1), (0.6, 0.9)),
    "A3": (KEY, ["a", "bcx", "defy", "z"], (1, 3 / 5), (1, (4 + 7 / 12) / 9), (0.88571, 0.66429)),
    "A4": (KEY, ["a", "bcx", "dy", "z"], (1 / 3, 1 / 3), (10 / 18, 17 / 42), (0.73333, 0.55)),
    "A10": (KEY, ["a", "b", "c", "d", "e", "f"], (0, 0), (3 / 6, 1), None),
    "A11": (KEY, ["abcdef"], (1, 3 / 5), (1, 14 / 36), None),
    "A12": (KEY, ["a", "b", "d", "e", "x", "y", "z"], (0, 0), (13 / 36, 4 / 7), None),
    "A13": (KEY, ["abdexyz"], (1 / 3, 1 / 6), (17 / 36, 6 / 49), None),
    "D1": (["12345", "67", "89ABC"], ["12345", "6789ABC"], (1, 9 / 10), (1, 16 / 21), None),
    "E1": (["12345", "67", "89ABC"], ["1234589ABC", "67"], (1, 9 / 10), (1, 7 / 12), None),
    # The worked example of Pradhan et al. (2014).
    "paper": (["abc", "defg"], ["ab", "cd", "fghi"], (0.4, 0.4), (35 / 84, 0.5), (0.65, 1.3 / 3)),
}


@pytest.mark.parametrize("name", CASES)
def test_known_values_of_the_reference_scorer(name):
    wanted, given_clusters, *known = CASES[name]
    counts = count_clusters(wanted, given_clusters)
    assert len(counts) == len(FIELDS) == 12
    for place, values in enumerate(known):
        p_num, p_den, r_num, r_den = counts[4 * place : 4 * place + 4]
        if values is not None:
            assert (r_num / max(r_den, 1), p_num / max(p_den, 1)) == pytest.approx(values, abs=1e-5), METRICS[place]


def test_the_final_score_is_made_of_sums_over_documents():
    first, second = count_clusters(["ab"], ["ab"]), count_clusters(["abc", "de"], ["ab", "cde"])
    total = np.add(first, second)
    muc, b3, ceafe = f1(total)
    # MUC: 1 + 2 links of 1 + 3 on either side; B-cubed: 2 + 11/3 of 2 + 5; CEAF: 1 + 2 * 4/5 of 1 + 2.
    assert (muc, b3, ceafe) == pytest.approx((75, 100 * (2 + 11 / 3) / 7, 100 * 2.6 / 3))
    assert mean_f1(total) == pytest.approx((muc + b3 + ceafe) / 3)
    many = np.stack([first, second, total])
    assert mean_f1(many) == pytest.approx([mean_f1(row) for row in many])


def test_nothing_given_or_nothing_wanted_scores_nothing():
    for pair in (([], ["ab"]), (["ab"], []), ([], [])):
        assert mean_f1(count_clusters(*pair)) == 0


def test_single_mentions_are_nothing_to_muc_and_count_for_the_others():
    assert count_clusters(["a", "b"], ["a", "b"])[:4] == (0, 0, 0, 0)
    assert list(f1(count_clusters(["a", "b"], ["a", "b"]))) == [0, 100, 100]
    assert count_clusters(["ab"], ["ab", "c"])[4:] == (2, 3, 2, 2, 1, 2, 1, 1)


def test_a_mention_given_twice_counts_once_in_the_first_cluster():
    assert count_clusters(["ab"], ["ab", "bc"]) == count_clusters(["ab"], ["ab", "c"])
    assert count_clusters(["ab"], ["aab"]) == count_clusters(["ab"], ["ab"])


partitions = st.lists(st.integers(0, 4), min_size=2, max_size=9).map(
    lambda rows: [[place for place, row in enumerate(rows) if row == number] for number in set(rows)]
)


@given(partitions)
def test_a_perfect_answer_is_100(clusters):
    muc, b3, ceafe = f1(count_clusters(clusters, clusters))
    assert (b3, ceafe) == pytest.approx((100, 100))
    assert muc == pytest.approx(100 if any(len(cluster) > 1 for cluster in clusters) else 0)


@given(partitions, partitions)
def test_wanted_and_given_exchanged_exchange_precision_and_recall(wanted, answer):
    there, back = (np.reshape(count_clusters(*pair), (3, 2, 2)) for pair in ((wanted, answer), (answer, wanted)))
    assert there == pytest.approx(back[:, ::-1])
    assert ((there[..., 0] >= 0) & (there[..., 0] <= there[..., 1] + 1e-9)).all()


@given(st.integers(1, 5), st.integers(0, 2), st.integers(0, 2**32 - 1))
def test_the_best_assignment_is_that_of_trying_all(rows, more, seed):
    random = np.random.default_rng(seed)
    values = random.integers(0, 4, (rows, rows + more)) * random.random((rows, rows + more)).round(1)
    best = max(
        sum(values[row, column] for row, column in enumerate(order)) for order in permutations(range(rows + more), rows)
    )
    assert best_sum(values) == pytest.approx(best)
    assert best_sum(values.T) == pytest.approx(best)
    columns = assign(-values)
    assert len(set(columns.tolist())) == rows
    assert values[np.arange(rows), columns].sum() == pytest.approx(best)


def test_an_assignment_of_hundreds_takes_no_time():
    values = np.random.default_rng(0).random((300, 400))
    assert 299 < best_sum(np.eye(300) + values[:, :300] * 1e-3) < 301
    assert best_sum(values) > values.max(1).sum() * 0.98
