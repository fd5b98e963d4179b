"""elmo prepare and pretrain, and what evaluate, score and predict do with the trained model."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pyelmo.cli import main
from pyelmo.embed.files.store import read_embeddings

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
