"""The script that builds the training text: nothing of a test set comes through, and the same comes out again."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "models" / "training_text.py"
SENTENCE = "The old bank by the river was closed for good in March"
OTHERS = [
    f"Paragraph number {word} says something that no other paragraph of this text will ever say" for word in "abcdefgh"
]


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("training_text", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["training_text"] = module
    spec.loader.exec_module(module)
    return module


def build(script, folder: Path, documents: list[list[str]], tests: list[str], **settings: object) -> str:
    """The training text that comes of some documents."""
    (folder / "tests").mkdir(exist_ok=True)
    (folder / "tests" / "set.txt").write_text("\n".join(tests) + "\n")
    (folder / "one.txt").write_text("".join("\n".join(document) + "\n\n" for document in documents))
    source = {"name": "one", "file": "one.txt", "genre": "news", "licence": "CC0", **settings}
    script.build({"seed": 1, "source": [source]}, folder, folder / "tests", folder / "out")
    return (folder / "out" / "one.train.txt").read_text()


def test_a_paragraph_that_shares_eight_words_with_a_test_set_goes(script, tmp_path):
    text = build(script, tmp_path, [[OTHERS[0], f"Yes: {SENTENCE}, they say."], [OTHERS[1]]], [SENTENCE])
    assert text == f"{OTHERS[0]}\n\n{OTHERS[1]}\n\n"


def test_seven_words_in_a_row_may_stay(script, tmp_path):
    paragraph = "The old bank by the river was open and full of people on that day"
    assert paragraph in build(script, tmp_path, [[paragraph]], [SENTENCE])


def test_tokenisation_and_case_hide_nothing(script, tmp_path):
    tests = ['" The Old bank , by the river , did n\'t CLOSE for good in March . "']
    assert not build(script, tmp_path, [["The old bank by the river didn't close for good in March."]], tests)


def test_a_short_test_item_goes_where_it_is_a_whole_paragraph(script, tmp_path):
    text = build(script, tmp_path, [["What a bore!"], [f"What a bore, he said. {OTHERS[0]}"]], ["What a bore ."])
    assert text == f"What a bore, he said. {OTHERS[0]}\n\n"


def test_a_paragraph_with_a_known_opening_goes(script, tmp_path):
    again = "Every version of this article opens with the same words, " * 3
    text = build(script, tmp_path, [[f"{again} and ends in one way."], [f"{again} and ends in another."]], [])
    assert text.count("\n\n") == 1


def test_held_out_documents_are_not_trained_on(script, tmp_path):
    documents = [[" ".join(f"word{number}x{place}" for place in range(12))] for number in range(400)]
    text = build(script, tmp_path, documents, [], held_out=600)
    held = (tmp_path / "out" / "one.dev.txt").read_text() + (tmp_path / "out" / "one.test.txt").read_text()
    assert held
    assert text
    assert not set(held.split("\n")) - {""} & set(text.split("\n")) - {""}


def test_a_limit_of_words_takes_documents_at_random_and_the_same_again(script, tmp_path):
    documents = [[f"Document {number} " + "has words of its own " * 20 + str(number)] for number in range(400)]
    first = build(script, tmp_path, documents, [], million_words=0.005)
    assert first == build(script, tmp_path, documents, [], million_words=0.005)
    assert 4_000 < len(first.split()) < 6_000
    assert json.loads((tmp_path / "out" / "report.json").read_text())["sources"]["one"]["words"] == len(first.split())


def test_check_counts_the_items_that_a_text_holds(script, tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "set.txt").write_text("\n".join([SENTENCE, *OTHERS[:2], "too short"]) + "\n")
    (tmp_path / "text.txt").write_text(f"So it was. {SENTENCE}.\n")
    found = script.check([tmp_path / "text.txt"], tmp_path / "tests")["set"]
    assert found == {"items": 4, "of 8 words": 3, "an 8-gram": 1, "half of them": 1}


@pytest.mark.parametrize(
    ("cleaner", "before", "after"),
    [
        ("wiki", "It lies from the town. It weighs , by most accounts. It is old ().", "It lies from the town. It is old."),
        ("talk", "\\[01:26:33.18\\] I haven&#39;t **tried** it yet.", "I haven't tried it yet."),
        ("petition", "저는 **동에 사는 임** 입니다 그리고 이 글은 아주 길게 계속해서 이어지는 글입니다 정말로 그렇습니다 네 그래서 또 이렇게 길게 쓰고 또 씁니다 그리고 계속 길게 씁니다 네", None),
    ],
)  # fmt: skip
def test_cleaners_leave_prose(script, cleaner, before, after):
    found = script.CLEANERS[cleaner]([before])
    assert found == ([] if after is None else [after])
