"""elmo probe and elmo explore: figures of encoders on small sets, a report that is one file, a run that is resumed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from html.parser import HTMLParser
from pathlib import Path

import pytest
from support import make_embedder

from pyelmo.cli import main
from pyelmo.probes import pos, scws, wic

SENTENCE = (
    "1\tThe\t_\tDET\t_\t_\t_\t_\t_\t_\n2\thouses\t_\tNOUN\t_\t_\t_\t_\t_\t_\n3\tstand\t_\tVERB\t_\t_\t_\t_\t_\t_\n\n"
)
KEY = "bank%1:17:01::"
TAGGED = f"<s snum=1>\n<wf cmd=done pos=NN lemma=bank wnsn=1 lexsn={KEY[5:]}>bank</wf>\n</s>\n"
XML = '<corpus><text id="a"><sentence id="a.s"><instance id="a.1" lemma="bank" pos="NOUN">bank</instance></sentence></text></corpus>'
RATED = "1\tbank\tn\tit\tn\tthe <b> bank </b>\ta <b> shore </b>\t{0}\t" + "\t".join(["{0}"] * 10) + "\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Two models and a small set for every probe, in the folders and under the names of the published ones."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pos, "SENTENCES", {})
    monkeypatch.setattr(scws, "PAIRS", 2)
    monkeypatch.setattr(wic, "PAIRS", dict.fromkeys(wic.PAIRS, 2))
    monkeypatch.setattr("pyelmo.probes.wsd_data.UNIFIED_WORDS", {})
    for number in (1, 2):
        make_embedder(seed=number).save(f"M{number}")
    sets = {f"ud/en_ewt-ud-{part}.conllu": SENTENCE * 5 for part in ("train", "test")}
    for part in wic.PAIRS:
        sets[f"WiC/{part}/{part}.data.txt"] = "bank\tN\t1-0\tthe bank\tbank it\nit\tN\t0-0\tit is\tit was\n"
        sets[f"WiC/{part}/{part}.gold.txt"] = "T\nF\n"
    sets["SCWS/ratings.txt"] = RATED.format("1.0") + RATED.format("2.0")
    sets |= {"s/brown1/tagfiles/br-a01": TAGGED, "wn/index.sense": f"{KEY} 1 1 1\n"}
    sets |= {"all/ALL.data.xml": XML, "all/ALL.gold.key.txt": f"a.1 {KEY}\n"}
    for name, text in sets.items():
        (tmp_path / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / name).write_text(text, "utf-8")
    return tmp_path


def probe(*arguments: str) -> int:
    return main(["probe", *arguments])


def figures() -> dict:
    return json.loads(Path("report/figures.json").read_text("utf-8"))["figures"]


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open, self.attributes = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.attributes += [name for name, _ in attrs]
        if tag not in ("meta", "line", "polyline"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.attributes += [name for name, _ in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_all_measures_every_encoder_and_writes_one_page(here, capsys):
    assert probe("all", "--encoders", "M1,<i>two & 둘=M2", "--data", "data", "-o", "report") == 0
    keys = ["wsd", "pos", "wic", "scws", "senses", "phrases", "typos"]
    assert list(figures()) == [f"{name}: {key}" for name in ("M1", "<i>two & 둘") for key in keys]
    assert all(f["result"]["layer_names"] == ["token", "LSTM 1", "LSTM 2"] for f in figures().values())
    assert len(figures()["M1: pos"]["result"]["control"]) == 3
    assert figures()["M1: wsd"]["result"]["by_pos"] == {"nouns": [100.0, 100.0, 100.0]}
    assert figures()["M1: wic"]["command"].startswith("elmo probe all --encoders M1,")
    page = Path("report/report.html").read_text("utf-8")
    tags = Tags(page)
    assert tags.open == []
    assert not {"src", "href"} & set(tags.attributes)
    assert "http" not in page
    assert "<i>" not in page
    assert "&lt;i&gt;two &amp; 둘" in page
    assert page.count("<svg") == 7
    out = capsys.readouterr().out
    assert "| M1 | LSTM 2 |" in out
    assert "Word senses (without an encoder: WordNet's first sense 100.0)" in out


def test_the_same_command_keeps_old_figures_and_adds_the_rest(here, capsys, monkeypatch):
    assert probe("senses", "--encoders", "M1", "-o", "report") == 0
    first = figures()
    assert probe("all", "--encoders", "M1,M2", "-o", "report", "--no-control") == 0
    error = capsys.readouterr().err
    assert "M1: senses: already in the file" in error
    assert "skipped: wic: WiC: the probe needs train/train.data.txt" in error
    assert list(figures()) == [f"{name}: {key}" for name in ("M1", "M2") for key in ("senses", "phrases", "typos")]
    assert figures()["M1: senses"] == first["M1: senses"]
    assert "Not measured: wic: WiC: the probe needs train" in Path("report/report.html").read_text("utf-8")
    shutil.rmtree("M1")
    make_embedder(seed=3).save("M1")
    assert probe("senses", "--encoders", "M1", "-o", "report") == 1
    assert (
        "'M1: senses' was measured with another model or other data. Replace it with --force" in capsys.readouterr().err
    )
    assert probe("senses", "--encoders", "M1", "-o", "report", "--force") == 0
    assert figures()["M1: senses"]["result"] != first["M1: senses"]["result"]


def test_figures_go_to_stdout_if_no_folder_is_named(here, capsys):
    before = sorted(here.rglob("*"))
    assert probe("wic", "--encoders", "M1", "--data", "data", "--json") == 0
    results = json.loads(capsys.readouterr().out)
    assert results["language"] == "en"
    assert results["figures"]["M1: wic"]["result"]["pairs"] == {"train": 2, "dev": 2, "test": 2}
    assert sorted(here.rglob("*")) == before


def test_a_stopped_run_says_how_to_resume_it(here, capsys, monkeypatch):
    def stop(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("pyelmo.probes.suite.find_typos", stop)
    assert probe("all", "--encoders", "M1", "-o", "report") == 130
    assert "interrupted; run the same command again to resume report" in capsys.readouterr().err
    assert list(figures()) == ["M1: senses", "M1: phrases"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["wic", "--encoders", "M1"], "WiC: the probe needs train/train.data.txt"),
        (["wic", "--encoders", "M1", "--data", "nowhere"], "nowhere: not a folder"),
        (
            ["wic", "--encoders", "M1", "--language", "ko"],
            "no probe 'wic' for the language ko. Choose one of pos, senses, phrases, typos",
        ),
        (["senses", "--encoders", "M1,M1"], "two encoders have the name 'M1'"),
        (["senses", "--encoders", "M1,nowhere"], "nowhere: no such file or folder"),
        (["senses", "--encoders", "M1", "-o", "data/SCWS/ratings.txt"], "ratings.txt: is a file. Name a folder"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(here, capsys, arguments, message):
    before = sorted(here.rglob("*"))
    assert probe(*arguments) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1, error
    assert message in error
    assert sorted(here.rglob("*")) == before


def test_explore_prints_a_table_and_draws_a_map(here, capsys):
    sentences = ["the *bank* of a river", "my bank account"]
    assert main(["explore", *sentences, "--model", "M1", "--layers", "1", "-o", "map.svg"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "cosines of the vectors of bank (M1)"
    assert (out[1].split(), out[2].split()) == (["LSTM", "1"], ["1", "2"])
    assert out[3].split()[:2] == ["1", "1.00"]
    assert out[4].endswith("1.00   my *bank* account")
    assert Path("map.svg").is_file()
    assert main(["explore", *sentences, "--model", "M1", "--layers", "average", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["occurrences"] == ["the *bank* of a river", "my *bank* account"]
    (mean,) = facts["layers"]
    assert mean["layer"] == "mean of the layers"
    assert mean["cosines"][0][1] == mean["cosines"][1][0] < 1
    assert main(["explore", *sentences, "--model", "M1"]) == 0  # all layers side by side
    out = capsys.readouterr().out.splitlines()
    assert out[1].split() == ["token", "LSTM", "1", "LSTM", "2"]
    assert len(out[3].partition("   the *bank*")[0].split()) == 1 + 3 * 2
    assert main(["explore", *sentences, "a river bank", "--model", "M1", "--centred", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "bank (M1, centred)"
    for more, message in (
        (["-o", "map.svg"], "exists already"),
        (["--centred"], "at least three sentences"),
        (["-o", "map.gif"], "A map ends in .html or .svg"),
        (["--layers", "7"], "--layers 7: M1 has only layers 0 to 2"),
        (["--layers", "x"], "expected all, top, average, the index of a layer from 0, or substitutes"),
    ):
        assert main(["explore", *sentences, "--model", "M1", *more]) == 1
        assert message in capsys.readouterr().err


@pytest.mark.skipif(os.name == "nt", reason="the browser of this test is a shell script")
def test_explore_without_sentences_opens_the_page_in_the_browser(here, tmp_path):
    """The command runs in a process of its own; its browser is a script that writes down the address."""
    browser = tmp_path / "browser"
    browser.write_text(
        f'#!/bin/sh\necho "$1" > {tmp_path}/address.part\nmv {tmp_path}/address.part {tmp_path}/address\n'
    )
    browser.chmod(0o755)
    for sentences, wanted in (
        ([], "/"),
        (["--open", "a *둑* & b", "c"], "/#context?s=a+%2A%EB%91%91%2A+%26+b&s=c"),
    ):
        (tmp_path / "address").unlink(missing_ok=True)
        command = [sys.executable, "-m", "pyelmo", "explore", *sentences, "--model", "M1"]
        process = subprocess.Popen(
            command, env={**os.environ, "BROWSER": str(browser)}, stderr=subprocess.PIPE, text=True
        )
        try:
            while process.poll() is None and not (tmp_path / "address").exists():
                time.sleep(0.05)
            address = (tmp_path / "address").read_text().strip()
            server, slash, rest = address.partition("/#") if "#" in address else (address.rstrip("/"), "/", "")
            assert slash + rest == wanted
            with urllib.request.urlopen(f"{server}/explore/setup", timeout=30) as answer:
                assert [model["name"] for model in json.load(answer)["models"]] == ["M1"]
        finally:
            process.terminate()
            errors = process.communicate()[1]
        assert process.returncode == 0
        assert errors.startswith(f"elmo: the explorer is at {address} ")


def test_explore_refuses_files_for_the_page(here, capsys):
    assert main(["explore", "--json"]) == 1
    assert "need sentences" in capsys.readouterr().err
