"""Tables, documents, blank lines and empty files in the commands that read text."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from pyelmo import embed_corpus, read_embeddings
from pyelmo.cli import main

REVIEWS = 'text,label,id\n"A bank, a river",good,7\nThe bank,bad,8\n,none,9\n'
READING = {  # how each command that takes text is called
    "embed": ["embed", "FILE", "-o", "out.npz", "--model", "MODEL", "-q"],
    "score": ["score", "en", "FILE"],
    "evaluate": ["evaluate", "en", "FILE", "--json"],
    "prepare": ["prepare", "FILE", "-o", "corpus", "--valid-fraction", "0", "-q"],
    "neighbours": ["neighbours", "build", "FILE", "-o", "index", "--model", "MODEL", "-q"],
    "bench": ["bench", "MODEL", "--text", "FILE", "--seconds", "0.01", "--threads", "1"],
}


def run(case: str, file: str, *options: str) -> int:
    return main([*(file if word == "FILE" else word for word in READING[case]), *options])


@pytest.mark.parametrize("case", [case for case in READING if case != "bench"])
def test_every_command_reads_a_table_by_column_and_refuses_it_without_one(here, case, capsys):
    Path("reviews.csv.gz").write_bytes(gzip.compress(REVIEWS.encode("cp949")))
    assert run(case, "reviews.csv.gz") == 1
    assert "Columns: text, label, id. Choose one with --column" in capsys.readouterr().err
    assert run(case, "reviews.csv.gz", "--column", "text", "--encoding", "cp949") == 0, capsys.readouterr().err


@pytest.mark.parametrize("case", READING)
def test_every_command_names_the_encoding_and_drops_the_byte_order_mark(here, case, capsys):
    Path("korean.txt").write_bytes("강의 둑\n".encode("cp949"))
    assert run(case, "korean.txt") == 1
    assert "Pass --encoding cp949" in capsys.readouterr().err
    if case == "embed":
        Path("mark.txt").write_bytes("bank\n".encode("utf-8-sig"))
        assert run(case, "mark.txt") == 0
        assert next(iter(read_embeddings("out.npz"))).tokens == ["bank"]


@pytest.mark.parametrize("case", ["embed", "score", "evaluate", "prepare", "neighbours"])
def test_an_empty_file_is_an_error_with_a_message(here, case, capsys):
    Path("empty.txt").write_bytes(b"")
    assert run(case, "empty.txt") == 1
    assert "elmo: " in capsys.readouterr().err.splitlines()[-1]
    assert not Path("out.npz").exists()


@pytest.mark.parametrize("folder", [False, True])
@pytest.mark.parametrize("format", ["parquet", "npz", "jsonl"])
def test_kept_columns_are_in_the_output(here, format, folder):
    Path("reviews.csv").write_text(REVIEWS)
    output = "out/" if folder else f"out.{format}"
    options = [
        "--column",
        "text",
        "--keep",
        "label,id",
        "--layers",
        "top",
        "--format",
        format,
        "--model",
        "MODEL",
        "-q",
    ]
    assert main(["embed", "reviews.csv", "-o", output, *options, "--part-sentences", "2"]) == 0
    rows = list(read_embeddings(output))
    assert [row.sentence for row in rows] == ["A bank, a river", "The bank", ""]
    assert [row.extra for row in rows] == [
        {"label": "good", "id": "7"},
        {"label": "bad", "id": "8"},
        {"label": "none", "id": "9"},
    ]
    assert [row.vectors.shape for row in rows] == [(5, 32), (2, 32), (0, 32)]


def test_columns_of_parquet_keep_their_types(here):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"text": ["one", "two"], "label": pyarrow.array([1, None], "int8"), "tags": [["a"], []]})
    parquet.write_table(table, "in.parquet")
    assert main(["embed", "in.parquet", "-o", "out.parquet", "--keep", "label,tags", "--model", "MODEL", "-q"]) == 0
    result = parquet.read_table("out.parquet", columns=["label", "tags"])
    assert str(result.schema.field("label").type) == "int8"
    assert result.to_pylist() == [{"label": 1, "tags": '["a"]'}, {"label": None, "tags": "[]"}]
    assert [row.extra["label"] for row in read_embeddings("out.parquet")] == [1, None]


def test_numbers_of_json_lines_keep_their_types(here):
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [
        {"text": "a", "n": 1, "x": 1, "b": True, "s": "1", "mixed": 1},
        {"text": "b", "n": None, "x": 2.5, "b": False, "s": "", "mixed": "m"},
    ]
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    keep = ["--column", "text", "--keep", "n,x,b,s,mixed", "--model", "MODEL", "-q"]
    assert main(["embed", "in.jsonl", "-o", "out.parquet", *keep]) == 0
    table = parquet.read_table("out.parquet", columns=["n", "x", "b", "s", "mixed"])
    assert [str(kind) for kind in table.schema.types] == ["int64", "double", "bool", "string", "string"]
    assert table.to_pylist()[0] == {"n": 1, "x": 1.0, "b": True, "s": "1", "mixed": "1"}


def test_a_kept_column_must_have_a_place(here, capsys):
    Path("reviews.csv").write_text(REVIEWS.replace("label", "tokens"))
    arguments = ["embed", "reviews.csv", "--column", "text", "--model", "MODEL", "-q"]
    assert main([*arguments, "-o", "out.hdf5", "--keep", "text"]) == 1
    assert "hdf5 has no place for the columns text" in capsys.readouterr().err
    assert main([*arguments, "-o", "out.npz", "--keep", "tokens"]) == 1
    assert "'tokens' cannot be kept: the output has one of that name" in capsys.readouterr().err
    assert main([*arguments, "-o", "out.npz", "--keep", "nothing"]) == 1
    assert "no column 'nothing' (columns: text, tokens, id)" in capsys.readouterr().err


# --- pooling -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layers", ["top", "all"])
def test_pooled_output_is_one_matrix_and_a_blank_line_is_nan(here, layers, capsys):
    pytest.importorskip("pyarrow")
    Path("text").write_text("A bank\n\nThe river bank\n")
    for name in ("out.npz", "out.parquet", "out.hdf5", "out.jsonl"):
        arguments = ["embed", "text", "-o", name, "--model", "MODEL", "--layers", layers, "--pooling", "mean"]
        assert main(arguments) == 0
        missing = "null" if name == "out.jsonl" else "NaN"
        assert f"1 blank lines have {missing} instead of a vector" in capsys.readouterr().err
        rows = list(read_embeddings(name))
        assert [bool(np.isnan(row.vectors).all()) for row in rows] == [False, True, False]
        assert not np.isnan(rows[2].vectors).any()
    columns = ["vectors"] if layers == "top" else ["layer_0", "layer_1", "layer_2"]
    with np.load("out.npz") as file:
        assert sorted(file) == sorted([*columns, "index", "sentences"])
        assert {file[name].shape for name in columns} == {(3, 32)}
        matrix, index = file[columns[-1]], file["index"]
    assert index.tolist() == [0, 1, 2]
    from pyarrow import parquet

    table = parquet.read_table("out.parquet")
    stored = table[columns[-1]].combine_chunks()
    assert stored.type.list_size == 32
    np.testing.assert_array_equal(stored.flatten().to_numpy().reshape(3, 32), matrix)
    assert json.loads(Path("out.jsonl").read_text().splitlines()[1])["vectors"] is None


def test_parts_of_pooled_output_keep_their_numbers(here, monkeypatch):
    Path("text").write_text("a\nb\nc\n")
    embed_corpus(["text"], "out", model="MODEL", format="npz", pooling="max", layers="top", part_sentences=2)
    assert [(row.index, row.sentence) for row in read_embeddings("out")] == [(0, "a"), (1, "b"), (2, "c")]


# --- documents -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", [False, True])
def test_documents_are_split_into_sentences(here, folder, capsys):
    texts = ["Mr. Smith met us. It rained.", "", "One\nTwo. Three."]
    Path("in.jsonl").write_text("".join(json.dumps({"text": text, "id": f"d{text[:1]}"}) + "\n" for text in texts))
    output = "out/" if folder else "out.npz"
    options = ["--column", "text", "--keep", "id", "--documents", "--model", "MODEL", "--language", "en", "-q"]
    assert main(["embed", "in.jsonl", "-o", output, *options, "--format", "npz", "--part-sentences", "2"]) == 0
    rows = list(read_embeddings(output))
    assert [(row.sentence, row.extra["document"], row.extra["id"]) for row in rows] == [
        ("Mr. Smith met us.", 0, "dM"),
        ("It rained.", 0, "dM"),
        ("One", 2, "dO"),
        ("Two.", 2, "dO"),
        ("Three.", 2, "dO"),
    ]
    assert main(["embed", "in.jsonl", "-o", "out.hdf5", *options]) == 1
    assert "hdf5 has no place for the columns document" in capsys.readouterr().err
