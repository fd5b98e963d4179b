"""elmo bench: the report for people and for programs, without and with a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pyelmo.cli import main


@pytest.fixture
def quick(clip_model, tmp_path) -> list[str]:
    text = tmp_path / "text.txt"
    text.write_text("The bank of a river.\n\nA bank account\n", "utf-8")
    return ["bench", str(clip_model), "--text", str(text), "--threads", "1", "--seconds", "0"]


def test_the_report_for_programs_holds_every_number(quick, capsys):
    assert main([*quick, "--json"]) == 0
    captured = capsys.readouterr()
    facts = json.loads(captured.out)
    assert (facts["sentences"], facts["words"], facts["distinct_words"], facts["threads"]) == (2, 9, 8, 1)
    assert list(facts["precisions"]) == ["float32", "int8"]
    for measured in facts["precisions"].values():
        assert [(row["batch"], row["words"]) for row in measured["speeds"]] == [
            ("default", "new"),
            ("default", "known"),
            (32, "known"),
            (1, "known"),
        ]
        for row in measured["speeds"]:
            assert row["words_per_s"] > 0
            assert row["share_of_limit"] == pytest.approx(row["gflops"] / measured["limit_gflops"])
        one = measured["one_sentence_ms"]
        assert 0 < one["median"] <= one["p99"]
        assert one["calls"] >= 20
        assert 0.05 < measured["peak_memory_gb"] < 4
    assert "Traceback" not in captured.err


def test_the_report_for_people_is_an_aligned_table(quick, capsys):
    assert main(quick) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "sentences: 2, words: 9, distinct: 8" in lines
    start = next(number for number, line in enumerate(lines) if line.startswith("precision  batch"))
    rows = lines[start : start + 9]
    assert len({len(line) for line in rows}) == 1, "\n".join(rows)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere: no such file or folder"),
        (["MODEL", "--text", "missing.txt"], "missing.txt: not found"),
        (["MODEL", "--text", "blank.txt"], "no words"),
        (["MODEL", "--threads", "0"], "threads is 0"),
        (["MODEL", "--device", "toaster"], "toaster"),
    ],
)
def test_what_cannot_be_measured_is_one_line(arguments, message, clip_model, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    Path("blank.txt").write_text("\n \n")
    named = [str(clip_model) if argument == "MODEL" else argument for argument in arguments]
    assert main(["bench", *named]) == 1
    error = capfd.readouterr().err.splitlines()
    assert len(error) == 1
    assert error[0].startswith("elmo: ")
    assert message in error[0]
