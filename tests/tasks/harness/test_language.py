"""A task splits text by the rules of its encoder's model, unless told otherwise, and stores which they were."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import make_embedder
from task_support import recipe, run_settings

from pyelmo.errors import OutputError
from pyelmo.tasks import load
from pyelmo.tasks.harness.run import RunSettings, train_run
from pyelmo.tasks.harness.settings import resolve_data, same_recipe
from pyelmo.tasks.ner.task import NerDataSettings
from pyelmo.tasks.nli.task import NliDataSettings

SMALL = ("training.epochs=1", "network.hidden=4", "words.dim=4")
PAIR = ("남자가 잔다.", "남자는 깨어 있다.")


@pytest.fixture(scope="module")
def korean(tmp_path_factory) -> Path:
    """A small model of morphemes."""
    folder = tmp_path_factory.mktemp("korean") / "LM"
    make_embedder().save(folder)
    facts = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**facts, "language": "ko-morph"}))
    return folder


def pairs(folder: Path) -> list[Path]:
    lines = [{"premise": PAIR[0], "hypothesis": PAIR[1], "label": label} for label in ("neutral", "entailment")]
    (folder / "pairs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return [folder / "pairs.jsonl"] * 2


@pytest.mark.parametrize(
    ("settings", "language", "decided"),
    [
        (NliDataSettings(), "ko-morph", "ko-morph"),
        (NliDataSettings(), "ko", "ko"),
        (NliDataSettings(), None, "en"),
        (NliDataSettings(language="general"), "ko-morph", "general"),
        (NerDataSettings(format="klue"), "ko-morph", "ko-morph"),  # its labels are of characters
        (NerDataSettings(), "ko-morph", "ko"),  # its labels are of words, which the encoder pools from morphemes
    ],
)
def test_the_rules_are_those_of_the_encoder_unless_named(settings, language, decided):
    assert resolve_data(settings, language).language == decided


def test_korean_text_is_split_into_morphemes_in_training_and_prediction(tmp_path, korean):
    pytest.importorskip("kiwipiepy")
    settings = RunSettings(task="nli", data=pairs(tmp_path), recipe=recipe("nli", *SMALL), encoder=str(korean))
    train_run(settings, tmp_path / "run")
    assert json.loads((tmp_path / "run" / "run.json").read_text())["recipe"]["data"]["language"] == "ko-morph"
    model = load(tmp_path / "run")
    assert {"자", "ᆫ다"} <= set(model.vocabularies["words"])
    [[answer]] = model.predict([PAIR])
    assert answer.texts[0] == ("남자", "가", "자", "ᆫ다", ".")


def test_words_of_a_file_are_not_taken_for_morphemes(tmp_path, korean, ner_data):
    pytest.importorskip("kiwipiepy")
    (tmp_path / "names").write_text("영희는\tB-PER\n서울에\tB-LOC\n산다\tO\n.\tO\n\n비\tO\n" * 2)
    settings = run_settings(ner_data, "training.epochs=1", data=[tmp_path / "names"] * 2, encoder=str(korean))
    train_run(settings, tmp_path / "run")
    [[answer]] = load(tmp_path / "run").predict(["영희는 서울에 산다."])
    assert answer.words == ("영희는", "서울에", "산다", ".")


def test_a_run_keeps_the_rules_it_was_trained_with(tmp_path, korean):
    data = pairs(tmp_path)
    old = recipe("nli", *SMALL, "data.language=en")
    train_run(RunSettings(task="nli", data=data, recipe=old, encoder=str(korean)), tmp_path / "run")
    assert load(tmp_path / "run").recipe.data.language == "en"
    with pytest.raises(OutputError, match="holds a run with another recipe"):
        train_run(
            RunSettings(task="nli", data=data, recipe=recipe("nli", *SMALL), encoder=str(korean)), tmp_path / "run"
        )


def test_a_run_of_before_a_setting_existed_is_the_same_run():
    new = recipe("nli", "data.language=en")
    stored = json.loads(json.dumps({"data": {"language": "en"}}))
    assert not same_recipe(stored, new)  # its other settings are those of the recipe file, not the defaults
    assert same_recipe({"data": {"language": "en"}}, type(new)(data=NliDataSettings(language="en")))
    assert same_recipe({"data": {"language": "ko"}}, type(new)())  # auto may have become anything
    assert not same_recipe({"data": {"language": 3}}, type(new)())
