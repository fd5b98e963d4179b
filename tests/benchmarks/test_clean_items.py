"""The script that finds test examples whose text is not in a training text, and the table of these examples alone."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

from task_support import sentences

from pyelmo.cli import main

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "tasks" / "clean_items.py"
SENTENCE = "This very sentence is also in the training text of the encoder"
LONG = SENTENCE.replace(" ", "\tO\n") + "\tO"
PLAN = """
[[set]]
name = "names"
task = "ner"
data = ["train.conll", "dev.conll", "test.conll"]
run = [{ name = "base", encoder = "none" }]
"""
FAST = ["--set", "training.epochs=1", "--set", "network.hidden=[4,4]", "--set", "network.characters=0"]


def test_items_in_a_training_text_are_left_out_of_the_table(tmp_path, monkeypatch, capsys):
    spec = importlib.util.spec_from_file_location("clean_items", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    data = tmp_path / "data"
    data.mkdir()
    for name, text in (("train", sentences(8, 1)), ("dev", sentences(2, 2)), ("test", sentences(3, 3) + LONG + "\n")):
        (data / f"{name}.conll").write_text(text)
    (tmp_path / "plan.toml").write_text(PLAN)
    (tmp_path / "text.txt").write_text("He said: this very sentence is also in the training text.\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["x", "plan.toml", "--data", "data", "--text", "text.txt", "-o", "clean.json"])
    script.main()
    (found,) = json.loads((tmp_path / "clean.json").read_text())["sets"].values()
    assert (found["set"], found["examples"], found["items"], found["half"]) == ("names", 4, [0, 1, 2], 0)
    files = [str(data / f"{name}.conll") for name in ("train", "dev", "test")]
    assert main(["task", "train", "ner", "--data", *files, "--encoder", "none", "-o", "run", "-q", *FAST]) == 0
    capsys.readouterr()
    assert main(["task", "table", "run", "--items", "clean.json", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["items"] == 3
