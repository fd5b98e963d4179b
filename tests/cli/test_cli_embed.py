"""elmo embed: every format, stdin and stdout, folders, and what replaces what."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

import pyelmo
from pyelmo.cli import build_parser, main
from pyelmo.cli.options import choose_model
from pyelmo.embed.files.store import read_embeddings


def test_embed_writes_what_allennlp_wrote(here):
    assert main(["embed", "sentences.txt", "-o", "out.hdf5", "--model", "MODEL", "-q"]) == 0
    with h5py.File("out.hdf5") as file:
        assert sorted(file) == ["0", "1", "sentence_to_index"]
        assert json.loads(file["sentence_to_index"][0]) == {"The bank of a river.": "0", "A bank account": "1"}
        want = pyelmo.load("MODEL").embed(["The bank of a river."])[0]
        assert file["0"].dtype == np.float32
        np.testing.assert_array_equal(file["0"][...], want)


@pytest.mark.parametrize("name", ["out.hdf5", "out.npz", "out.parquet", "out.jsonl"])
@pytest.mark.parametrize(
    ("layers", "pooling", "shape"), [("all", None, (3, 3, 32)), ("0.2,0.3,0.5", None, (3, 32)), ("1", "mean", (32,))]
)
def test_embed_in_every_format(here, name, layers, pooling, shape):
    arguments = ["embed", "sentences.txt", "-o", name, "--model", "MODEL", "--layers", layers, "--tokenised", "-q"]
    assert main(arguments + (["--pooling", pooling] if pooling else [])) == 0
    assert [row.vectors.shape for row in read_embeddings(name)][1] == shape


def test_embed_reads_stdin_and_writes_stdout(here, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("강 둑\n".encode())))
    assert main(["embed", "-", "-o", "-", "--model", "MODEL", "--layers", "top"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["tokens"] == ["강", "둑"]
    assert "1 sentences" in captured.err


def test_blank_lines_keep_their_numbers(here, capsys):
    Path("text").write_bytes(b"one\n\n   \r\ntwo\x00words\n")
    assert main(["embed", "text", "-o", "out.hdf5", "--model", "MODEL", "--tokenised"]) == 0
    with h5py.File("out.hdf5") as file:
        assert [file[str(i)].shape for i in range(4)] == [(3, 1, 32), (3, 0, 32), (3, 0, 32), (3, 1, 32)]
    assert "2 blank lines" in capsys.readouterr().err


def test_a_folder_of_parts_from_several_files(here, capsys):
    Path("more.txt").write_text("one\n\ntwo\n")
    arguments = ["embed", "sentences.txt", "more.txt", "-o", "out/", "--model", "MODEL", "--part-sentences", "2"]
    assert main([*arguments, "--float16", "--layers", "top"]) == 0
    assert "out/: 5 sentences in 3 files\n" in capsys.readouterr().err
    rows = list(read_embeddings("out"))
    assert [row.sentence for row in rows] == ["The bank of a river.", "A bank account", "one", "", "two"]
    assert rows[4].vectors.dtype == np.float16
    os.remove("out/part-00001.parquet")
    assert main([*arguments, "--float16", "--layers", "top"]) == 0
    assert "out/: 5 sentences in 3 files, 2 of them from an earlier run\n" in capsys.readouterr().err
    assert main([*arguments, "--layers", "top"]) == 1
    assert "(float16: True then, False now)" in capsys.readouterr().err


def test_one_file_from_parquet_and_text(here):
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"text": ["A bank", None]}), "in.parquet")
    arguments = ["embed", "in.parquet", "sentences.txt", "-o", "out.npz", "--model", "MODEL", "-q"]
    assert main(arguments) == 0
    assert [row.sentence for row in read_embeddings("out.npz")] == [
        "A bank",
        "",
        "The bank of a river.",
        "A bank account",
    ]


def test_boundaries_may_be_kept(here, capsys):
    assert main(["embed", "sentences.txt", "-o", "-", "--model", "MODEL", "--keep-boundaries", "-q"]) == 0
    first = json.loads(capsys.readouterr().out.splitlines()[1])
    assert first["tokens"] == ["<S>", "A", "bank", "account", "</S>"]
    assert first["shape"] == [3, 5, 32]


def test_force_replaces(here):
    assert main(["embed", "sentences.txt", "-o", "sentences.npz", "--model", "MODEL", "-q"]) == 0
    assert main(["embed", "sentences.txt", "-o", "sentences.npz", "--model", "MODEL", "-q", "--force"]) == 0


@pytest.mark.parametrize(
    ("given", "model", "language"),
    [
        ([], "en", None),
        (["--language", "ko"], "ko", None),  # the rules of the model, which reads morphemes
        (["--language", "ko-morph"], "ko", "ko-morph"),
        (["--language", "en"], "en", "en"),
        (["--language", "ko", "--model", "mine"], "mine", "ko"),
    ],
)
@pytest.mark.parametrize("command", [["embed"], ["neighbours", "build"], ["explore"]])
def test_without_a_model_the_bundled_one_of_the_language_is_used(command, given, model, language):
    args = build_parser().parse_args([*command, "text.txt", "-o", "out", *given])
    assert choose_model(args) == (model, language)
