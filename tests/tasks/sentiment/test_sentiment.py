"""Sentiment on a few reviews: training, scores and predictions from raw text."""

from __future__ import annotations

import json
from pathlib import Path

from task_support import SST, recipe

from pyelmo.tasks import load
from pyelmo.tasks.harness.run import RunSettings, train_run
from pyelmo.tasks.harness.task import Example
from pyelmo.tasks.sentiment.task import TASK

NSMC = (
    "id\tdocument\tlabel\n"
    + "".join(f"{n}\t{'좋은' if n % 2 else '나쁜'} 영화\t{n % 2}\n" for n in range(8))
    + "9\t\t0\n"
)


def run(tmp_path: Path, text: str, *changes: str) -> Path:
    (tmp_path / "data").write_text(text, "utf-8")
    settings = RunSettings(task="sentiment", data=[tmp_path / "data"] * 2, recipe=recipe("sentiment", *changes))
    train_run(settings, tmp_path / "run")
    return tmp_path / "run"


def test_sentiment_of_trees_with_and_without_phrases(tmp_path, ner_data):
    changes = ["network.hidden=8", "network.input_dropout=0.0", "network.dropout=0.0", "training.batch=9"]
    changes += [
        "training.patience=40",
        "training.halve_after=0",
        "training.epochs=40",
        "training.lr=0.01",
        "data.phrases=true",
        "data.binary=true",
    ]
    model = load(run(tmp_path, SST, *changes))
    assert [model.task.format(examples) for examples in model.predict(["A great film", "A dull film"])] == [
        "1: A great film",
        "0: A dull film",
    ]
    result = json.loads((tmp_path / "run" / "seed-1" / "result.json").read_text())
    assert (result["dev"]["accuracy"], result["dev"]["of"]) == (100, 6)  # phrases are for training alone
    assert result["examples"] == 18  # ... without the neutral ones


def test_sentiment_of_korean_reviews_one_of_them_empty(tmp_path):
    output = run(tmp_path, NSMC, "network.hidden=8", "data.format=nsmc", "data.language=ko")
    assert json.loads((output / "seed-1" / "result.json").read_text())["dev"]["of"] == 9
    assert load(output).predict(["좋은 영화"])[0][0].labels in {("0",), ("1",)}


def test_a_label_is_correct_or_not():
    example = Example((("good",),), ("1",))
    assert [TASK.count(example, prediction) for prediction in (("1",), ("0",))] == [(1, 1), (0, 1)]
