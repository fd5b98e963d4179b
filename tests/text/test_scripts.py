"""A warning for text in a script that the model hardly saw in training."""

from __future__ import annotations

import warnings

import pytest
from support import make_embedder

import pyelmo
from pyelmo.cli import main
from pyelmo.errors import ScriptWarning
from pyelmo.text.scripts import ScriptCheck
from pyelmo.text.vocabulary import Vocabulary

SPECIAL = ("<S>", "</S>", "<UNK>")
LATIN = Vocabulary((*SPECIAL, *(f"word{letter}{number}" for letter in "abcdefghij" for number in range(200)), "α"))


@pytest.mark.parametrize(
    ("words", "script"), [(["한국어", "문장", "a"], "Hangul"), (["Привет"], "Cyrillic"), (["λόγος", "αβγ"], "Greek")]
)
def test_text_in_another_script_gets_one_warning(words, script):
    check = ScriptCheck("mine", LATIN)
    with pytest.warns(ScriptWarning, match=f"mine hardly saw {script} script in training"):
        check.check(words)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check.check(words)


@pytest.mark.parametrize(
    "words",
    [["a", "café", "Ａ"], ["the", "river", "한국"], ["2023", "!", "❤"], [], ["the", "angle", "α"]],
)
def test_text_of_the_model_gets_none(words):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ScriptCheck("mine", LATIN).check(words)


def test_a_model_without_a_vocabulary_or_with_a_tiny_one_gives_none():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ScriptCheck("mine", None).check(["한국어"])
        make_embedder().embed([["한국어"]])


def test_the_bundled_models_warn_once_for_each_others_script():
    en = pyelmo.load("en")
    with pytest.warns(ScriptWarning, match="en hardly saw Hangul script .* use the model ko") as caught:
        en.embed(["다리를 건너", ["다리", "를"], "A bank."])
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        en.score("다리")
        pyelmo.load("ko").embed([["다리", "를", "\u11ab다", "ㅋㅋ"], ["the", "river"], ["大韓民國"]])


def test_a_command_prints_the_warning_as_one_line(capsys):
    assert main(["explore", "*배* 를 타다", "*배* 가 아프다", "--model", "en"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if "Hangul" in line] == [
        "elmo: warning: en hardly saw Hangul script in training, so its answers for text such as '배 를 타다' mean "
        "little. For this text use the model ko."
    ]
