"""Files of a task model with NaN, impossible sizes or labels that are no strings are refused with one clear error."""

from __future__ import annotations

import json
import shutil

import pytest
from task_support import run_settings

from pyelmo.cli import main
from pyelmo.errors import FormatError
from pyelmo.tasks import load
from pyelmo.tasks.harness.run import train_run


@pytest.fixture(scope="module")
def trained(ner_data, tmp_path_factory):
    output = tmp_path_factory.mktemp("damaged") / "run"
    train_run(run_settings(ner_data, "training.epochs=1", encoder=str(ner_data / "LM")), output)
    return output / "seed-1" / "model"


def change(folder, file: str, path: tuple[str, ...], value: object) -> None:
    content = json.loads((folder / file).read_text("utf-8"))
    table = content
    for key in path[:-1]:
        table = table[key]
    table[path[-1]] = value
    (folder / file).write_text(json.dumps(content), "utf-8")


NAN, INFINITY = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("file", "path", "value", "message"),
    [
        ("config.json", ("recipe", "network", "dropout"), NAN, "not a JSON file .*NaN"),
        ("config.json", ("recipe", "elmo", "dropout"), INFINITY, "not a JSON file .*Infinity"),
        ("config.json", ("recipe", "elmo", "penalty"), NAN, "not a JSON file .*NaN"),
        ("config.json", ("recipe", "network", "dropout"), 1.5, "network.dropout: 1.5 is not between 0 and 1"),
        ("config.json", ("recipe", "network", "dropout"), "0.5", "network.dropout: expected float"),
        ("config.json", ("recipe", "network", "hidden"), [10**9, 8], "network.hidden: 1000000000 is not between 1"),
        ("config.json", ("recipe", "network", "hidden"), [0, 8], "network.hidden: 0 is not between 1"),
        ("config.json", ("recipe", "training", "weight_decay"), -1.0, "training.weight_decay: -1.0 is negative"),
        ("config.json", ("dim",), "8", "expected int under 'dim'"),
        ("config.json", ("dim",), 10**12, "the size of word vectors is 1000000000000"),
        ("config.json", ("shape", "layers"), NAN, "not a JSON file .*NaN"),
        ("config.json", ("shape", "layers"), 10**9, "cannot have 1000000000 layers"),
        ("config.json", ("task",), 5, "expected str under 'task'"),
        ("vocab.json", ("labels",), ["O", NAN], "not a JSON file .*NaN"),
        ("vocab.json", ("labels",), ["O", 5], "5 in 'labels' is no string"),
        ("vocab.json", ("labels",), ["O", "O"], "a string is in 'labels' twice"),
        ("vocab.json", ("labels",), [], "there are no labels"),
        ("vocab.json", ("labels",), "O", "expected list under 'labels'"),
        ("vocab.json", ("words",), [None], "None in 'words' is no string"),
    ],
)
def test_a_damaged_setting_or_label_is_refused(trained, tmp_path, file, path, value, message, capsys):
    shutil.copytree(trained, tmp_path / "model")
    change(tmp_path / "model", file, path, value)
    with pytest.raises(FormatError, match=message):
        load(tmp_path / "model")
    assert main(["task", "predict", str(tmp_path / "model"), "Ann ran."]) == 1
    assert "internal error" not in capsys.readouterr().err


@pytest.mark.parametrize("setting", ["network.dropout=nan", "elmo.dropout=1.0", "training.lr=nan", "words.dim=-1"])
def test_a_setting_beyond_its_limits_is_refused_on_the_command_line(ner_data, tmp_path, setting, capsys):
    data = [str(ner_data / f"{name}.conll") for name in ("train", "dev")]
    options = ["--encoder", "none", "-o", str(tmp_path / "run"), "--set", setting]
    assert main(["task", "train", "ner", "--data", *data, *options]) == 1
    error = capsys.readouterr().err
    assert setting.partition("=")[0] in error
    assert not (tmp_path / "run").exists()


def test_others_may_read_all_files_of_a_task_model(trained, tmp_path):
    (tmp_path / "any").touch()
    run = trained.parents[1]
    modes = {path.stat().st_mode for path in run.rglob("*") if path.is_file() and path.name != ".lock"}
    assert modes == {(tmp_path / "any").stat().st_mode}
