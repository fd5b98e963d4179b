"""Occurrences for other programs: the Parquet file, the groups of vectors, and the map of a word."""

from __future__ import annotations

import shlex
from pathlib import Path

import duckdb
import numpy as np
import pytest
from support import file_size_limit, make_embedder

from pyelmo import neighbours
from pyelmo.cli import main
from pyelmo.cli.use.neighbours import EXPORT_EXAMPLE
from pyelmo.errors import InputError, OutputError
from pyelmo.neighbours import Index, vector_index
from pyelmo.neighbours.build import IndexedSentence
from pyelmo.neighbours.build import write as write_index
from pyelmo.neighbours.plane import map_word
from pyelmo.probes.clusters import cluster
from pyelmo.text.tokens import TokenSpan
from pyelmo.vectors.static import unit_vectors

pytest.importorskip("faiss")

LINES = ["The bank of a river.", "", "A bank account", "강가의 둑 위로 bank", "No such word here"]


@pytest.fixture
def index(tmp_path) -> Index:
    make_embedder().save(tmp_path / "model")
    (tmp_path / "text.txt").write_text("\n".join(LINES), "utf-8")
    return neighbours.build([tmp_path / "text.txt"], tmp_path / "index", model=tmp_path / "model", language="en")


def two_groups(count: int = 40, dim: int = 24) -> np.ndarray:
    """Vectors that share a large part, with two groups of `count` around two directions, one after the other."""
    random = np.random.default_rng(0)
    middles = np.repeat(np.eye(dim, dtype=np.float32)[:2], count, axis=0)
    return unit_vectors(3 + middles * 4 + random.normal(size=(2 * count, dim), scale=0.3).astype(np.float32))


def test_duckdb_reads_the_occurrences_of_an_export(tmp_path, index, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main([*shlex.split(EXPORT_EXAMPLE)[1:], "-q"]) == 0
    rows = duckdb.sql(
        "select word, sentence, position, source, line, vector, x, y from 'occurrences.parquet'"
    ).fetchall()
    assert len(rows) == len(index)
    for row, (word, sentence, position, source, line, vector, x, y) in enumerate(rows):
        assert sentence[position : position + len(word)] == word
        assert (Path(source).name, LINES[line - 1]) == ("text.txt", sentence)
        np.testing.assert_array_equal(np.float32(vector), index.vectors(np.array([row]))[0])
        assert np.isfinite([x, y]).all()
    nearest = "select word, line from 'occurrences.parquet' order by array_cosine_similarity(vector::float[16], ?::float[16]) desc limit 1"
    assert duckdb.execute(nearest, [rows[1][5]]).fetchall() == [("bank", 1)]


def test_the_coordinates_are_the_principal_components(tmp_path):
    vectors = two_groups()
    spans = [TokenSpan("a", 0, 1)]
    sentences = ((IndexedSentence("a", spans, [0], 0, line), row[None]) for line, row in enumerate(vectors, 1))
    index = write_index(sentences, tmp_path / "index", dim=24, facts={"words": "all", "inputs": ["x"]})
    neighbours.export(index, tmp_path / "out.parquet")
    points = np.array(duckdb.sql(f"select x, y from '{tmp_path / 'out.parquet'}'").fetchall())
    centred = vectors - vectors.mean(0)
    sizes = np.linalg.svd(centred, compute_uv=False)
    np.testing.assert_allclose(np.linalg.norm(points, axis=0), sizes[:2], rtol=1e-4)
    assert abs(np.sign(points[:40, 0]).sum()) == 40 == abs(np.sign(points[40:, 0]).sum())


def test_vectors_of_rows_are_the_same_in_lists_and_in_an_exact_index(tmp_path, monkeypatch):
    monkeypatch.setattr(vector_index, "EXACT_AT_MOST", 1000)
    monkeypatch.setattr(vector_index, "BLOCK", 999)
    monkeypatch.setattr(vector_index, "PART", 1500)
    vectors = unit_vectors(np.random.default_rng(0).standard_normal((5000, 16), dtype=np.float32))
    spans = [TokenSpan("a", 0, 1)]
    sentences = [(IndexedSentence("a", spans, [0], 0, line), row[None]) for line, row in enumerate(vectors, 1)]
    facts = {"words": "all", "inputs": ["x"]}
    lists = write_index(sentences, tmp_path / "lists", dim=16, facts=facts)
    exact = write_index(sentences, tmp_path / "exact", dim=16, facts=facts, exact=True)
    rows = np.array([4999, 3, 1500, 1498, 3, 2997])
    assert (lists.manifest["kind"], exact.manifest["kind"]) == ("ivf", "exact")
    np.testing.assert_array_equal(exact.vectors(rows), unit_vectors(vectors)[rows])
    np.testing.assert_array_equal(lists.vectors(rows), unit_vectors(vectors)[rows].astype(np.float16))


def test_an_export_replaces_nothing_unless_forced_and_is_whole_or_absent(tmp_path, index):
    path = tmp_path / "out.parquet"
    with file_size_limit(300), pytest.raises(OutputError):
        neighbours.export(index, path)
    assert not path.exists()
    path.write_text("mine")
    with pytest.raises(OutputError, match="exists"):
        neighbours.export(index, path)
    assert path.read_text() == "mine"
    neighbours.export(index, path, force=True)
    assert path.read_bytes()[:4] == b"PAR1"
    with pytest.raises(InputError, match=r"ends in \.parquet"):
        neighbours.export(index, tmp_path / "out.csv")


def test_two_groups_of_vectors_are_found_and_one_group_is_not_divided():
    vectors = two_groups()
    assert cluster(vectors).tolist() == [0] * 40 + [1] * 40
    assert cluster(np.repeat(vectors[:1], 9, axis=0)).tolist() == [0] * 9
    assert cluster(vectors[:2]).tolist() == [0, 0]
    noise = np.random.default_rng(1).standard_normal((60, 400), dtype=np.float32)
    assert set(cluster(noise).tolist()) == {0}


def test_the_map_of_a_word_has_its_groups_and_what_is_typical_of_them(tmp_path):
    texts = ["deep river bank here"] * 40 + ["my savings bank account"] * 40
    spans = [TokenSpan("bank", text.index("bank"), text.index("bank") + 4) for text in texts]
    sentences = (
        (IndexedSentence(text, [span], [0], 0, line), row[None])
        for line, (text, span, row) in enumerate(zip(texts, spans, two_groups(), strict=True), 1)
    )
    index = write_index(
        sentences, tmp_path / "index", dim=24, facts={"words": "all", "inputs": ["x"], "language": "en"}
    )
    found = map_word(index, "Bank")
    assert found.groups == [0] * 40 + [1] * 40
    assert found.typical == [["deep", "here", "river"], ["account", "my", "savings"]]
    assert (found.total, found.points.shape, found.occurrences[0].sentence) == (80, (80, 2), texts[0])
    with pytest.raises(InputError, match="no occurrence of 'tree'"):
        map_word(index, "tree")
