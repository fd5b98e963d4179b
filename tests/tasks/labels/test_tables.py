"""Own labelled text: tables with any labels for a classifier, and words with labels from JSON Lines and CoNLL-U."""

from __future__ import annotations

import gzip
import json
from typing import get_args, get_type_hints

import pytest

from pyelmo.cli import main
from pyelmo.errors import ConfigError, FormatError, InputError
from pyelmo.tasks import load
from pyelmo.tasks.harness.formats import FORMATS, format_by_name
from pyelmo.tasks.harness.task import TASKS, Example, find_task
from pyelmo.tasks.ner import task as ner
from pyelmo.tasks.sentiment import task as sentiment

FAST = [
    "--encoder", "none", "--seeds", "1", "-q", "--set", "training.epochs=1", "--set", "network.hidden=4", "--set",
    "words.dim=4",
]  # fmt: skip
ROWS = [("A lovely film, really.", "good"), ("Dull.", "bad"), ("", "bad")]
CSV = 'id,body,stars\n1,"A lovely film, really.",good\n2,Dull.,bad\n3,,bad\n'
CONLLU = (
    "# text = Ann's here\n"
    "1-2\tAnn's\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "1\tAnn\tAnn\tPROPN\tNNP\t_\t0\troot\t_\tNER=B-PER|SpaceAfter=No\n"
    "2\t's\tbe\tAUX\tVBZ\t_\t1\tcop\t_\t_\n"
    "3\there\there\tADV\tRB\t_\t1\tadvmod\t_\tNER=O\n\n"
)


def files(folder, rows=ROWS):
    """The same rows in every format of tables."""
    records = [{"body": text, "stars": label} for text, label in rows]
    (folder / "a.csv").write_text(CSV, "utf-8")
    (folder / "a.tsv").write_text("body\tstars\n" + "".join(f"{text}\t{label}\n" for text, label in rows), "utf-8")
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (folder / "a.jsonl").write_text(lines, "utf-8")
    (folder / "a.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    return ["a.csv", "a.tsv", "a.jsonl", "a.jsonl.gz"]


def test_the_formats_in_the_help_are_those_of_the_settings(capsys):
    assert set(FORMATS) == set(TASKS)
    for name, formats in FORMATS.items():
        data = get_type_hints(find_task(name).recipe)["data"]
        assert set(get_args(get_type_hints(data)["format"])) - {"auto"} == set(formats)
    with pytest.raises(SystemExit):
        main(["task", "train", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert all(f"formats of {name} (" in shown for name in TASKS)
    assert "csv, tsv, JSON Lines or Parquet with any texts and labels" in shown


@pytest.mark.parametrize(
    ("task", "name", "format"),
    [
        ("sentiment", "train.csv", "table"), ("sentiment", "train.jsonl.gz", "table"), ("sentiment", "a.txt", "sst"),
        ("ner", "a.conllu", "conllu"), ("ner", "a.jsonl", "table"), ("ner", "a.conll", "columns"),
        ("nli", "a.csv", "csv"), ("nli", "a.jsonl", "jsonl"), ("nli", "dev", "jsonl"), ("qa", "a.json", "squad"),
    ],
)  # fmt: skip
def test_the_name_of_a_file_says_its_format(task, name, format):
    assert format_by_name(task, name) == format


def test_a_classifier_reads_any_labels_from_any_column_of_any_table(tmp_path):
    data = sentiment.SentimentDataSettings(format="table", language="en", column="body", label="stars")
    wanted = [
        Example((("A", "lovely", "film", ",", "really", "."),), ("good",)),
        Example((("Dull", "."),), ("bad",)),
        Example(((".",),), ("bad",)),
    ]
    for name in files(tmp_path):
        assert sentiment.read(tmp_path / name, data, True) == wanted


def test_labels_may_be_numbers_and_texts_lists_of_words(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": ["A", "film"], "label": 4}\n{"text": "Bad .", "label": true}\n')
    data = sentiment.SentimentDataSettings(format="table", language="en")
    examples = sentiment.read(tmp_path / "a.jsonl", data, True)
    assert [(example.words, example.labels) for example in examples] == [
        (("A", "film"), ("4",)), (("Bad", "."), ("True",)),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"text": "a"}', r"no column 'label' \(columns: text\). Choose with --column .* --label"),
        ('{"text": "a", "label": null}', "row 1, column 'label': no label, found None"),
        ('{"text": "a", "label": " "}', "row 1, column 'label': no label"),
        ('{"text": "a", "label": [1]}', "no label, found .1."),
        ('{"text": "a", "label": NaN}', "the label is nan"),
    ],
)
def test_a_row_without_a_label_names_the_row(tmp_path, line, message):
    (tmp_path / "a.jsonl").write_text(f"{line}\n")
    with pytest.raises((FormatError, InputError), match=message):
        sentiment.read(tmp_path / "a.jsonl", sentiment.SentimentDataSettings(format="table", language="en"), True)


def test_the_command_trains_a_classifier_on_a_csv_file_and_keeps_its_columns(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    files(tmp_path)
    columns = ["--column", "body", "--label", "stars"]
    assert main(["task", "train", "sentiment", "--data", "a.csv", "a.jsonl", *columns, *FAST, "-o", "run"]) == 0
    facts = json.loads((tmp_path / "run" / "run.json").read_text())
    assert facts["recipe"]["data"]["format"] == "table"
    assert "--column body --label stars" in facts["command"]
    model = load(tmp_path / "run")
    assert model.vocabularies["labels"] == ("bad", "good")
    [[answer]] = model.predict(["A film."])
    assert set(answer.probabilities) == {"bad", "good"}
    assert main(["task", "evaluate", "run", "a.tsv", "-q"]) == 0
    capsys.readouterr()
    assert main(["task", "train", "sentiment", "--data", "a.csv", "a.csv", *FAST, "-o", "other"]) == 1
    assert "no column 'text' (columns: id, body, stars)" in capsys.readouterr().err


def test_a_table_in_another_encoding_is_read_with_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_bytes("text,label\n좋은 영화,긍정\n나쁜 영화,부정\n".encode("cp949"))
    options = ["--encoding", "cp949", "--set", "data.language=ko", *FAST, "-o", "run"]
    assert main(["task", "train", "sentiment", "--data", "a.csv", "a.csv", *options]) == 0
    assert load(tmp_path / "run").vocabularies["labels"] == ("긍정", "부정")


def test_a_column_that_a_format_does_not_have_is_refused():
    with pytest.raises(ConfigError, match="data.label: 'x' is set, but only files in the format table have it"):
        sentiment.SentimentDataSettings(format="sst", label="x")
    with pytest.raises(ConfigError, match="data.tags: 'x' is set, but only files in the format table or conllu"):
        ner.NerDataSettings(format="columns", tags="x")


def test_words_with_labels_from_json_lines(tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps({"tokens": ["Ann", "Lee", "ran"], "tags": ["B-PER", "I-PER", "O"]}))
    data = ner.NerDataSettings(format="table", language="en")
    assert ner.read(tmp_path / "a.jsonl", data, True) == [Example((("Ann", "Lee", "ran"),), ("B-PER", "I-PER", "O"))]
    (tmp_path / "a.jsonl").write_text(json.dumps({"words": ["a", "dog"], "pos": ["DET", "NOUN"]}))
    data = ner.NerDataSettings(format="table", language="en", column="words", tags="pos", scheme="plain")
    assert ner.read(tmp_path / "a.jsonl", data, True)[0].labels == ("B-DET", "B-NOUN")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"tokens": ["a", "b"], "tags": ["O"]}, "row 1: 1 labels for 2 words"),
        ({"tokens": "a b", "tags": ["O"]}, "column 'tokens': expected a list of words, got 'a b'"),
        ({"tokens": ["a"], "tags": [0]}, "column 'tags': expected a list of labels such as B-PER"),
        ({"tokens": ["a"], "tags": ["NOUN"]}, "row 1: label 'NOUN' is not valid in bio.*data.scheme=plain"),
    ],
)
def test_words_without_fitting_labels_name_the_row(tmp_path, row, message):
    (tmp_path / "a.jsonl").write_text(json.dumps(row))
    with pytest.raises(FormatError, match=message):
        ner.read(tmp_path / "a.jsonl", ner.NerDataSettings(format="table", language="en"), True)


def test_words_with_labels_from_conllu(tmp_path):
    (tmp_path / "a.conllu").write_text(CONLLU)
    [example] = ner.read(tmp_path / "a.conllu", ner.NerDataSettings(format="conllu", language="en"), True)
    assert example == Example((("Ann", "'s", "here"),), ("B-PER", "O", "O"))
    data = ner.NerDataSettings(format="conllu", language="en", tags="upos")
    assert ner.read(tmp_path / "a.conllu", data, True)[0].labels == ("B-PROPN", "B-AUX", "B-ADV")
    with pytest.raises(FormatError, match=r"no word has a label Entity=... in the last column .MISC.*upos or xpos"):
        ner.read(tmp_path / "a.conllu", ner.NerDataSettings(format="conllu", language="en", tags="Entity"), True)


def test_the_command_trains_on_conllu_with_labels_by_name_or_number(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.conllu").write_text(CONLLU * 2)
    fast = [word.replace("hidden=4", "hidden=[4,4]") for word in FAST]
    assert main(["task", "train", "ner", "--data", "a.conllu", "a.conllu", "--label", "xpos", *fast, "-o", "x"]) == 0
    assert "B-NNP" in load("x").vocabularies["labels"]
    (tmp_path / "a.conll").write_text("Ann B-PER x\nran O x\n\n" * 2)
    assert main(["task", "train", "ner", "--data", "a.conll", "a.conll", "--label", "1", *fast, "-o", "y"]) == 0
    assert load("y").recipe.data.label == 1
