"""Questions about passages from raw text to the answer: training, scores, predictions, long and empty texts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pyelmo.cli import main
from pyelmo.errors import ConfigError, InputError
from pyelmo.recipes import read_settings
from pyelmo.tasks import load
from pyelmo.tasks.compare import ensemble
from pyelmo.tasks.harness.run import RunSettings, train_run
from pyelmo.tasks.harness.settings import TaskRecipe
from pyelmo.tasks.harness.task import Example, find_task
from pyelmo.tasks.qa import task as qa
from pyelmo.tasks.qa.data import split_passage
from pyelmo.text.tokens import split_words

PEOPLE, PLACES = ("Ann", "Bob", "Sue", "Max"), ("Paris", "New York", "Seoul", "Rome")
WHO, WHERE = "Who lives there?", "Where is the house?"
SMALL = [
    "training.epochs=25", "training.patience=25", "training.lr=0.02", "training.batch=4", "training.optimiser=adam",
    "training.halve_after=0", "words.dim=8", "words.min_count=1", "network.hidden=8", "network.dropout=0.0",
    "network.characters=6",
]  # fmt: skip


def squad() -> str:
    """Who lives where, 32 questions."""
    paragraphs = []
    for who in PEOPLE:
        for where in PLACES:
            asked = {WHO: who, WHERE: where}
            qas = [{"id": text, "question": text, "answers": [{"text": answer}]} for text, answer in asked.items()]
            paragraphs.append({"context": f"{who} lives in {where}.", "qas": qas})
    return json.dumps({"data": [{"paragraphs": paragraphs}]})


def recipe(*changes: str) -> TaskRecipe:
    return read_settings(find_task("qa").recipe, "qa", [*SMALL, *changes], group="task")


def run(tmp_path: Path, *changes: str, text: str | None = None, **options: object) -> Path:
    (tmp_path / "data.json").write_text(text or squad(), "utf-8")
    plan = RunSettings(task="qa", data=[tmp_path / "data.json"] * 2, recipe=recipe(*changes), **options)
    train_run(plan, tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    return run(tmp_path_factory.mktemp("qa"))


def test_a_model_answers_with_the_passage_s_own_letters(trained):
    result = json.loads((trained / "seed-1" / "result.json").read_text())
    assert result["dev"]["f1"] == result["dev"]["score"] == 100
    assert (result["dev"]["of"], result["examples"]) == (32, 32)
    model = load(trained)
    text = "Bob  lives in New\n York."
    asked = [(text, WHERE), (split_words(text, "en"), ["Where", "is", "the", "house", "?"]), (text, WHO)]
    where, words, who = (answers[0] for answers in model.predict(asked))
    answer, start = where.labels
    assert (answer.removesuffix("."), start) == ("New\n York", 14)  # the score ignores a full stop
    facts = {"answer": answer, "start": 14, "end": 14 + len(answer), "probability": round(where.probability, 6)}
    assert (model.task.format([where]), where.to_json()) == (answer, facts)
    assert (text[where.start : where.end], where.probability > 0.3) == (answer, True)
    assert (words.labels[0].removesuffix(" ."), words.labels[1], who.labels) == ("New York", 13, ("Bob", 0))


def test_evaluation_gives_f1_and_exact_match_of_all_questions(trained, tmp_path):
    content = json.loads(squad())
    content["data"][0]["paragraphs"][0]["qas"] += [
        {"question": "Where?", "answers": [{"text": "Atlantis"}]},
        {"question": "Where?", "answers": []},
    ]
    (tmp_path / "data.json").write_text(json.dumps(content), "utf-8")
    score = load(trained).evaluate(tmp_path / "data.json")
    assert score.sums == {"matches": 32, "overlap": 32, "of": 34}  # those that cannot be answered too
    assert list(score.figures) == ["f1", "exact_match"]


def test_a_passage_of_5000_words_is_answered(trained):
    text = "Nobody lives here . " * 1249 + "Bob lives in New York ."
    ((example,),) = load(trained).predict([(text, WHERE)])
    answer, start = example.labels
    assert text[start : start + len(answer)] == answer


@pytest.mark.parametrize(("texts", "which"), [((" ", "Who?"), "passage"), (("A text.", ""), "question")])
def test_an_empty_passage_or_question_is_one_clear_error(trained, texts, which):
    with pytest.raises(InputError, match=f"input 0: the {which} has no words"):
        load(trained).predict([texts])


def test_the_command_line_answers_and_says_what_it_needs(trained, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("p.txt").write_text("Bob lives in Rome.\nSue lives in Seoul.\n", "utf-8")
    ask = ["task", "predict", str(trained), "--passage", "p.txt", "--question"]
    assert main([*ask, WHERE]) == 0
    answer = capsys.readouterr().out.rstrip("\n")
    assert answer in Path("p.txt").read_text("utf-8")
    assert main([*ask, WHERE, "--json"]) == 0
    (shown,) = json.loads(capsys.readouterr().out)["answers"]
    start = Path("p.txt").read_text("utf-8").index(answer)
    assert (shown["answer"], shown["start"], shown["end"]) == (answer, start, start + len(answer))
    assert main([*ask, " "]) == 1
    assert "input 0: the question has no words" in capsys.readouterr().err
    assert main([*ask[:-1]]) == 1
    assert "task qa needs --passage and --question" in capsys.readouterr().err
    assert main(["task", "evaluate", str(trained), str(trained.parent / "data.json"), "-q"]) == 0
    assert "exact_match" in capsys.readouterr().out


@pytest.mark.parametrize("where", ["input", "output", "both"])
def test_elmo_is_used_at_the_input_at_the_output_or_at_both(tmp_path, ner_data, where):
    changes = ["training.epochs=2", f"elmo.where={where}", "network.characters=0"]
    output = run(tmp_path, *changes, encoder=str(ner_data / "LM"))
    result = json.loads((output / "seed-1" / "result.json").read_text())
    assert set(result["layers"]) == ({"input", "output"} if where == "both" else {where})
    assert load(output).evaluate(tmp_path / "data.json").main == pytest.approx(result["dev"]["score"], abs=5)


def test_korean_answers_are_scored_by_characters(tmp_path):
    qas = [{"question": "누가 왔나?", "answers": [{"text": "임수경"}]}]
    text = json.dumps({"data": [{"paragraphs": [{"context": f"임수경 {word} 왔다.", "qas": qas} for word in "가나"]}]})
    output = run(tmp_path, "training.epochs=1", "data.format=korquad", "data.language=ko", text=text)
    ((answer,),) = load(output).predict([("임수경 왔다.", "누가 왔나?")])
    assert answer.text in "임수경 왔다."
    about = qa.QuestionMetadata(split_passage("임수경을", "ko"), "korquad")
    assert qa.count(Example((), ("임수경",), about), ("임수경을", 0)) == (0, pytest.approx(6 / 7), 1)


def test_training_truncates_passages_and_evaluation_does_not(tmp_path):
    (tmp_path / "data.json").write_text(squad(), "utf-8")
    data = qa.QaDataSettings(language="en", limit=4)
    cut, whole = (qa.read(tmp_path / "data.json", data, training) for training in (True, False))
    assert {len(example.words) for example in cut} == {4}
    assert (len(cut), len(whole)) == (16 + 12, 32)  # York lies beyond
    assert {len(example.words) for example in whole} == {5, 6}


def test_the_mean_of_several_models_is_decided_like_one(trained):
    model = load(trained)
    examples = qa.read(trained.parent / "data.json", model.recipe.data, False)[:5]
    inputs = model._inputs(examples)
    network = model.network
    assert network.decide(examples, network.probabilities(*inputs)) == network.predict(*inputs)


def test_an_ensemble_of_two_seeds_answers_every_question(tmp_path):
    output = run(tmp_path, "training.epochs=1", seeds=2)
    result = ensemble.evaluate([output], tmp_path / "data.json", resamples=10)
    assert (len(result.members), result.score.sums["of"], list(result.score.figures)) == (2, 32, ["f1", "exact_match"])


@pytest.mark.parametrize("change", ["data.limit=0", "network.longest=0"])
def test_a_limit_below_one_is_an_error(change):
    with pytest.raises(ConfigError, match="must be positive"):
        recipe(change)
