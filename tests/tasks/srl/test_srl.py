"""Semantic roles on a few sentences: training, counts and predictions from raw text."""

from __future__ import annotations

import pytest
from task_support import recipe

from pyelmo.tasks import load
from pyelmo.tasks.harness.run import RunSettings, train_run
from pyelmo.tasks.harness.task import Example
from pyelmo.tasks.srl import task as srl

ROLES = "".join(
    f"d 0 0 {who} N * - - (ARG0*)\nd 0 1 {verb} V * x x.01 (V*)\nd 0 2 {what} N * - - (ARG1*)\n\n"
    for who in ("Ann", "Bob")
    for verb in ("saw", "ate")
    for what in ("fish", "trees")
)


@pytest.mark.parametrize("where", ["input", "output", "both"])
def test_roles_of_the_predicates_found_in_raw_text(tmp_path, ner_data, where):
    (tmp_path / "data").write_text(ROLES, "utf-8")
    settings = recipe("srl", "network.hidden=12", "network.layers=2", "network.flag=4", f"elmo.where={where}")
    run = RunSettings(task="srl", data=[tmp_path / "data"] * 2, recipe=settings, encoder=str(ner_data / "LM"))
    train_run(run, tmp_path / "run")
    model = load(tmp_path / "run")
    assert model.vocabularies["predicates"] == ("ate", "saw")
    (examples,) = model.predict(["Bob saw fish"])
    assert model.task.format(examples) == "[ARG0 Bob] [V saw] [ARG1 fish]"
    (answer,) = examples
    assert [(span.label, span.text, span.start, span.end) for span in answer.spans] == [
        ("ARG0", "Bob", 0, 3), ("V", "saw", 4, 7), ("ARG1", "fish", 8, 12),
    ]  # fmt: skip
    assert all(0 < span.probability <= 1 for span in answer.spans)
    assert (answer.to_json()["predicate"], repr(answer)[-18:]) == (1, ", predicate='saw')")
    assert model.predict(["Nothing here"]) == [[]]


def test_counts_are_of_arguments_without_the_predicate():
    example = Example((("a", "b", "c"),), ("B-V", "B-ARG1", "O"))
    assert srl.count(example, ("B-V", "B-ARG1", "B-ARG2")) == (1, 2, 1)
