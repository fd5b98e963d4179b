"""The sentence form of a model: one good vector per sentence, stored with the model."""

from __future__ import annotations

import base64
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from support import make_embedder, worst

import pyelmo
from pyelmo.cli import main
from pyelmo.embed.files.store import read_embeddings
from pyelmo.embed.sentence import make_form
from pyelmo.errors import FormatError, InputError
from pyelmo.formats.sentence import SentenceForm, common_directions, word_weights

COUNTS = Counter({"the": 600, "The": 100, ",": 200, "bank": 99, "river": 1})
SENTENCES = ["The bank, the river", "a longer sentence about the bank of the river", "", "Zyx"]


@pytest.fixture
def model() -> pyelmo.Embedder:
    plain = make_embedder()
    form = make_form(plain.word_table(), COUNTS, smoothing=0.01, directions=2)
    return pyelmo.Embedder(replace(plain.pretrained, sentence=form), language="en")


@pytest.fixture
def folder(model, tmp_path) -> Path:
    model.save(tmp_path / "model")
    return tmp_path / "model"


# --- the vector ----------------------------------------------------------------------------------------------------


def test_frequent_words_count_less_and_common_directions_are_damped(model):
    words = model.tokenise(SENTENCES[0])
    assert words == ["The", "bank", ",", "the", "river"]
    tokens = model.embed([words], layers=0)[0].astype(np.float64)  # (T, D): both directions have the token vector
    weights = 0.01 / (0.01 + np.array([0.7, 0.099, 0.2, 0.7, 0.001]))
    mean = (weights[:, None] * tokens).sum(0) / weights.sum()
    common = np.tile(model.pretrained.sentence.common.astype(np.float64), 2) / 2
    wanted = mean - 2 * sum((row @ mean) * row for row in common)
    assert worst(model.encode(SENTENCES[0]), wanted) < 1e-6


def test_batch_mates_order_and_history_change_no_vector(model):
    together = model.encode(SENTENCES)
    assert np.array_equal(model.encode(SENTENCES[::-1])[::-1], together)
    for sentence, vector in zip(SENTENCES, together, strict=True):
        assert np.array_equal(model.encode(sentence), vector)
        assert np.array_equal(model.embed([sentence], pooling="sentence")[0], vector)


def test_blank_sentences_are_zero_and_new_words_have_vectors(model):
    matrix = model.encode(SENTENCES, normalize_embeddings=True)
    assert not matrix[2].any()
    assert np.linalg.norm(matrix[[0, 1, 3]], axis=1) == pytest.approx([1, 1, 1], abs=1e-5)
    assert model.encode([]).shape == (0, 16)


def test_types_of_the_result(model):
    (half,) = model.embed([SENTENCES[0]], pooling="sentence", output="torch", dtype="float16")
    assert (half.dtype, tuple(half.shape)) == (torch.float16, (16,))
    assert torch.equal(model.encode(SENTENCES, convert_to_tensor=True), torch.from_numpy(model.encode(SENTENCES)))


def test_explicit_choices_give_the_means_of_layers(model):
    assert np.array_equal(
        model.encode(SENTENCES[:2], layers="top"), model.embed(SENTENCES[:2], layers="top", pooling="mean")
    )
    average = model.embed(SENTENCES[:2], layers="average", pooling="mean")
    assert np.array_equal(model.encode(SENTENCES[:2], pooling="mean"), average)


def test_the_similarity_of_sentences_is_that_of_their_vectors(model):
    first, second = model.encode(SENTENCES[:2], normalize_embeddings=True)
    assert model.similarity(*SENTENCES[:2]) == pytest.approx(float(first @ second), abs=1e-5)
    assert model.similarity(SENTENCES[0], "") == 0
    top = model.embed(SENTENCES[:2], layers="top", pooling="mean")
    cosine = float(top[0] @ top[1] / np.linalg.norm(top[0]) / np.linalg.norm(top[1]))
    assert model.similarity(*SENTENCES[:2], layers="top") == pytest.approx(cosine, abs=1e-5)


def test_a_model_without_a_form_and_layers_beside_one_are_errors(tiny, model):
    with pytest.raises(InputError, match="test: has no sentence form .* add the form with `elmo sentences MODEL TEXT`"):
        tiny.encode(["a"], pooling="sentence")
    with pytest.raises(InputError, match="layers 'top': pooling 'sentence' always reads the token layer"):
        model.encode(["a"], pooling="sentence", layers="top")
    with pytest.raises(InputError, match="pooling 'sentence' has no boundary tokens"):
        model.embed(["a"], pooling="sentence", keep_boundaries=True)


# --- how a form is made ----------------------------------------------------------------------------------------------


def test_weights_fold_case_and_leave_out_rare_words():
    assert word_weights(COUNTS, 0.01) == {
        "the": pytest.approx(0.01 / 0.71), ",": pytest.approx(0.01 / 0.21), "bank": pytest.approx(0.01 / 0.109),
        "river": pytest.approx(0.01 / 0.011),
    }  # fmt: skip
    assert list(word_weights(COUNTS, 1e-5)) == ["the", ",", "bank", "river"]
    assert word_weights(COUNTS, 1e6) == {}


def test_the_longest_directions_become_as_long_as_the_next():
    generator = np.random.default_rng(0)
    vectors = (generator.normal(size=(500, 8)) * [9, 5, 3, 1, 1, 1, 1, 1]).astype(np.float32)
    form = SentenceForm({}, common_directions(vectors, 3))
    damped = np.stack([form.pool(["word"], vector[None]) for vector in vectors])
    before, after = (np.linalg.svd(matrix, compute_uv=False) for matrix in (vectors, damped))
    assert after[:4] == pytest.approx([before[3]] * 4, rel=1e-4)
    assert after[4:] == pytest.approx(before[4:], rel=1e-4)
    assert len(common_directions(vectors[:2], 5)) == 1  # two vectors have two directions
    assert common_directions(vectors, 0).shape == (0, 8)


def common(numbers: list[float]) -> str:
    return base64.b64encode(np.array(numbers, "<f2").tobytes()).decode()


# --- the file, and the commands ----------------------------------------------------------------------------------------


def test_a_saved_model_keeps_its_form(model, folder, tmp_path):
    again = pyelmo.load(folder)
    assert worst(again.encode(SENTENCES), model.encode(SENTENCES)) < 1e-3  # stored in float16
    again.save(tmp_path / "copy", precision="int8")
    assert (tmp_path / "copy" / "sentence.json").read_bytes() == (folder / "sentence.json").read_bytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": {"the": 0}}, "the weight of 'the' is 0, expected more than 0, at most 1"),
        ({"weights": {"the": "1"}}, "the weight of 'the' is 1, expected"),
        ({"weights": []}, "expected dict under 'weights'"),
        ({"common": [[0.1] * 8]}, "expected str under 'common'"),
        ({"common": "no base64!"}, "'common' must be vectors of 8 numbers"),
        ({"common": common([0.1] * 7)}, "'common' must be vectors of 8 numbers"),
        ({"common": common([0.9] * 8)}, "no longer than 1"),
        ({"common": common([np.nan] * 8)}, "no longer than 1"),
        ({"common": common([0.1] * 72)}, "'common' must be vectors"),
    ],
)
def test_a_damaged_form_is_one_clear_error(folder, change, message):
    path = folder / "sentence.json"
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **change}), "utf-8")
    with pytest.raises(FormatError, match=message):
        pyelmo.load(folder)


def test_a_damaged_form_can_be_replaced(folder, tmp_path):
    (folder / "sentence.json").write_text("damaged", "utf-8")
    (tmp_path / "text").write_text("The bank of the river\n", "utf-8")
    assert main(["sentences", str(folder), str(tmp_path / "text"), "--force"]) == 0
    assert pyelmo.load(folder).pretrained.sentence is not None


def test_the_command_adds_a_form_from_text_or_a_corpus(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    plain = make_embedder()
    pyelmo.Embedder(replace(plain.pretrained, language="en")).save("model")
    Path("text").write_text("The bank. The river, the bank.\n\nThe end\n", "utf-8")
    assert main(["prepare", "text", "-o", "corpus", "--language", "en", "-q"]) == 0
    assert main(["sentences", "model", "text", "--directions", "2"]) == 0
    written = Path("model/sentence.json").read_bytes()
    assert "weights of 6 words, from a text of 11 words" in capsys.readouterr().err
    assert main(["sentences", "model", "text"]) == 1
    assert "sentence.json: exists" in capsys.readouterr().err
    assert main(["sentences", "model", "corpus", "--directions", "2", "--force"]) == 0
    assert Path("model/sentence.json").read_bytes() == written
    Path("split").write_text("The bank .\nThe river , the bank .\nThe end\n", "utf-8")
    assert main(["sentences", "model", "split", "--directions", "2", "--force", "--tokenised"]) == 0
    assert Path("model/sentence.json").read_bytes() == written
    assert main(["inspect", "model"]) == 0
    assert "weighted_words: 6" in capsys.readouterr().out
    assert main(["prepare", "text", "-o", "other", "-q"]) == 0
    for arguments, message in {
        ("model", "other", "--force"): "split by the rules of 'general', those of the model by 'en'",
        ("text", "corpus"): "text: not a folder of a model in pyelmo's format. Make one with elmo convert",
        ("model", "corpus", "--force", "--smoothing", "0"): "--smoothing 0.0: must be above 0",
        ("model", "missing", "--force"): "missing: not found",
    }.items():
        assert main(["sentences", *arguments]) == 1
        assert message in capsys.readouterr().err
    Path("empty").write_text("\n", "utf-8")
    assert main(["sentences", "model", "empty", "--force"]) == 1
    assert "the text has no words" in capsys.readouterr().err


@pytest.mark.parametrize("output", ["out.npz", "out.jsonl", "out/"])
def test_elmo_embed_writes_sentence_vectors(model, folder, tmp_path, monkeypatch, capsys, output):
    monkeypatch.chdir(tmp_path)
    Path("text").write_text("\n".join(SENTENCES) + "\n", "utf-8")
    assert main(["embed", "text", "-o", output, "-m", "model", "--pooling", "sentence"]) == 0
    rows = list(pyelmo.read_embeddings("out") if output == "out/" else read_embeddings(output))
    assert worst(np.stack([row.vectors for row in rows]), pyelmo.load("model").encode(SENTENCES)) < 1e-6
    assert output == "out/" or "1 blank lines have zeros instead of a vector" in capsys.readouterr().err
    assert main(["embed", "text", "-o", "no.npz", "-m", "model", "--pooling", "sentence", "--layers", "top"]) == 1
    if output == "out/":  # another form is another job
        make_form(model.word_table(), COUNTS, smoothing=0.1, directions=0).write(folder / "sentence.json")
        assert main(["embed", "text", "-o", output, "-m", "model", "--pooling", "sentence"]) == 1
        assert "parts of another job" in capsys.readouterr().err


def test_finetuning_drops_the_form_because_the_weights_change(folder, tmp_path):
    from pyelmo.corpus.corpus import PrepareSettings
    from pyelmo.corpus.prepare import prepare
    from pyelmo.formats import resolve
    from pyelmo.training.finetune import finetune
    from pyelmo.training.recipe import TrainingConfig

    (tmp_path / "text").write_text("the bank of the river\n" * 40, "utf-8")
    prepare(PrepareSettings(inputs=(str(tmp_path / "text"),), language="en"), tmp_path / "corpus")
    config = TrainingConfig(words=200, batch=2, steps=4)
    result = finetune(resolve.read(folder), tmp_path / "corpus", tmp_path / "run", config)
    assert resolve.read(result.model).sentence is None
