"""One vector per word between spaces: the mean of its tokens."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from support import make_embedder

import pyelmo
from pyelmo.cli import main
from pyelmo.errors import InputError


@pytest.fixture(scope="module")
def tiny() -> pyelmo.Embedder:
    model = make_embedder()
    model.language = "en"
    return model


def test_a_word_has_the_mean_of_its_tokens_in_every_layer(tiny):
    text = "I don't know, he said ."
    tokens = tiny.tokenise(text)
    assert tokens == ["I", "do", "n't", "know", ",", "he", "said", "."]
    (layers,), (pooled,) = tiny.embed([text]), tiny.embed([text], pooling="words")
    groups = [(0, 1), (1, 3), (3, 5), (5, 6), (6, 7), (7, 8)]
    wanted = np.stack([layers[:, first:end].mean(1) for first, end in groups], axis=1)
    assert pooled.shape == (3, 6, 16)
    assert np.allclose(pooled, wanted, atol=1e-6)
    assert np.array_equal(tiny.embed([text.split()], pooling="words")[0], pooled)


def test_layers_types_blank_and_invisible_text_follow_the_other_poolings(tiny):
    sentences = ["don't", "", " \u200b ", "a\u200b b", [], ["", "a"]]
    results = list(tiny.stream(sentences, layers="top", pooling="words", dtype="float16", output="torch"))
    assert [tuple(result.shape) for result in results] == [(1, 16), (0, 16), (0, 16), (2, 16), (0, 16), (2, 16)]
    assert all(result.dtype == torch.float16 for result in results)
    assert np.isnan(tiny.embed([["", ""]], pooling="words")[0]).all()
    with pytest.raises(InputError, match="boundary tokens"):
        tiny.embed(sentences, pooling="words", keep_boundaries=True)
    with pytest.raises(InputError, match="one vector"):
        tiny.encode(["a"], pooling="words")


def test_batch_mates_change_no_vector(tiny):
    sentences = ["don't know.", "a b c d e f", "it's"]
    for together, sentence in zip(tiny.embed(sentences, pooling="words"), sentences, strict=True):
        assert np.array_equal(together, tiny.embed([sentence], pooling="words")[0])


def test_the_eojeols_of_korean_text(tmp_path, capsys):
    pytest.importorskip("kiwipiepy")
    (tmp_path / "text").write_text("다리를 건너 갔다.\n", "utf-8")
    assert main(["embed", str(tmp_path / "text"), "-o", "-", "-m", "ko", "--layers", "top", "--pooling", "words"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert "갔다." in row["tokens"]
    model = pyelmo.load("ko")
    (layers,) = model.embed(["다리를 건너 갔다."], layers="top")
    (first, *_) = vectors = np.array(next(value for value in row.values() if np.ndim(value) == 2))
    assert len(vectors) == 3
    assert np.allclose(first, layers[:2].mean(0), atol=1e-6)


def test_a_folder_of_parts_holds_words(tmp_path):
    (tmp_path / "text").write_text("I don't .\n\nit's a\n", "utf-8")
    make_embedder().save(tmp_path / "LM")
    out = f"{tmp_path}/out/"
    arguments = [str(tmp_path / "text"), "-o", out, "-m", str(tmp_path / "LM"), "--language", "en", "--quiet"]
    assert main(["embed", *arguments, "--pooling", "words", "--layers", "top", "--format", "npz"]) == 0
    shapes = [np.shape(sentence.vectors) for sentence in pyelmo.read_embeddings(out)]
    assert shapes == [(3, 16), (0, 16), (2, 16)]
