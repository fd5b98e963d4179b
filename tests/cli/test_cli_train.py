"""elmo prepare and pretrain, and what evaluate, score and predict do with the trained model."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import pytest
from support import file_size_limit

from pyelmo.cli import main
from pyelmo.embed.files.store import read_embeddings
from pyelmo.tasks.harness import training_loop
from pyelmo.training.trainer import Trainer

TEXT = Path(__file__).parents[1] / "banks.txt"


def test_a_trained_model_can_be_used_immediately(trained, capsys, monkeypatch):
    monkeypatch.chdir(trained)
    assert main(["evaluate", "LMrun/model", "text.txt", "--tokenised", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["forward"] < 80  # a uniform guess over its vocabulary is 162
    assert facts["words"] == sum(len(line.split()) + 1 for line in TEXT.read_text().splitlines())
    assert main(["predict", "LMrun/model", "The bank of the ___ .", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 10
    Path("one.txt").write_text("The bank lent money .\n")
    assert main(["score", "LMrun/model", "one.txt", "--json"]) == 0
    assert [word["word"] for word in json.loads(capsys.readouterr().out)["words"]] == [
        "The",
        "bank",
        "lent",
        "money",
        ".",
    ]


def test_text_is_split_by_the_rules_of_the_model_s_language_unless_another_is_named(
    trained, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("They don't lend.\n")
    model, general = str(trained / "LMrun" / "model"), ["--language", "general"]
    for more, words in ([], ["They", "do", "n't", "lend", "."]), (general, ["They", "don", "'", "t", "lend", "."]):
        assert main(["evaluate", model, "text.txt", "--json", *more]) == 0
        assert json.loads(capsys.readouterr().out)["words"] == len(words) + 1
        assert main(["score", model, "text.txt", "--json", *more]) == 0
        assert [word["word"] for word in json.loads(capsys.readouterr().out)["words"]] == words
        assert main(["embed", "text.txt", "-o", "-", "--model", model, "-q", *more]) == 0
        assert json.loads(capsys.readouterr().out)["tokens"] == words
        assert main(["embed", "text.txt", "-o", "parts/", "--model", model, "--force", "-q", *more]) == 0
        assert [row.tokens for row in read_embeddings("parts")] == [words]
        assert json.loads(Path("parts/_job.json").read_text())["language"] == (more or ["en"])[-1]
    guesses = []
    for more in [], ["--language", "en"], general:
        assert main(["predict", model, "They don't ___ .", *more]) == 0
        guesses.append(capsys.readouterr().out)
    assert guesses[0] == guesses[1] != guesses[2]


def test_score_prints_a_header_the_end_and_the_sum_of_each_sentence(trained, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("The bank lent zyzzyvas .\n\nThe bank .\n")
    model = str(trained / "LMrun" / "model")
    assert main(["score", model, "text.txt"]) == 0
    captured = capsys.readouterr()
    lines = captured.out.split("\n")
    assert lines[0] == "word\tforward\tbackward"
    assert [line.split("\t")[0] for line in lines[1:10]] == [
        "The", "bank", "lent", "zyzzyvas", ".", "(end)", "(sum)", "", ""
    ]  # fmt: skip
    assert lines[4].endswith("\tunknown")
    assert lines[7].endswith("\t1 unknown")
    rows = [[float(value) for value in line.split("\t")[1:3]] for line in lines[1:8]]
    assert [sum(column) for column in zip(*rows[:-1], strict=True)] == pytest.approx(rows[-1], abs=1e-3)
    assert "100%" in captured.err  # progress to the end
    assert "7/7" in captured.err or "8/8" in captured.err
    assert main(["score", model, "text.txt", "--direction", "forward", "--quiet", "--json"]) == 0
    captured = capsys.readouterr()
    first, blank, last = map(json.loads, captured.out.splitlines())
    assert captured.err == ""
    assert first["forward"] == pytest.approx(rows[-1][0], abs=1e-3)
    assert (first["backward"], first["unknown"], blank["words"], blank["forward"]) == (None, 1, [], 0)
    assert last["end"]["word"] == "</S>"


def test_evaluate_shows_progress_to_the_last_word(trained, capsys, monkeypatch):
    monkeypatch.chdir(trained)
    assert main(["evaluate", "LMrun/model", "text.txt", "--tokenised", "--context", "sentence"]) == 0
    captured = capsys.readouterr()
    words = int(captured.out.split("words: ")[1].split()[0])
    assert f"{words}/{words}" in captured.err
    assert main(["evaluate", "LMrun/model", "text.txt", "--tokenised", "--quiet"]) == 0
    assert capsys.readouterr().err == ""


def test_predict_takes_a_direction_and_leaves_punctuation_out(trained, capsys):
    model = str(trained / "LMrun" / "model")
    columns = {}
    for direction in ("forward", "backward", "both"):
        assert main(["predict", model, "The bank of the ___ .", "--direction", direction, "-k", "1"]) == 0
        columns[direction] = [part.split()[0] for part in capsys.readouterr().out.strip().split("\t")[2:]]
    assert columns == {"forward": ["forward"], "backward": ["backward"], "both": ["forward", "backward"]}
    words = {}
    for more in [], ["--punctuation"]:
        assert main(["predict", model, "The bank of the ___ .", "-k", "500", "--json", *more]) == 0
        words[len(more)] = {guess["word"] for guess in json.loads(capsys.readouterr().out)}
    assert {"."} <= words[1] - words[0]


TRAINING_ERRORS = {
    "no text": (["prepare", "nothing.txt", "-o", "out"], "nothing.txt"),
    "empty text": (["prepare", "empty.txt", "-o", "out"], "empty"),
    "one word": (["pretrain", "word", "-o", "out", "--device", "cpu"], "smaller batch or more text"),
    "unknown key": (["pretrain", "corpus", "-o", "out", "--set", "training.batchsize=3"], "Did you mean 'batch'"),
    "unknown recipe": (["pretrain", "corpus", "-o", "out", "--recipe", "none-such"], "tiny-cpu"),
    "unknown device": (["pretrain", "corpus", "-o", "out", "--device", "tpu"], "--device tpu: unknown device"),
    "no GPU": (["pretrain", "corpus", "-o", "out", "--device", "cuda:1"], "--device cuda:1: no CUDA GPU is available"),
    "no corpus": (["pretrain", "MODEL", "-o", "out"], "not a prepared corpus"),
    "no softmax": (["evaluate", "MODEL", "sentences.txt"], "has no softmax"),
    "no gap": (["predict", "MODEL", "nothing to fill"], "0 gaps"),
    "no words": (["evaluate", "LM", "empty.txt"], "no text"),
}


@pytest.mark.parametrize("case", TRAINING_ERRORS)
def test_bad_input_to_training_is_one_line(here, trained, case, capsys):
    Path("empty.txt").write_text("\n\n")
    Path("word.txt").write_text("word\n")
    shutil.copytree(trained / "LMrun" / "model", "LM")
    shutil.copytree(trained / "corpus", "corpus")
    assert main(["prepare", "word.txt", "-o", "word", "-q"]) == 0
    capsys.readouterr()
    arguments, message = TRAINING_ERRORS[case]
    assert main(arguments) == 1
    error = capsys.readouterr().err.splitlines()
    assert error[-1].startswith("elmo: ")
    assert message in error[-1]
    assert "Traceback" not in "".join(error)


SMALL = ["--set", "training.words=640", "--set", "training.batch=4", "--set", "training.steps=8", "--device", "cpu"]
TINY = ["--set", "model.lstm.cells=8", "--set", "model.lstm.projection=4", *SMALL]


def test_a_text_file_is_trained_on_and_the_run_is_a_model(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(TEXT, "a.txt")
    assert main(["pretrain", "a.txt", "-o", "rr", "-q", "--language", "en", *TINY]) == 0
    assert main(["evaluate", "rr", "a.txt", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert main(["evaluate", "rr/model", "a.txt", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == figures
    assert main(["finetune", "rr", "a.txt", "-o", "tuned", "-q", *SMALL]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["model"] == "tuned/model"
    assert facts["before"]["words"] == facts["after"]["words"] > 10
    assert sorted(path.name for path in Path("tuned").iterdir()) == ["all", "model"]


def test_a_column_of_a_table_is_trained_on(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = TEXT.read_text().splitlines()
    Path("a.jsonl").write_text("".join(json.dumps({"text": line, "label": "zzz"}) + "\n" for line in lines))
    assert main(["pretrain", "a.jsonl", "-o", "rr", "-q", *TINY]) == 1
    assert "--column" in capsys.readouterr().err
    assert main(["pretrain", "a.jsonl", "-o", "rr", "-q", "--column", "text", *TINY]) == 0
    assert not {"label", "zzz"} & set(Path("rr.corpus/types.txt").read_text().split())


def test_a_corpus_of_another_text_is_refused_unless_forced(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(TEXT, "a.txt")
    Path("b.txt").write_text(TEXT.read_text().replace("bank", "shore"))
    assert main(["pretrain", "a.txt", "-o", "rr", "-q", *TINY]) == 0
    for text, message in (("b.txt", "its text is a.txt, not b.txt"), ("a.txt", "a.txt has changed since")):
        Path("a.txt").write_text(Path("b.txt").read_text())
        assert main(["pretrain", text, "-o", "rr", "-q", *TINY]) == 1
        assert message in capsys.readouterr().err
    assert "bank" in Path("rr.corpus/types.txt").read_text().split()
    assert main(["pretrain", "b.txt", "-o", "rr", "-q", "--force", *TINY]) == 0
    assert "bank" not in Path("rr.corpus/types.txt").read_text().split()


@pytest.mark.parametrize("verb", [["pretrain"], ["finetune", "MODEL"], ["vectors", "train"]])
def test_a_typo_in_a_path_says_not_found(here, verb, capsys):
    assert main([*verb, "txet.txt", "-o", "out.vec"]) == 1
    assert "elmo: txet.txt: not found" in capsys.readouterr().err


def test_finetuning_without_held_out_text_says_why_there_is_no_figure(trained, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("few.txt").write_text(" ".join(TEXT.read_text().split()) + "\n")
    assert main(["finetune", str(trained / "LMrun"), "few.txt", "-o", "tuned", "-q", *SMALL]) == 0
    output = capsys.readouterr()
    assert json.loads(output.out) == {"model": "tuned/model", "before": None, "after": None}
    assert "no perplexity: few.txt has no held-out text" in output.err


NER = "Ann B-PER\nran O\n\nBob B-PER\nsat O\n\n"
NER_TRAIN = ["task", "train", "ner", "--data", "ner.txt", "ner.txt", "--encoder", "none"]
INTERRUPTED = {
    "pretrain": (["pretrain", "corpus", *TINY], "checkpoint-000000003.safetensors"),
    "finetune": (["finetune", "LMrun", "corpus", *SMALL], "all/checkpoint-000000003.safetensors"),
    "task train": (
        [*NER_TRAIN, "--seeds", "1", "--set", "training.batch=1", "--set", "training.epochs=3"],
        "seed-1/checkpoint.safetensors",
    ),
}  # fmt: skip


@pytest.mark.parametrize("verb", INTERRUPTED)
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_training_saves_says_how_to_resume_and_does_not_exit_0(
    trained, tmp_path, monkeypatch, capsys, verb, number, status
):
    for name in ("corpus", "LMrun"):
        (tmp_path / name).symlink_to(trained / name)
    (tmp_path / "ner.txt").write_text(NER)
    monkeypatch.chdir(tmp_path)
    arguments, saved = INTERRUPTED[verb]
    steps = []

    def interrupted(step):
        def call(*values, **options):
            steps.append(1)
            if len(steps) == 3:
                os.kill(os.getpid(), number)
            return step(*values, **options)

        return call

    monkeypatch.setattr(Trainer, "step", interrupted(Trainer.step))
    monkeypatch.setattr(training_loop, "_step", interrupted(training_loop._step))
    assert main([*arguments, "-o", "out", "-q"]) == status
    word = "interrupted" if number == signal.SIGINT else "terminated"
    message = capsys.readouterr().err.splitlines()[-1]
    assert message == f"elmo: {word}; run the same command again to resume out"
    assert len(steps) == 3
    assert (tmp_path / "out" / saved).is_file()


@pytest.mark.parametrize("writer", ["save_model", "_save"])
def test_a_full_disk_in_task_train_is_one_error(tmp_path, monkeypatch, capsys, writer):
    monkeypatch.chdir(tmp_path)
    Path("ner.txt").write_text(NER)
    write = getattr(training_loop, writer)

    def write_on_a_full_disk(*arguments):
        with file_size_limit(2_000):
            write(*arguments)

    monkeypatch.setattr(training_loop, writer, write_on_a_full_disk)
    assert main([*NER_TRAIN, "--seeds", "1", "--set", "training.epochs=1", "-o", "out", "-q"]) == 1
    error = capsys.readouterr().err
    assert "cannot be written" in error
    assert "bug" not in error
