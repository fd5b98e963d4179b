"""Each task end to end on a few sentences: trained, saved, and asked about raw text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from task_support import PAIRS, SST, recipe

from pyelmo.tasks import load
from pyelmo.tasks.harness.metrics import ACCURACY, SPAN_F1
from pyelmo.tasks.harness.run import RunSettings, train
from pyelmo.tasks.harness.task import Example
from pyelmo.tasks.labels import classification
from pyelmo.tasks.ner import task as ner
from pyelmo.tasks.srl import task as srl

NSMC = (
    "id\tdocument\tlabel\n"
    + "".join(f"{n}\t{'좋은' if n % 2 else '나쁜'} 영화\t{n % 2}\n" for n in range(8))
    + "9\t\t0\n"
)
ROLES = "".join(
    f"d 0 0 {who} N * - - (ARG0*)\nd 0 1 {verb} V * x x.01 (V*)\nd 0 2 {what} N * - - (ARG1*)\n\n"
    for who in ("Ann", "Bob")
    for verb in ("saw", "ate")
    for what in ("fish", "trees")
)

LEARNS = [  # entailment in a few epochs
    "network.hidden=32", "network.dropout=0.0", "elmo.dropout=0.0", "words.dim=32", "training.epochs=15",
    "training.lr=0.005", "training.patience=15", "training.halve_after=0",
]  # fmt: skip


def run(tmp_path: Path, name: str, text: str, *changes: str) -> Path:
    (tmp_path / "data").write_text(text, "utf-8")
    plan = RunSettings(task=name, data=[tmp_path / "data"] * 2, recipe=recipe(name, *changes))
    train(plan, tmp_path / "run")
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
    model = load(run(tmp_path, "sentiment", SST, *changes))
    assert [model.task.format(found) for found in model.predict(["A great film", "A dull film"])] == [
        "1: A great film",
        "0: A dull film",
    ]
    result = json.loads((tmp_path / "run" / "seed-1" / "result.json").read_text())
    assert (result["dev"]["accuracy"], result["dev"]["of"]) == (100, 6)  # phrases are for training alone
    assert result["examples"] == 18  # ... without the neutral ones


def test_sentiment_of_korean_reviews_one_of_them_empty(tmp_path):
    output = run(tmp_path, "sentiment", NSMC, "network.hidden=8", "data.format=nsmc", "data.language=ko")
    assert json.loads((output / "seed-1" / "result.json").read_text())["dev"]["of"] == 9
    assert load(output).predict(["좋은 영화"])[0][0].labels in {("0",), ("1",)}


@pytest.mark.parametrize("where", ["input", "output", "both"])
def test_roles_of_the_predicates_found_in_raw_text(tmp_path, ner_data, where):
    (tmp_path / "data").write_text(ROLES, "utf-8")
    settings = recipe("srl", "network.hidden=12", "network.layers=2", "network.flag=4", f"elmo.where={where}")
    plan = RunSettings(task="srl", data=[tmp_path / "data"] * 2, recipe=settings, encoder=str(ner_data / "LM"))
    train(plan, tmp_path / "run")
    model = load(tmp_path / "run")
    assert model.vocabularies["predicates"] == ("ate", "saw")
    (found,) = model.predict(["Bob saw fish"])
    assert model.task.format(found) == "[ARG0 Bob] [V saw] [ARG1 fish]"
    assert model.predict(["Nothing here"]) == [[]]


@pytest.mark.parametrize("where", ["input", "output", "both"])
def test_entailment_of_a_premise_and_a_hypothesis(tmp_path, ner_data, where):
    (tmp_path / "data").write_text(PAIRS * 4, "utf-8")
    settings = recipe("nli", *LEARNS, f"elmo.where={where}")
    plan = RunSettings(task="nli", data=[tmp_path / "data"] * 2, recipe=settings, encoder=str(ner_data / "LM"))
    (result,) = train(plan, tmp_path / "run")
    assert (result["dev"]["score"], result["dev"]["accuracy"], result["dev"]["of"]) == (100, 100, 36)
    model = load(tmp_path / "run")
    found = model.predict([("The dog sleeps.", "A dog is awake."), ("The man sleeps.", "A man is asleep.")])
    assert [model.task.format(each) for each in found] == [
        "contradiction: The dog sleeps . -> A dog is awake .",
        "entailment: The man sleeps . -> A man is asleep .",
    ]


def test_counts_add_up_to_the_metric():
    def counted(task, wanted, given):
        return task.count(Example((("a",) * len(wanted),), wanted), given)

    assert counted(ner, ("B-PER", "I-PER", "O"), ("B-PER", "O", "B-LOC")) == (0, 2, 1)
    assert counted(srl, ("B-V", "B-ARG1", "O"), ("B-V", "B-ARG1", "B-ARG2")) == (1, 2, 1)
    assert [counted(classification, ("1",), given) for given in (("1",), ("0",))] == [(1, 1), (0, 1)]
    found = SPAN_F1.score([(0, 2, 1), (1, 2, 1)])
    assert found.figures == {"f1": pytest.approx(100 / 3), "precision": 25, "recall": 50}
    assert (found.main, found.sums) == (found.figures["f1"], {"right": 1, "found": 4, "gold": 2})
    assert str(found) == "precision 25.00, recall 50.00, f1 33.33"
    assert SPAN_F1.score([(0, 0, 0)]).main == 0
    assert ACCURACY.score([(1, 1), (0, 1)]).figures == {"accuracy": 50}


def test_both_labels_of_a_kind_are_known_where_only_one_was_seen():
    assert ner.build_vocabularies([Example((("Rome",),), ("B-LOC",))])["labels"] == ("O", "B-LOC", "I-LOC")
