"""elmo task: the examples of every --help, answers on stdout, and one line for an error."""

from __future__ import annotations

import io
import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import make_embedder

from pyelmo.cli import main
from pyelmo.cli.tasks.task import ACTIONS

WORDS = {"Ann": "B-PER", "Lee": "I-PER", "saw": "O", "Paris": "B-LOC", ".": "O"}
LABELLED = "".join(f"{word}\t{label}\n" for word, label in WORDS.items()) + "\n"
PAIRS = "".join(
    json.dumps({"sentence1": "A man sleeps.", "sentence2": f"A man {what}.", "gold_label": label}) + "\n"
    for what, label in (("rests", "entailment"), ("runs", "contradiction"), ("dreams", "neutral"))
)
SMALL = ["--set", "training.epochs=1", "--set", "network.hidden=4"]
FAST = ["--set", "training.epochs=1", "--set", "network.hidden=[4,4]", "--seeds", "1", "-q"]

# The first run is done when the fixture is, so that only the second needs a process.
PLAN = """
[[set]]
name = "names"
task = "ner"
data = ["train.conll", "dev.conll"]
encoder = "LM"
seeds = 1
set = ["training.epochs=1", "network.hidden=[4,4]"]
run = [{ name = "none", encoder = "none" }, { name = "elmo" }]
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A folder with what the examples of --help name."""
    folder = tmp_path_factory.mktemp("task")
    for name in ("train", "dev"):
        (folder / f"{name}.conll").write_text(LABELLED * 4)
    make_embedder().save(folder / "LM")
    data = ["--data", str(folder / "train.conll"), str(folder / "dev.conll")]
    for name, encoder in (("baseline", "none"), ("run", str(folder / "LM"))):
        assert main(["task", "train", "ner", *data, "--encoder", encoder, "-o", str(folder / name), *FAST]) == 0
    (folder / "pairs.jsonl").write_text(PAIRS * 4)
    data = ["--data", str(folder / "pairs.jsonl"), str(folder / "pairs.jsonl")]
    run = ["-o", str(folder / "nli-run"), "--encoder", str(folder / "LM"), "--seeds", "2", "-q"]
    assert main(["task", "train", "nli", *data, *run, *SMALL]) == 0
    (folder / "plan.toml").write_text(PLAN)
    return folder


@pytest.fixture
def here(made, tmp_path, monkeypatch) -> Path:
    shutil.copytree(made, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


@pytest.mark.parametrize("action", ACTIONS)
def test_the_example_in_help_runs(action, here, capsys):
    if action == "train":
        shutil.rmtree("run")
    shutil.copytree("baseline", "out/names-none")
    with pytest.raises(SystemExit):
        main(["task", action, "--help"])
    assert f"example: {ACTIONS[action].example}" in " ".join(capsys.readouterr().out.split())
    assert main(shlex.split(ACTIONS[action].example)[1:]) == 0


def test_evaluate_prints_every_seed_and_the_mean(here, capsys):
    assert main(["task", "evaluate", "run", "dev.conll", "-q"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("run/seed-1: precision ")
    assert lines[1].startswith("dev.conll: span F1 ")
    assert main(["task", "evaluate", "run", "dev.conll", "-q", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["gold"] == 8


def test_predict_imports_only_what_it_needs(here):
    others = "h5py matplotlib gensim scipy triton torch._dynamo pyelmo.training pyelmo.tasks.harness.run"
    code = (
        "import sys; from pyelmo.cli import main; assert main(['task', 'predict', 'run', 'Ann saw.']) == 0\n"
        f"assert not set({others!r}.split()) & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_predict_reads_arguments_a_file_and_stdin(here, capsys, monkeypatch):
    Path("text").write_text("Ann saw Paris.\n\nLee.\n")
    assert main(["task", "predict", "run", "Ann saw.", "--input", "text", "--json"]) == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    words = [["Ann", "saw", "."], ["Ann", "saw", "Paris", "."], [], ["Lee", "."]]
    assert [answer["words"] for answer in answers] == words
    assert len(answers[0]["answers"][0]["labels"]) == 3
    assert (answers[1]["offsets"][2], answers[2]["answers"]) == ([8, 13], [])  # a blank line keeps its place
    assert main(["task", "predict", "run", "--input", "text"]) == 0
    assert [bool(line) for line in capsys.readouterr().out.split("\n")] == [True, False, True, False]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Lee\n")))
    assert main(["task", "predict", "run/seed-1/model", "--input", "-"]) == 0
    assert "Lee" in capsys.readouterr().out
    assert main(["task", "predict", "run"]) == 1
    assert "no sentence to predict" in capsys.readouterr().err


def test_predict_takes_a_dash_for_stdin_and_never_a_file_for_a_sentence(here, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Lee\n\nAnn\n")))
    assert main(["task", "predict", "run", "--json", "-"]) == 0
    assert [json.loads(line)["text"] for line in capsys.readouterr().out.splitlines()] == ["Lee", "", "Ann"]
    Path("text").write_text("Ann\n")
    assert main(["task", "predict", "run", "text"]) == 1
    assert "text: is a file, not a sentence. Read it with --input text" in capsys.readouterr().err
    assert main(["task", "predict", "run", "Ann", "-"]) == 1
    assert "-: stands for stdin, and must be alone" in capsys.readouterr().err


def test_options_may_stand_before_the_sentences(here, capsys):
    assert main(["task", "predict", "run", "--json", "Ann saw.", "Bob."]) == 0
    before = capsys.readouterr().out
    assert main(["task", "predict", "run", "Ann saw.", "Bob.", "--json"]) == 0
    assert capsys.readouterr().out == before
    with pytest.raises(SystemExit):
        main(["task", "predict", "run", "Ann", "--jsn"])
    assert "unrecognized arguments: --jsn" in capsys.readouterr().err


def test_predict_takes_a_premise_and_a_hypothesis(here, capsys):
    asked = ["--premise", "A man sleeps.", "--hypothesis", "He's up."]
    assert main(["task", "predict", "nli-run", *asked]) == 0
    assert capsys.readouterr().out.endswith(": A man sleeps . -> He 's up .\n")
    Path("text").write_text("A man sleeps.\tA man rests.\nIt rains.\tIt is wet.\n")
    assert main(["task", "predict", "nli-run", *asked, "--input", "text", "--json"]) == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [answer["hypothesis"] for answer in answers] == ["He's up.", "A man rests.", "It is wet."]
    assert {answer["answers"][0]["labels"][0] for answer in answers} <= {"entailment", "contradiction", "neutral"}


def test_predict_reads_tables_and_encodings(here, capsys):
    Path("names.csv").write_bytes('id,name\n1," Ann saw, Lee"\n2,\n'.encode("utf-16"))
    command = ["task", "predict", "run", "--json", "--input", "names.csv"]
    assert main([*command, "--encoding", "utf-16"]) == 1
    assert "Columns: id, name. Choose one with --column" in capsys.readouterr().err
    assert main([*command, "--encoding", "utf-16", "--column", "name"]) == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [answer["text"] for answer in answers] == [" Ann saw, Lee", ""]
    assert answers[0]["offsets"][0] == [1, 4]
    Path("pairs.csv").write_text("a,b\nIt rains.,It is wet.\n")
    assert main(["task", "predict", "nli-run", "--json", "--input", "pairs.csv", "--column", "a,b"]) == 0
    assert json.loads(capsys.readouterr().out)["hypothesis"] == "It is wet."


def test_an_ensemble_on_stdout_and_as_files(here, capsys):
    assert main(["task", "ensemble", "nli-run/seed-1", "nli-run/seed-2/model", "--data", "pairs.jsonl", "-q"]) == 0
    assert "| ensemble of 2 | " in capsys.readouterr().out
    assert main(["task", "ensemble", "nli-run", "--data", "pairs.jsonl", "-q", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (list(facts["members"]), facts["ensemble"]["of"]) == (["nli-run/seed-1", "nli-run/seed-2"], 12)
    assert main(["task", "ensemble", "nli-run", "--data", "pairs.jsonl", "-q", "-o", "both.md"]) == 0
    assert {path.name for path in Path().glob("both.*")} == {"both.md", "both.json"}


def test_options_change_settings_and_are_recorded_in_the_command(here):
    options = ["--elmo", "both", "--layers", "average", "--lambda", "1", "--dropout", "0.2", "--fraction", "0.5"]
    data = ["--data", "train.conll", "dev.conll"]
    assert main(["task", "train", "ner", *data, "--encoder", "mine=LM", *options, "-o", "other", *FAST]) == 0
    facts = json.loads(Path("other/run.json").read_text())
    elmo = facts["recipe"]["elmo"]
    assert (elmo["where"], elmo["layers"], elmo["penalty"], elmo["dropout"]) == ("both", "average", 1.0, 0.2)
    assert (facts["fraction"], facts["encoder_name"]) == (0.5, "mine")
    assert "--encoder mine=LM --elmo both --layers average --lambda 1.0 --dropout 0.2" in facts["command"]


def test_a_table_on_stdout_and_as_files(here, capsys):
    assert main(["task", "table", "baseline", "run"]) == 0
    assert capsys.readouterr().out.count("\n") == 4
    assert main(["task", "table", "baseline", "run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[1]["encoder"] == "LM"
    assert main(["task", "table", "baseline", "run", "-o", "table.md"]) == 0
    assert {path.name for path in Path().glob("table.*")} == {"table.md", "table.json", "table.svg"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "pos", "--data", "a", "b", "-o", "x"], "unknown task 'pos'. Choose one of ner, srl, sentiment"),
        (["train", "ner", "--data", "train.conll", "bad", "--encoder", "none", "-o", "x"], "bad, line 2: 1 columns"),
        (["train", "ner", "--data", "train.conll", "empty", "--encoder", "none", "-o", "x"], "empty: holds no"),
        (["train", "ner", "--data", "train.conll", "-o", "x"], "Give two files (train, dev) or three"),
        (["train", "ner", "--data", "a", "b", "-o", "x", "--set", "network.hiden=3"], "Did you mean 'hidden'"),
        (["train", "ner", "--data", "a", "b", "-o", "x", "--recipe", "z"], "bundled: coref, ner,"),
        (["evaluate", "run", "unseen"], "unseen: the label 'B-GPE'"),
        (["predict", "nowhere", "text"], "nowhere: no such folder"),
        (["predict", "LM", "text"], "LM/config.json: not the config of a task model"),
        (["predict", "run", "--premise", "a"], "run: a model of the task ner needs sentences, or a file with --input"),
        (["predict", "nli-run", "a"], "nli-run: a model of the task nli needs --premise and --hypothesis, or a file"),
        (["predict", "nli-run", "--premise", "a"], "nli-run: a model of the task nli needs --premise and --hypothesis"),
        (["predict", "nli-run", "--premise", "a", "--hypothesis", " "], "input 0: the hypothesis has no words"),
        (
            ["predict", "nli-run", "--input", "bad"],
            "bad, line 2: expected premise and hypothesis with a tab between, got 'lost",
        ),
        (["train", "nli", "--data", "bad", "pairs.jsonl", "-o", "x"], "bad, line 1: not JSON"),
        (["ensemble", "nli-run/seed-1", "--data", "pairs.jsonl"], "an ensemble needs two models, got 1"),
        (["ensemble", "nli-run", "nli-run/seed-1", "--data", "pairs.jsonl"], "a model is given twice"),
        (["ensemble", "nli-run", "run", "--data", "pairs.jsonl"], "run/seed-1: not the same task as nli-run/seed-1"),
        (["ensemble", "run", "baseline", "--data", "dev.conll"], "run/seed-1: a ner model has no probabilities"),
        (["ensemble", "LM", "run", "--data", "dev.conll"], "LM/config.json: not the config of a task model"),
        (["table", "LM"], "LM: no run.json in this folder"),
        (["table1", "--data", ".", "-o", "x"], "lacks these files of the plan: squad-train.json, "),
        (["table1", "x.toml", "--data", ".", "-o", "x"], "x.toml: not a file, and no bundled recipe"),
        (["table1", "plan.toml", "--data", "nowhere", "-o", "x"], "--data nowhere: not a folder"),
        (["table1", "plan.toml", "--data", ".", "-o", "x", "--workers", "-1"], "--workers -1: must be at least 0"),
        (["table1", "plan.toml", "--data", ".", "-o", "x", "--only", "name"], "Did you mean 'names'"),
        (
            ["table1", "plan.toml", "--data", ".", "-o", "x", "--workers", "0"],
            "x: no run of the plan has a finished seed",
        ),
        (["table1", "bad", "--data", ".", "-o", "x"], "bad: not a TOML file"),
    ],
)
def test_a_mistake_is_one_line(here, arguments, message, capsys):
    Path("bad").write_text("Rome\tB-LOC\nlost\n")
    Path("empty").touch()
    Path("unseen").write_text("Rome\tB-GPE\n")
    assert main(["task", *arguments]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_a_stopped_training_says_how_to_resume_it(here, capsys, monkeypatch):
    def stop(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("pyelmo.tasks.harness.training_loop._step", stop)
    data = ["--data", "train.conll", "dev.conll"]
    assert main(["task", "train", "ner", *data, "--encoder", "none", "-o", "stopped", *FAST]) == 130
    assert "interrupted; run the same command again to resume stopped" in capsys.readouterr().err


def test_seeds_of_0_only_fill_the_cache(here, capsys):
    data = ["--data", "train.conll", "dev.conll", "--cache", "vectors", "-q", "--seeds", "0"]
    assert main(["task", "train", "ner", *data, "--encoder", "LM", "-o", "new"]) == 0
    assert capsys.readouterr().out == "vectors: has the vectors of LM\n"
    assert (len(list(Path("vectors").glob("*/vectors.npy"))), Path("new").exists()) == (1, False)
    assert main(["task", "train", "ner", *data, "--encoder", "none", "-o", "new"]) == 0
    assert "is not needed" in capsys.readouterr().out


def test_a_failed_job_is_one_line_and_the_table_has_the_others(here, capsys):
    shutil.copytree("baseline", "out/names-none")
    shutil.copytree("run", "out/names-elmo")
    Path("LM/config.json").write_text("{}")
    table1 = ["task", "table1", "plan.toml", "--data", ".", "-o", "out", "--seeds", "2", "-q"]
    assert main([*table1, "--only", "names-elmo"]) == 1
    error = capsys.readouterr().err
    assert "vectors of LM for names-elmo | failed: LM/config.json" in error
    assert "2 jobs failed: vectors of LM for names-elmo, names-elmo-2. See" in error
    assert "Not finished yet: names-none (seed 2); names-elmo (seed 2)." in Path("out/table1.md").read_text()


def test_a_stopped_table_says_how_to_resume_it(here, capsys, monkeypatch):
    def stop(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("pyelmo.experiments.table1.run_jobs", stop)
    assert main(["task", "table1", "plan.toml", "--data", ".", "-o", "out"]) == 130
    assert "interrupted; run the same command again to resume out" in capsys.readouterr().err
