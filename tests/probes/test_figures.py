"""A file of figures: written one by one, kept when they are still right, and found where labelled sets lie."""

from __future__ import annotations

import json

import numpy as np
import pytest

from pyelmo import provenance
from pyelmo.encoders.base import LoadedEncoder, NamedEncoder
from pyelmo.errors import FormatError, InputError, NotFoundError
from pyelmo.probes import suite
from pyelmo.probes.figures import Measurement, measure
from pyelmo.provenance import plain_command


def never():
    raise AssertionError("measured again")


def run(path, plan, **options):
    return measure(plan, path, {"language": "en"}, origin={"command": "x"}, **options)


def test_figures_found_before_a_stop_are_kept(tmp_path):
    path, lines = tmp_path / "new" / "figures.json", []

    def stop():
        raise KeyboardInterrupt

    first = Measurement("one", {"model": "a"}, lambda: {"f1": 1.5})
    with pytest.raises(KeyboardInterrupt):
        run(path, [first, Measurement("two", {}, stop)])
    assert json.loads(path.read_text("utf-8"))["figures"]["one"]["result"] == {"f1": 1.5}
    plan = [Measurement("one", {"model": "a"}, never), Measurement("two", {}, lambda: {"f1": 2})]
    found = run(path, plan, log=lines.append)
    assert [figure["result"]["f1"] for figure in found["figures"].values()] == [1.5, 2]
    assert lines == ["one: already in the file", "two:"]
    assert found == json.loads(path.read_text("utf-8"))
    assert found["figures"]["two"]["command"] == "x"
    assert isinstance(found["figures"]["two"]["seconds"], float)


def test_figures_of_another_model_are_replaced_only_by_force(tmp_path):
    path = tmp_path / "figures.json"
    run(path, [Measurement("one", {"model": "a"}, lambda: {"f1": 1})])
    other = Measurement("one", {"model": "b"}, lambda: {"f1": 2})
    with pytest.raises(InputError, match="'one' was measured with another model"):
        run(path, [other])
    assert run(path, [other], force=True)["figures"]["one"]["result"] == {"f1": 2}
    with pytest.raises(InputError, match="holds figures of the language 'en', expected 'ko'"):
        measure([], path, {"language": "ko"}, origin={})


@pytest.mark.parametrize("text", ["{", "[]", '{"figures": 3}'])
def test_a_file_that_holds_no_figures_is_not_written_over(tmp_path, text):
    (tmp_path / "figures.json").write_text(text)
    with pytest.raises(FormatError, match="figures.json: "):
        run(tmp_path / "figures.json", [])
    assert (tmp_path / "figures.json").read_text() == text


def test_a_command_is_stored_without_the_folders_of_its_machine(tmp_path):
    arguments = ["--encoders", f"en,mine={tmp_path}/a,{tmp_path}/b.txt", "--data", str(tmp_path), "-o", "report"]
    told = plain_command("elmo probe", arguments)
    assert told == f"elmo probe --encoders en,mine=a,b.txt --data {tmp_path.name} -o report"
    cove = f"CoVe=cove:{tmp_path}/w.pth+{tmp_path}/v.txt"
    assert plain_command("elmo", [cove, "transformers:a/b"]) == "elmo CoVe=cove:w.pth+v.txt transformers:a/b"


def test_what_is_missing_is_noticed_before_anything_is_read(tmp_path):
    encoder = NamedEncoder("x", {}, never)
    for probe, message in (
        ("wsd", "SemCor 3.0: no brown1/tagfiles below"),
        ("pos", "UD English EWT: no en_ewt-ud-train.conllu below"),
        ("wic", "WiC: no train/train.data.txt below"),
        ("scws", "SCWS: no .*ratings.txt below"),
    ):
        with pytest.raises(NotFoundError, match=message):
            suite.plan(probe, encoder, "en", [tmp_path])
    with pytest.raises(NotFoundError, match="Name the folder that contains it with --data"):
        suite.plan("wic", encoder, "en", [])
    with pytest.raises(
        InputError, match="no probe 'wic' for the language ko. Choose one of pos, senses, phrases, typos"
    ):
        suite.plan("wic", encoder, "ko", [])


def test_data_sets_are_found_at_any_depth_and_named_in_the_figure(tmp_path, monkeypatch):
    monkeypatch.setattr(suite.pos, "SENTENCES", {})
    encoder = NamedEncoder("x", {"model": "m"}, never)
    for name in ("ko_kaist-ud-train", "ko_kaist-ud-test", "ko_gsd-ud-train", "ko_gsd-ud-test"):
        (tmp_path / name[:6] / "deep").mkdir(parents=True, exist_ok=True)
        (tmp_path / name[:6] / "deep" / f"{name}.conllu").touch()
    found = suite.plan("pos", encoder, "ko", [tmp_path / "other", tmp_path], control=False)
    assert [(m.key, m.of) for m in found] == [
        ("pos", {"model": "m", "treebank": "UD Korean Kaist"}),
        ("pos UD Korean GSD", {"model": "m", "treebank": "UD Korean GSD"}),
    ]
    assert suite.plan("pos", encoder, "ko", [tmp_path])[0].of["control"] is True
    (typos,) = suite.plan("typos", encoder, "ko", [tmp_path], seed=3)
    assert typos.of == {"model": "m", "text": "UD Korean Kaist", "seed": 3}
    assert suite.plan("typos", encoder, "ko", [])[0].of["text"] == "the list of words with two senses"
    assert [m.key for m in suite.plan("senses", encoder, "ko", [])] == ["senses"]
    assert [m.key for m in suite.plan("senses", encoder, "ko", [], held_out=True)] == ["senses", "senses held out"]


def test_a_list_is_split_as_the_encoder_s_own_text_was(monkeypatch):
    seen = []
    listed = suite.senses.listed
    monkeypatch.setattr("pyelmo.probes.senses.listed", lambda name, **o: seen.append(o["split"]) or listed(name))

    def embed(sentences):
        return (np.random.default_rng(0).normal(size=(1, len(words), 2)).astype(np.float32) for words in sentences)

    encoder = NamedEncoder("x", {}, lambda: LoadedEncoder(embed=embed, layers=("word",), language="general"))
    found = suite.plan("senses", encoder, "en", [])[0].find()
    assert found["layer_names"] == ["word"]
    assert found["sentences"] == 160
    assert seen == ["general"]


def test_a_figure_says_the_commit_and_the_processor(monkeypatch, tmp_path):
    monkeypatch.setenv("PYELMO_COMMIT", "abc1234")
    assert (provenance.versions()["commit"], provenance.machine()["commit"]) == ("abc1234", "abc1234")
    assert provenance.versions()["cpu"]
    monkeypatch.delenv("PYELMO_COMMIT")
    monkeypatch.setattr(provenance, "__file__", str(tmp_path / "site-packages" / "pyelmo" / "provenance.py"))
    assert provenance.versions()["commit"] == ""  # an installed package, maybe below somebody else's checkout
