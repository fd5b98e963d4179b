"""ELMo in sentence-transformers: the vectors of `Embedder.encode`, saving and loading, and scores of mteb."""

from __future__ import annotations

import doctest
import importlib
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from support import make_embedder, worst

import pyelmo
from pyelmo.embed.sentence import make_form
from pyelmo.errors import InputError, NotFoundError

pytest.importorskip("sentence_transformers")

from sentence_transformers import SentenceTransformer

from pyelmo.integrations.sentence_transformers import ElmoSentences

SENTENCES = ["A bank account.", "The river", "of the bank, in 1999 they", ""]
MODULES = Path(__file__).parents[2] / "benchmarks" / "models"


@pytest.fixture(scope="module")
def model() -> pyelmo.Embedder:
    """A tiny model with a sentence form."""
    embedder = make_embedder()
    counts = {"the": 30, "of": 20, ",": 20, "bank": 3, "river": 2, "account": 1}
    embedder.pretrained.sentence = make_form(embedder.word_table(), Counter(counts), smoothing=0.01, directions=2)
    return embedder


@pytest.mark.parametrize("options", [{}, {"pooling": "max"}, {"layers": "top"}, {"layers": [0.2, 0.3, 0.5]}])
def test_vectors_are_those_of_encode_in_any_batch(options, model):
    sentences = SentenceTransformer(modules=[ElmoSentences(model, **options)])
    expected = model.encode(SENTENCES, **options)
    for batch_size in (1, 4):
        np.testing.assert_array_equal(sentences.encode(SENTENCES, batch_size=batch_size), expected)
    assert sentences.get_embedding_dimension() == 16


def test_a_prompt_is_put_before_the_text(model):
    sentences = SentenceTransformer(modules=[ElmoSentences(model)])
    np.testing.assert_array_equal(sentences.encode("bank", prompt="The river "), model.encode("The river bank"))


def test_a_saved_model_is_read_by_the_library_by_pyelmo_and_without_remote_code(model, tmp_path):
    saved, folder = SentenceTransformer(modules=[ElmoSentences(model, pooling="mean")]), tmp_path / "out"
    saved.save(str(folder))
    saved.save(str(folder))  # a second time replaces the first
    expected = model.encode(SENTENCES[:3], pooling="mean")
    with pytest.raises(ValueError, match="trust_remote_code"):  # the library asks for every class but its own
        SentenceTransformer(str(folder))
    for loaded in (
        SentenceTransformer(str(folder), trust_remote_code=True),
        SentenceTransformer(modules=[ElmoSentences.load(str(folder), "0_ElmoSentences")]),
    ):
        np.testing.assert_array_equal(loaded.encode(SENTENCES[:3]), expected)
    read = pyelmo.load(folder / "0_ElmoSentences" / "model")
    np.testing.assert_array_equal(read.encode(SENTENCES[:3], pooling="mean"), expected)


def test_the_transformer_and_pooling_modules_of_the_library_read_elmo(tmp_path):
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    importlib.import_module("pyelmo.integrations.transformers")
    model = make_embedder()
    model.save(tmp_path / "model")
    tokens = Transformer(str(tmp_path / "model"))
    sentences = SentenceTransformer(modules=[tokens, Pooling(tokens.get_embedding_dimension(), pooling_mode="mean")])
    expected = np.stack(model.embed(SENTENCES[:3], layers="top", pooling="mean"))
    assert worst(sentences.encode(SENTENCES[:3]), expected) < 1e-6
    sentences.save(str(tmp_path / "out"))
    assert worst(SentenceTransformer(str(tmp_path / "out")).encode(SENTENCES[:3]), expected) < 1e-6


def test_a_missing_folder_is_one_clear_error(tmp_path):
    with pytest.raises(NotFoundError, match="nothing: no such folder"):
        ElmoSentences.load(str(tmp_path), "nothing")


def test_a_wrong_pooling_is_an_error_at_once():
    with pytest.raises(InputError, match="pooling 'sum'"):
        ElmoSentences(make_embedder(), pooling="sum")


def test_scores_of_mteb_are_those_of_the_own_evaluation(model, monkeypatch):
    pytest.importorskip("mteb")
    monkeypatch.syspath_prepend(str(MODULES))
    script = importlib.import_module("mteb_sts")
    words = ["bank", "river", "account", "the", "money", "water", "lends", "flows"]
    random = np.random.default_rng(0)
    sentences = [" ".join(random.choice(words, 4)) for _ in range(40)]
    scores = [float(number) for number in random.integers(0, 6, 20)]
    by_mteb = script.mteb_score(model, script.local_task("STS-B", (scores, sentences)))
    own = script.correlation(model.encode(sentences), scores, digits=None)
    assert by_mteb == pytest.approx(own, abs=1e-3)
    assert abs(own) < 99  # neither is a constant


def test_the_examples_of_docstrings_run():
    result = doctest.testmod(importlib.import_module("pyelmo.integrations.sentence_transformers"))
    assert (result.attempted > 0, result.failed) == (True, 0)


def test_a_missing_library_is_one_line():
    code = (
        "import sys, pyelmo, pyelmo.embed.embedder\n"
        "print('sentence_transformers' in sys.modules)\n"
        "sys.modules['sentence_transformers'] = None\n"
        "try: import pyelmo.integrations.sentence_transformers\n"
        "except pyelmo.PyelmoError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines()[0] == "False"
    assert done.stdout.endswith("Install it with: pip install 'pyelmo[sentence-transformers]'\n"), done.stderr
