"""The same text in another Unicode form has the same vectors, in every method and command."""

from __future__ import annotations

import json
import unicodedata

import numpy as np
import pytest

import pyelmo
from pyelmo.cli import main


@pytest.fixture(scope="module")
def en() -> pyelmo.Embedder:
    return pyelmo.load("en")


@pytest.fixture(scope="module")
def ko() -> pyelmo.Embedder:
    pytest.importorskip("kiwipiepy")
    return pyelmo.load("ko")


def same(model: pyelmo.Embedder, one, other) -> bool:
    return np.array_equal(*model.embed([one, other]))


@pytest.mark.parametrize(
    "written",
    [
        "A cafe\u0301 by the river.",
        "\ufeffA café by the river.",
        "A café\u200b by the ri\u00adver.",
        "A\u00a0café by\u3000the river.",
        "Ａ café by the ｒｉｖｅｒ.",
        "A café\ufe0f by the river.",
    ],
)
def test_english_text_in_another_form_has_the_same_vectors(en, written):
    assert same(en, "A café by the river.", written)


@pytest.mark.parametrize(
    "written",
    [
        unicodedata.normalize("NFD", "다리를 건너 시내로 갔다 ㅋㅋㅋ"),
        "\ufeff다리를\u200b 건너 시내로 갔다 ㅋㅋㅋ",
        "다리를 건너 시내로 갔다 \u110f\u110f\u110f",
        "다리를 건너 시내로 갔다 ﾻﾻﾻ",
    ],
)
def test_korean_text_in_another_form_has_the_same_vectors(ko, written):
    assert same(ko, "다리를 건너 시내로 갔다 ㅋㅋㅋ", written)


def test_lists_of_words_are_normalised_and_keep_their_number(en, ko):
    assert same(en, ["A", "café"], ["A", "cafe\u0301"])
    assert same(ko, ["다리", "\u11ab다"], [unicodedata.normalize("NFD", "다리"), "\u11ab다"])
    assert en.embed([["A", "\u200b", "bank"]])[0].shape == (3, 3, 1024)
    assert np.array_equal(en.batch([["cafe\u0301"]]).chars, en.batch([["café"]]).chars)


def test_every_method_reads_text_in_the_same_form(en):
    nfc, nfd = "The café of the river", "The cafe\u0301 of the river"
    assert en.score(nfd) == en.score(nfc)
    assert en.perplexity([nfd]) == en.perplexity([nfc])
    assert en.predict(f"{nfd} ___", count=2) == en.predict(f"{nfc} ___", count=2)
    assert en.similarity("a *cafe\u0301*", "a *café*") == pytest.approx(1)
    assert en.similarity(nfd, nfc) == pytest.approx(1)


def test_commands_read_text_in_the_same_form(tmp_path, capsys):
    answers = []
    for name, line in {"nfc": "The café .\n", "nfd": "The cafe\u0301\u200b .\n"}.items():
        (tmp_path / name).write_text(line, "utf-8")
        arguments = [str(tmp_path / name), "-o", "-", "--model", "en", "--layers", "top", "--quiet"]
        assert main(["embed", *arguments]) == 0
        tokens = capsys.readouterr().out
        assert main(["embed", *arguments, "--tokenised"]) == 0
        lists = capsys.readouterr().out
        assert main(["score", "en", str(tmp_path / name), "--json"]) == 0
        answers.append([_vectors(tokens), _vectors(lists), capsys.readouterr().out])
    assert answers[0] == answers[1]


def _vectors(lines: str) -> list[object]:
    return [list(json.loads(line).values())[-1] for line in lines.splitlines()]
