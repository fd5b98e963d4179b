"""Metrics: the counts of examples add up to figures in percent."""

from __future__ import annotations

import pytest

from pyelmo.tasks.harness.metrics import ACCURACY, SPAN_F1


def test_counts_add_up_to_the_metric():
    score = SPAN_F1.score([(0, 2, 1), (1, 2, 1)])
    assert score.figures == {"f1": pytest.approx(100 / 3), "precision": 25, "recall": 50}
    assert (score.main, score.sums) == (score.figures["f1"], {"right": 1, "found": 4, "gold": 2})
    assert str(score) == "precision 25.00, recall 50.00, f1 33.33"
    assert SPAN_F1.score([(0, 0, 0)]).main == 0
    assert ACCURACY.score([(1, 1), (0, 1)]).figures == {"accuracy": 50}
