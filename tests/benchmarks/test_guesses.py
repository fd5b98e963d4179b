"""benchmarks/models/guesses.py draws gaps that can be drawn again, and counts ranks."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

import pyelmo

sys.path.append(str(Path(__file__).parents[2] / "benchmarks" / "models"))
import guesses

TEXT = "The bank of the river was wide and long .\nHe drank a cup of tea with milk and sugar .\n___ is no sentence to draw .\n"


@pytest.fixture(scope="module")
def model():
    return pyelmo.load("en", precision="int8")


def test_gaps_are_words_of_the_vocabulary_and_the_same_for_a_seed(tmp_path, model):
    (tmp_path / "text.txt").write_text(TEXT, "utf-8")
    gaps = guesses.draw_gaps(tmp_path / "text.txt", model, 5, seed=1)
    assert gaps == guesses.draw_gaps(tmp_path / "text.txt", model, 5, seed=1)
    assert len(gaps) == 2
    for gap in gaps:
        assert gap.word != "."
        assert gap.sentence.replace("___", gap.word) in TEXT
        assert gap.sides == gap.apart
    guesses.check(model, gaps)
    result = guesses.compare(model, gaps)
    assert set(result["ways"]) == set(guesses.WAYS)
    assert all(0 <= share <= 100 for row in result["ways"].values() for share in row.values())
    assert set(guesses.choose(model, gaps)["0.7"]) == {"first", "among_ten"}


def test_a_rank_counts_the_likelier_words_that_are_not_left_out():
    scores = torch.tensor([[3.0, 2.0, 1.0, 0.0], [0.0, 1.0, 2.0, 3.0]])
    left_out = torch.tensor([True, False, False, False])
    assert guesses.ranks(scores, torch.tensor([2, 2]), left_out).tolist() == [1, 1]
    assert guesses.shares([torch.tensor([0, 1, 9, 10])]) == {"first": 25.0, "among_ten": 75.0}
