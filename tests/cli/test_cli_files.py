"""elmo models, inspect and convert."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np

import pyelmo
from pyelmo.cli import main


def test_convert_and_inspect(here, capsys):
    assert main(["convert", "MODEL", "native"]) == 0
    assert main(["convert", "native", "back", "--to", "allennlp"]) == 0
    assert main(["convert", "native", "w.hdf5"]) == 0
    assert main(["convert", "native", "small", "--precision", "int8"]) == 0
    assert main(["inspect", "small"]) == 0
    assert "weights: int8" in capsys.readouterr().out
    assert main(["convert", "native", "no", "--to", "allennlp", "--precision", "int8"]) == 1
    assert "only pyelmo's own format" in capsys.readouterr().err
    assert (here / "w_options.json").is_file()
    for name, kind in (("native", "pyelmo"), ("back", "allennlp"), ("w.hdf5", "allennlp")):
        capsys.readouterr()
        assert main(["inspect", name, "--json"]) == 0
        facts = json.loads(capsys.readouterr().out)
        assert (facts["format"], facts["layers"], facts["dim"]) == (kind, 3, 32)
        assert facts["parameters"]["total"] == sum(p.numel() for p in pyelmo.load("MODEL").bilm.parameters())
    assert main(["inspect", "native"]) == 0
    assert "cells: 64" in capsys.readouterr().out
    assert main(["inspect", "en"]) == 0
    assert "weights: int4" in capsys.readouterr().out


def test_convert_keeps_the_first_words_in_int8_too(trained, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = str(trained / "LMrun" / "model")
    assert main(["convert", model, "small", "--vocab-size", "50", "--precision", "int8", "--language", "ko"]) == 0
    small, whole = pyelmo.load("small"), pyelmo.load(model)
    assert (small.config.softmax, small.language) == (50, "ko")
    assert small.lexicon.vocab.words == whole.lexicon.vocab.words[:50]
    assert Path("small/vocab.txt").read_text().count("\n") == 50
    assert main(["convert", model, "int8", "--precision", "int8"]) == 0
    for name in ("softmax.weight", "softmax.bias"):
        pair = (dict(pyelmo.load(m).bilm.named_parameters())[name].detach().numpy() for m in ("small", "int8"))
        np.testing.assert_array_equal(*(array[:50] for array in pair))
    capsys.readouterr()
    assert main(["convert", model, "none", "--vocab-size", "1000"]) == 1
    assert "cannot keep 1000 words" in capsys.readouterr().err
    assert not Path("none").exists()


def test_models_lists_the_bundled_models_and_prints_a_card(here, capsys, monkeypatch):
    monkeypatch.setattr("pyelmo.formats.bundled.BUNDLED", here / "box")
    Path("box").mkdir()
    assert main(["models"]) == 0
    assert capsys.readouterr().out == ""
    assert main(["convert", "MODEL", "box/xx", "--language", "ko"]) == 0
    card = "---\nlanguage: ko\nlicense: CC0-1.0\n---\n# 카드\n\nlicense: said above.\n"
    Path("box/xx/README.md").write_text(card, "utf-8")
    size = sum(path.stat().st_size for path in Path("box/xx").iterdir())
    capsys.readouterr()
    assert main(["models", "--json"]) == 0
    facts = {"name": "xx", "language": "ko", "bytes": size, "layers": 3, "dim": 32, "predicts_words": 0}
    assert json.loads(capsys.readouterr().out) == [{**facts, "licence": "CC0-1.0"}]
    assert main(["models"]) == 0
    line = capsys.readouterr().out
    assert line.split() == f"xx language ko {size / 2**20:.1f} MiB 3 layers x 32 0 words CC0-1.0".split()
    assert main(["models", "xx"]) == 0
    assert capsys.readouterr().out == card
    for name in ("yy", "../MODEL", ""):
        assert main(["models", name]) == 1
        assert capsys.readouterr().err == f"elmo: {name}: no bundled model of that name (bundled: xx)\n"
    os.remove("box/xx/README.md")
    assert main(["models"]) == 1
    assert "README.md: not found" in capsys.readouterr().err
