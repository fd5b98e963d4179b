"""Fixtures of the command line: a folder with what the examples name, and a trained model."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pyelmo.cli import main

TEXT = Path(__file__).parents[1] / "banks.txt"


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch):
    """Make `--device auto` choose the CPU, whose results the tests compare."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)


@pytest.fixture
def here(tmp_path, monkeypatch, clip_model):
    """A folder with a model, some sentences, and what the examples of --help name."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(clip_model, tmp_path / "MODEL")
    shutil.copytree(clip_model, tmp_path / "options_and_weights")
    (tmp_path / "sentences.txt").write_text("The bank of a river.\nA bank account\n", "utf-8")
    return tmp_path


@pytest.fixture(scope="session")
def trained(tmp_path_factory) -> Path:
    """From raw text to a usable model by two commands: the tiny recipe, in smaller form."""
    folder = tmp_path_factory.mktemp("trained")
    shutil.copy(TEXT, folder / "text.txt")
    small = ["training.words=20000", "training.batch=16", "model.lstm.cells=32", "model.lstm.projection=16"]
    prepare = ["prepare", str(TEXT), "-o", str(folder / "corpus"), "--tokenised", "--valid", str(TEXT), "-q"]
    prepare += ["--language", "en"]
    assert main(prepare) == 0
    changes = [part for change in small for part in ("--set", change)]
    pretrain = [
        "pretrain",
        str(folder / "corpus"),
        "-o",
        str(folder / "LMrun"),
        "--recipe",
        "tiny-cpu",
        "--device",
        "cpu",
    ]
    assert main([*pretrain, *changes, "-q"]) == 0
    return folder
