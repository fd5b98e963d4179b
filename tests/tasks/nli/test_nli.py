"""Inference on a few pairs: training, scores and predictions from raw text."""

from __future__ import annotations

import pytest
from task_support import PAIRS, recipe

from pyelmo.tasks import load
from pyelmo.tasks.harness.run import RunSettings, train_run

LEARNS = [  # enough to learn the pairs in a few epochs
    "network.hidden=32", "network.dropout=0.0", "elmo.dropout=0.0", "words.dim=32", "training.epochs=15",
    "training.lr=0.005", "training.patience=15", "training.halve_after=0",
]  # fmt: skip


@pytest.mark.parametrize("where", ["input", "output", "both"])
def test_entailment_of_a_premise_and_a_hypothesis(tmp_path, ner_data, where):
    (tmp_path / "data").write_text(PAIRS * 4, "utf-8")
    settings = recipe("nli", *LEARNS, f"elmo.where={where}")
    run = RunSettings(task="nli", data=[tmp_path / "data"] * 2, recipe=settings, encoder=str(ner_data / "LM"))
    (result,) = train_run(run, tmp_path / "run")
    assert (result["dev"]["score"], result["dev"]["accuracy"], result["dev"]["of"]) == (100, 100, 36)
    model = load(tmp_path / "run")
    answers = model.predict([("The dog sleeps.", "A dog is awake."), ("The man sleeps.", "A man is asleep.")])
    assert [model.task.format(examples) for examples in answers] == [
        "contradiction: The dog sleeps . -> A dog is awake .",
        "entailment: The man sleeps . -> A man is asleep .",
    ]
    [[first], _] = answers
    assert (first.label, max(first.probabilities, key=first.probabilities.get)) == ("contradiction", first.label)
    assert set(first.probabilities) == {"contradiction", "entailment", "neutral"}
    assert sum(first.probabilities.values()) == pytest.approx(1, abs=1e-6)
    assert first.to_json()["labels"] == ("contradiction",)
