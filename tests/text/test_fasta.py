"""FASTA files: residues as tokens, ids as keys, one vector per protein."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import h5py
import numpy as np
import pytest
from support import worst

import pyelmo
from pyelmo.cli import main
from pyelmo.errors import FormatError, InputError, NotFoundError

FASTA = """; a comment
>sp|P69905|HBA_HUMAN Hemoglobin subunit alpha
MVLSPADKTN
vkaawgkvga

>Q1/5-8 aligned
M-K..V*
>empty
"""
PROTEINS = [("sp|P69905|HBA_HUMAN", "MVLSPADKTNVKAAWGKVGA"), ("Q1/5-8", "MKV"), ("empty", "")]


@pytest.fixture
def here(tmp_path, monkeypatch, tiny):
    monkeypatch.chdir(tmp_path)
    Path("proteins.fasta").write_text(FASTA)
    tiny.save("model")
    return tmp_path


def test_residues_are_upper_case_without_gaps(here):
    assert [(name, "".join(residues)) for name, residues in pyelmo.read_fasta("proteins.fasta")] == PROTEINS
    Path("proteins.fa.gz").write_bytes(gzip.compress(FASTA.replace("\n", "\r\n").encode()))
    assert [name for name, _ in pyelmo.read_fasta("proteins.fa.gz")] == [name for name, _ in PROTEINS]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("MKV\n", "line 1: is not FASTA"),
        (">\nMKV\n", "line 1: a protein without an id"),
        (">a\nMK\nM1V\n", "line 3: '1' is no residue"),
        (">a\nM*V\n", "line 2: .* is no residue"),
    ],
)
def test_what_is_no_protein_names_its_line(here, text, message):
    Path("bad.faa").write_text(text)
    with pytest.raises(FormatError, match=message):
        list(pyelmo.read_fasta("bad.faa"))
    assert main(["embed", "bad.faa", "-o", "out.hdf5", "--model", "model", "-q"]) == 1
    assert not Path("out.hdf5").exists()


def test_a_missing_file_says_so(here):
    with pytest.raises(NotFoundError):
        list(pyelmo.read_fasta("missing.fasta"))


def test_hdf5_has_the_ids_as_keys(here, tiny):
    assert main(["embed", "proteins.fasta", "-o", "out.hdf5", "--model", "model", "-q"]) == 0
    wanted = tiny.embed([list(residues) for _, residues in PROTEINS])
    with h5py.File("out.hdf5") as file:
        assert set(file) == {"sp|P69905|HBA_HUMAN", "Q1_5-8", "empty", "sentence_to_index", "id_to_index"}
        assert np.array_equal(file["Q1_5-8"][()], wanted[1])
        assert json.loads(file["id_to_index"][0]) == {"sp|P69905|HBA_HUMAN": 0, "Q1_5-8": 1, "empty": 2}
    read = list(pyelmo.read_embeddings("out.hdf5"))
    assert [(row.index, row.extra["id"], row.sentence) for row in read][1] == (1, "Q1_5-8", "M K V")
    assert all(np.array_equal(row.vectors, array) for row, array in zip(read, wanted, strict=True))


def test_seqvecs_vector_of_a_protein_is_the_mean_over_residues_of_the_sum_of_layers(here, tiny):
    command = ["embed", "proteins.fasta", "-o", "out.hdf5", "--model", "model", "-q", "--layers", "1,1,1"]
    assert main([*command, "--pooling", "mean"]) == 0
    layers = tiny.embed([list(PROTEINS[0][1])])[0]  # (L, T, D)
    with h5py.File("out.hdf5") as file:
        assert worst(file["sp|P69905|HBA_HUMAN"][()], layers.sum(0).mean(0)) < 1e-6
        assert np.isnan(file["empty"][()]).all()


@pytest.mark.parametrize("output", ["out.parquet", "out.npz", "out.jsonl", "folder/"])
def test_other_formats_have_a_column_of_ids(here, output):
    assert main(["embed", "proteins.fasta", "-o", output, "--model", "model", "-q", "--layers", "top"]) == 0
    assert [row.extra["id"] for row in pyelmo.read_embeddings(output)] == [name for name, _ in PROTEINS]


def test_folders_of_hdf5_number_their_proteins(here):
    pyelmo.embed_corpus(["proteins.fasta"], "folder", model="model", format="hdf5", part_sentences=2)
    read = list(pyelmo.read_embeddings("folder"))
    assert [(row.index, row.extra["id"]) for row in read] == [(0, "sp|P69905|HBA_HUMAN"), (1, "Q1_5-8"), (2, "empty")]


def test_an_id_that_occurs_twice_is_an_error_in_hdf5(here, capsys):
    Path("twice.fasta").write_text(">a\nMK\n>a\nMV\n")
    assert main(["embed", "twice.fasta", "-o", "out.hdf5", "--model", "model", "-q"]) == 1
    assert "the id 'a' occurs twice" in capsys.readouterr().err
    assert main(["embed", "twice.fasta", "-o", "out.npz", "--model", "model", "-q"]) == 0


def test_ids_of_a_table_name_the_arrays_too(here):
    Path("reviews.csv").write_text("id,text\n7,A film .\n9,Dull .\n")
    command = ["embed", "reviews.csv", "--column", "text", "-o", "out.hdf5", "--model", "model", "-q"]
    assert main([*command, "--keep", "id"]) == 0
    assert [row.extra["id"] for row in pyelmo.read_embeddings("out.hdf5")] == ["7", "9"]
    with pytest.raises(InputError, match="no place for the columns text"):
        pyelmo.embed_corpus(["reviews.csv"], "x", model="model", format="hdf5", column="text", keep=["id", "text"])


def test_a_corpus_of_proteins_can_be_prepared(here):
    assert main(["prepare", "proteins.fasta", "-o", "corpus", "--tokenised", "--valid-fraction", "0", "-q"]) == 0
    assert "M" in Path("corpus/types.txt").read_text().split()


def test_standard_input_may_be_fasta(here, monkeypatch, capsysbinary):
    import io
    import sys

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(FASTA.encode())))
    assert main(["embed", "-", "-o", "out.hdf5", "--input-format", "fasta", "--model", "model", "-q"]) == 0
    assert next(iter(pyelmo.read_embeddings("out.hdf5"))).extra == {"id": "sp|P69905|HBA_HUMAN"}
