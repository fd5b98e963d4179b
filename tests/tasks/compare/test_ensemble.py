"""Ensembles: they predict from the mean of the probabilities, and the table has the scores of all members."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from task_support import PAIRS, SST, recipe

from pyelmo.errors import InputError
from pyelmo.tasks import load
from pyelmo.tasks.compare import ensemble
from pyelmo.tasks.harness.run import RunSettings, train_run
from pyelmo.tasks.harness.task import read_examples


@pytest.fixture(scope="module")
def runs(tmp_path_factory, ner_data):
    """A run without an encoder of two seeds, one with an encoder of one, and the data; barely trained."""
    folder = tmp_path_factory.mktemp("ensemble")
    (folder / "data").write_text(PAIRS * 4)
    settings = recipe("nli", "network.hidden=8", "training.epochs=2", "training.lr=0.003")
    plan = RunSettings(task="nli", data=[folder / "data"] * 2, recipe=settings, seeds=2)
    train_run(plan, folder / "plain")
    train_run(replace(plan, encoder=str(ner_data / "LM"), seeds=1), folder / "elmo")
    return folder


def test_the_mean_of_the_probabilities_decides(runs):
    found = ensemble.evaluate([runs / "plain", runs / "elmo"], runs / "data", resamples=20)
    folders = [runs / "plain" / "seed-1", runs / "plain" / "seed-2", runs / "elmo" / "seed-1"]
    assert list(found.members) == [str(folder) for folder in folders]
    models = [load(folder) for folder in folders]
    examples = read_examples(models[0].task, runs / "data", models[0].recipe.data, models[0].vocabularies)
    for model, score in zip(models, found.members.values(), strict=True):
        assert model.evaluate(runs / "data") == score
    means = np.mean([torch.stack(model.probabilities(examples)).numpy() for model in models], axis=0)
    assert means.sum(1) == pytest.approx(1, abs=1e-5)
    labels = np.array(models[0].vocabularies["labels"])
    right = labels[means.argmax(1)] == [example.labels[0] for example in examples]
    assert found.score.sums == {"right": right.sum(), "of": 36}


def test_the_table_has_the_members_their_mean_and_the_ensemble(runs, tmp_path):
    found = ensemble.evaluate([runs / "plain"], runs / "data", resamples=20)
    lines = ensemble.markdown(found).splitlines()
    assert lines[0] == "| member | accuracy |"
    mean = np.mean([score.main for score in found.members.values()])
    assert lines[4] == f"| mean of the members | {mean:.2f} |"
    assert lines[5] == f"| ensemble of 2 | {found.score.main:.2f} |"
    assert lines[7].startswith("nli, data. Against the best member: p ")
    written = ensemble.write(found, tmp_path / "table.md")
    facts = json.loads(written[1].read_text())
    assert (facts["metric"], facts["ensemble"]["score"]) == ("accuracy", found.score.main)
    assert facts["best_member"]["p"] == found.best.p


def test_members_must_share_data_settings_and_labels(runs, tmp_path):
    model = runs / "plain" / "seed-1"
    settings = ["network.hidden=8", "training.epochs=1", "training.batch=6"]
    (tmp_path / "sst").write_text(SST)
    train_run(
        RunSettings(task="sentiment", data=[tmp_path / "sst"] * 2, recipe=recipe("sentiment", *settings)),
        tmp_path / "sst-run",
    )
    with pytest.raises(
        InputError, match="seed-1: not the same task as .*Members of an ensemble must have the same task"
    ):
        ensemble.evaluate([model, tmp_path / "sst-run"], runs / "data")
    two = "".join(line + "\n" for line in PAIRS.splitlines() if "neutral" not in line)
    (tmp_path / "two").write_text(two)
    for name, changes in (("labels", []), ("data settings", ["data.language=general"])):
        plan = RunSettings(task="nli", data=[tmp_path / "two"] * 2, recipe=recipe("nli", *settings, *changes))
        train_run(plan, tmp_path / name)
        with pytest.raises(InputError, match=f"not the same {name} as"):
            ensemble.evaluate([model, tmp_path / name], runs / "data")


def test_sentiment_has_ensembles_too(tmp_path):
    (tmp_path / "sst").write_text(SST)
    settings = recipe("sentiment", "network.hidden=4", "training.epochs=1", "training.batch=6")
    train_run(RunSettings(task="sentiment", data=[tmp_path / "sst"] * 2, recipe=settings, seeds=2), tmp_path / "run")
    assert ensemble.evaluate([tmp_path / "run"], tmp_path / "sst", resamples=5).score.sums["of"] == 6
