"""Entities: counts of spans, and the labels of the training data."""

from __future__ import annotations

from pyelmo.tasks.harness.task import Example
from pyelmo.tasks.ner.task import TASK


def test_counts_are_of_whole_spans():
    example = Example((("a", "b", "c"),), ("B-PER", "I-PER", "O"))
    assert TASK.count(example, ("B-PER", "O", "B-LOC")) == (0, 2, 1)


def test_both_labels_of_a_kind_are_known_if_only_one_was_seen():
    examples = [Example((("Rome",),), ("B-LOC",))]
    assert TASK.build_vocabularies(examples)["labels"] == ("O", "B-LOC", "I-LOC")
