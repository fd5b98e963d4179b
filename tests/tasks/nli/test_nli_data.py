"""Pairs of texts: every published format gives the same pairs, and a malformed file is one clear error."""

from __future__ import annotations

import json

import pytest

from pyelmo.errors import FormatError, NotFoundError
from pyelmo.tasks.nli.data import PUBLISHED, SentencePair, read_pairs

TEXTS = [("A man doesn't sleep.", "He rests.", "entailment"), ("A dog", 'It said "no"', "neutral")]
PAIRS = [
    SentencePair(("A", "man", "does", "n't", "sleep", "."), ("He", "rests", "."), "entailment"),
    SentencePair(("A", "dog"), ("It", "said", '"', "no", '"'), "neutral"),
]


def objects(*names: str) -> list[dict[str, str]]:
    return [dict(zip(names, each, strict=True)) for each in TEXTS]


SNLI = objects("sentence1", "sentence2", "gold_label")
UNDECIDED = {"sentence1": "a", "sentence2": "b", "gold_label": "-"}
FILES = {
    "snli": ("jsonl", "\n".join(map(json.dumps, [*SNLI, UNDECIDED])) + "\n\n"),
    "lingnli": ("jsonl", "\n".join(map(json.dumps, objects("premise", "hypothesis", "label")))),
    "klue": ("json", json.dumps(objects("premise", "hypothesis", "gold_label"))),
    "sick": (
        "tsv",
        "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\r\n"
        + "".join(f"{n}\t{one}\t{two}\t3.3\t{label.upper()}\r\n" for n, (one, two, label) in enumerate(TEXTS)),
    ),
    "kornli": ("tsv", "sentence1\tsentence2\tgold_label\n" + "".join("\t".join(each) + "\n" for each in TEXTS)),
    "counterfactual": (
        "tsv",
        "sentence1\tsentence2\tgold_label\n" + "\t".join(TEXTS[0]) + '\nA dog\t"It said ""no"""\tneutral\n',
    ),
    "esnli": (
        "csv",
        "pairID,gold_label,Sentence1,Sentence2,Explanation_1\n"
        '1,entailment,A man doesn\'t sleep.,He rests.,"so, it is"\n2,neutral,A dog,"It said ""no""",\n',
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_pairs(tmp_path, name):
    form, text = FILES[name]
    (tmp_path / "pairs").write_bytes(text.encode())
    assert read_pairs(tmp_path / "pairs", form) == PAIRS


def test_esnli_as_text_is_three_files_in_one_folder(tmp_path):
    for name, column in zip(("s1", "s2", "labels"), zip(*TEXTS, strict=True), strict=True):
        (tmp_path / f"{name}.mine").write_text("\n".join(column) + "\n")
    assert read_pairs(tmp_path / "s1.mine", "lines") == PAIRS
    (tmp_path / "s2.mine").write_text("one line\n")
    with pytest.raises(FormatError, match=r"s2.mine: 1 lines, but .*s1.mine has 2"):
        read_pairs(tmp_path / "s1.mine", "lines")
    with pytest.raises(FormatError, match="Give the file s1.X"):
        read_pairs(tmp_path / "labels.mine", "lines")
    (tmp_path / "s2.mine").unlink()
    with pytest.raises(NotFoundError, match="s2.mine: not found"):
        read_pairs(tmp_path / "s1.mine", "lines")


def test_text_that_is_already_split_is_left_as_it_is_and_may_be_empty(tmp_path):
    (tmp_path / "pairs").write_text("premise\thypothesis\tlabel\n하 ㄴ다\t\tneutral\n")
    assert read_pairs(tmp_path / "pairs", "tsv", "ko", tokenised=True) == [SentencePair(("하", "ㄴ다"), (), "neutral")]


@pytest.mark.parametrize(
    ("form", "text", "message"),
    [
        ("jsonl", json.dumps(SNLI[0]) + "\n{broken\n", "pairs, line 2: not JSON"),
        ("jsonl", "[1]\n", "pairs, line 1: expected a JSON object, found"),
        ("jsonl", json.dumps(SNLI[0] | {"gold_label": "maybe"}), "pairs, line 1: unknown label 'maybe'"),
        (
            "jsonl",
            json.dumps(SNLI[0] | {"gold_label": None}),
            "pairs, line 1: field 'gold_label' is None, expected a string",
        ),
        (
            "jsonl",
            '{"sentence1": "a"}\n',
            r"line 1: no field 'sentence2' or 'hypothesis' or 'sentence_B' \(fields: sentence1\)",
        ),
        ("jsonl", "", "pairs: holds no labelled pairs"),
        ("jsonl", json.dumps(UNDECIDED), "pairs: holds no labelled pairs"),
        ("json", "[{", "pairs: not JSON"),
        ("json", "{}", "pairs: expected a list of pairs, found dict"),
        ("json", "[3]", "pairs, pair 1: expected a JSON object"),
        ("tsv", "sentence1\tsentence2\tgold_label\na\tb\n", "pairs, line 2: 2 columns, but the header has 3"),
        (
            "tsv",
            "one\ttwo\nA\tB\n",
            r"line 2: no field 'sentence1' or .* \(fields: one, two\)\. Choose the format with --set data.format",
        ),
        ("csv", "a,b\n" + '"' + "x" * 5_000_000, "pairs, line 2: not a CSV table"),
    ],
)
def test_a_malformed_file_is_one_clear_error(tmp_path, form, text, message):
    (tmp_path / "pairs").write_text(text)
    with pytest.raises(FormatError, match=message):
        read_pairs(tmp_path / "pairs", form)
    with pytest.raises(NotFoundError, match="nowhere: not found"):
        read_pairs(tmp_path / "nowhere", form)


def test_an_incomplete_copy_of_a_published_file_is_noticed(tmp_path):
    (tmp_path / "snli_1.0_dev.jsonl").write_text(FILES["snli"][1])
    with pytest.raises(FormatError, match="2 labelled pairs, expected 9,842 as published"):
        read_pairs(tmp_path / "snli_1.0_dev.jsonl", "jsonl")
    assert PUBLISHED["snli_1.0_test.jsonl"] == 9824
