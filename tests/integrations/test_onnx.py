"""ONNX files give the vectors of `Embedder.embed`, for every kind of model, in any batch, without torch."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support import GOLDEN, TINY, make_embedder, worst

import pyelmo
from pyelmo.cli import main
from pyelmo.config import LstmConfig
from pyelmo.embed.embedder import Embedder
from pyelmo.errors import InputError, MissingExtraError, OutputError
from pyelmo.formats.pretrained import Pretrained
from pyelmo.integrations import onnx
from pyelmo.model.bilm import BiLM
from pyelmo.text.characters import JAMO_SYMBOLS, Jamo
from pyelmo.text.lexicon import Lexicon
from pyelmo.text.vocabulary import Vocabulary

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "examples"))
from onnx_runtime import OnnxElmo  # noqa: E402 (a script beside the package)

SENTENCES = [["The", "bank", "of", "the", "river", "."], ["A"], [], ["Zürich", "은행", "x" * 80, "<S>"]]
OTHERS = {
    "relu, no projection, one direction": replace(
        TINY,
        bidirectional=False,
        chars=replace(TINY.chars, activation="tanh", highways=2),
        lstm=LstmConfig(cells=8, projection=None, layers=3, cell_clip=None, projection_clip=None, skip=False),
    ),
    "no skip": replace(TINY, lstm=replace(TINY.lstm, skip=False, layers=1, forget_bias=0.0)),
}
GOLDEN_MODELS = {
    "clipped": GOLDEN / "allennlp-outputs" / "models" / "clip",
    "many languages": next(path.parent for path in sorted((GOLDEN / "many-langs").rglob("encoder.pkl"))),
}


def converted(embedder, folder):
    onnx.write(embedder.pretrained, folder / "model.onnx")
    return OnnxElmo(str(folder / "model.onnx"), threads=1)


def differences(got, wanted):
    return max(worst(one, other) for one, other in zip(got, wanted, strict=True))


@pytest.mark.parametrize("name", OTHERS)
def test_random_models_have_the_same_vectors(name, tmp_path):
    embedder = make_embedder(OTHERS[name])
    assert differences(converted(embedder, tmp_path).embed(SENTENCES), embedder.embed(SENTENCES)) < 1e-5


@pytest.mark.parametrize("name", GOLDEN_MODELS)
def test_trained_models_have_the_same_vectors(name, tmp_path):
    embedder = pyelmo.load(GOLDEN_MODELS[name])
    assert differences(converted(embedder, tmp_path).embed(SENTENCES), embedder.embed(SENTENCES)) < 1e-5


def test_a_model_that_reads_words_has_its_vocabulary_in_the_file(tmp_path):
    checkpoint = GOLDEN / "bilm-tf-training" / "lm_unidirectional_words" / "model.ckpt-180"
    with pytest.raises(InputError, match="--vocab FILE"):
        onnx.write(pyelmo.load(checkpoint).pretrained, tmp_path / "model.onnx")
    size = pyelmo.load(checkpoint).config.words.size
    vocab = Vocabulary(["<S>", "</S>", "<UNK>", "The", "bank", *(f"w{number}" for number in range(size - 5))])
    embedder = pyelmo.load(checkpoint, vocab=vocab)
    assert differences(converted(embedder, tmp_path).embed(SENTENCES), embedder.embed(SENTENCES)) < 1e-5


def test_padding_does_not_change_a_sentence(tiny, tmp_path):
    model = converted(tiny, tmp_path)
    alone = [model.embed([sentence])[0] for sentence in SENTENCES]
    assert differences(model.embed(SENTENCES, batch_size=4), alone) < 1e-6
    long = ["word"] * 200
    assert worst(model.embed([["A", "bank"], long])[0], model.embed([["A", "bank"]])[0]) < 1e-6


def test_positions_after_the_end_of_a_sentence_are_zero(tiny, tmp_path):
    model = converted(tiny, tmp_path)
    words, index, lengths = model.lexicon.batch([["A", "bank"], ["A"]])
    feeds = {"chars": model.lexicon.encode(words).chars, "index": index, "lengths": lengths}
    (layers,) = model.session.run(None, feeds)
    assert layers.shape == (3, 2, 2, 16)
    assert np.all(layers[:, 1, 1] == 0)
    assert np.all(layers[:, :, 0] != 0)


def test_the_bundled_english_model_agrees_within_1e_5(tmp_path, capsys):
    assert main(["convert", "en", str(tmp_path / "en.onnx")]) == 0
    texts = ["The bank of the river.", "They don't lend."]
    model = OnnxElmo(str(tmp_path / "en.onnx"), threads=1)
    assert differences(model.embed(texts), pyelmo.load("en").embed(texts)) < 1e-5  # and the text is split alike


def test_a_korean_model_reads_jamo(tmp_path):
    config = replace(TINY, chars=replace(TINY.chars, alphabet="jamo", symbols=JAMO_SYMBOLS))
    jamo = Lexicon(Jamo(config.chars.max_length))
    embedder = Embedder(Pretrained(BiLM(config).eval(), jamo, "test", "test", language="ko"))
    model = converted(embedder, tmp_path)
    texts = ["배가 아프다.", "은행에 간다"]
    assert model.language == "ko"
    assert differences(model.embed(texts), embedder.embed(texts)) < 1e-5


def test_the_example_runs_without_torch_and_onnx(tiny, tmp_path):
    converted(tiny, tmp_path)
    code = (
        "import json, runpy, sys\n"
        "sys.modules.update(torch=None, onnx=None)\n"
        f"sys.argv = ['onnx_runtime.py', {str(tmp_path / 'model.onnx')!r}, 'A bank account.']\n"
        f"runpy.run_path({str(ROOT / 'examples' / 'onnx_runtime.py')!r}, run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "(3, 4, 16)  A bank account.\n", done.stderr


def test_the_file_says_how_the_model_reads_text(tiny, tmp_path):
    metadata = converted(tiny, tmp_path).session.get_modelmeta().custom_metadata_map
    assert json.loads(metadata["config"])["lstm"]["cells"] == 16
    assert metadata["language"] == "general"


def test_a_file_is_replaced_only_with_force(tiny, tmp_path):
    path = tmp_path / "model.onnx"
    onnx.write(tiny.pretrained, path)
    with pytest.raises(OutputError, match="exists"):
        onnx.write(tiny.pretrained, path)
    onnx.write(tiny.pretrained, path, force=True)
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.onnx"]


def test_what_onnx_files_cannot_hold_is_one_error(tiny, tmp_path, monkeypatch, capsys):
    assert main(["convert", "en", str(tmp_path / "x.onnx"), "--precision", "int8"]) == 1
    assert "only pyelmo's own format stores them" in capsys.readouterr().err
    with pytest.raises(InputError, match="written by elmo convert"):
        tiny.save(tmp_path / "x.onnx")
    monkeypatch.setattr(onnx, "MAX_BYTES", 1000)
    with pytest.raises(InputError, match="at most 2 GiB"):
        onnx.write(tiny.pretrained, tmp_path / "x.onnx")
    assert not list(tmp_path.iterdir())


def test_without_the_library_the_extra_is_named(tiny, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'pyelmo\[onnx\]'"):
        onnx.write(tiny.pretrained, tmp_path / "x.onnx")
