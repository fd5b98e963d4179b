"""Calibrated rounding to int4: the inputs of each product, the errors that remain, and the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from support import TOLERANCE, worst

import pyelmo
from pyelmo.cli import main
from pyelmo.config import CharConfig, LstmConfig, ModelConfig, WordConfig
from pyelmo.errors import InputError
from pyelmo.formats.pretrained import Pretrained
from pyelmo.kernels.cpu.quantise4 import Packed, pack
from pyelmo.model.bilm import BiLM
from pyelmo.text.characters import Bytes
from pyelmo.text.lexicon import Lexicon
from pyelmo.text.vocabulary import Vocabulary
from pyelmo.training.calibration import calibrated, collect, run_layer

TEXT = Path(__file__).parents[1] / "banks.txt"
WORDS = ("<S>", "</S>", "<UNK>", "bank", "river", "the", "of", "a")
MODEL = ModelConfig(
    chars=CharConfig(dim=4, filters=((1, 32), (2, 32)), highways=1),
    lstm=LstmConfig(cells=64, projection=32, layers=2),
    softmax=len(WORDS),
)


@pytest.fixture(scope="module")
def sentences():
    return [line.split() for line in TEXT.read_text("utf-8").splitlines() if line][:60]


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return Pretrained(BiLM(MODEL).eval(), Lexicon(Bytes(), Vocabulary(WORDS)), "test", "test", "en")


@pytest.fixture(scope="module")
def rounded(model, sentences):
    return calibrated(model, sentences)


def errors(weights, bias, inputs, restored, new_bias):
    """Return the mean squared change of the products."""
    old = inputs @ weights.T + (0 if bias is None else bias)
    return float(np.square(inputs @ restored.T + (0 if new_bias is None else new_bias) - old).mean())


def layer_inputs(model, sentences, number):
    """Return what a layer reads, from the layers of an embedder: [x_t, h_t-1] of the forward direction."""
    embedder = pyelmo.Embedder(model)
    batch = embedder.batch(sentences)
    with torch.inference_mode():
        vectors = model.bilm.encode_words(batch.chars, batch.words)
        return model.bilm.lstm.layers[number], torch.nn.functional.embedding(batch.index, vectors), batch.mask


def test_the_inputs_of_a_layer_give_its_outputs(model, sentences):
    layer, inputs, mask = layer_inputs(model, sentences, 0)
    with torch.inference_mode():
        inputs = torch.stack([inputs, inputs])
        state = model.bilm.lstm.zero_state(len(mask))
        joint, hidden, outputs = run_layer(layer, inputs, mask)
        expected, _, _ = layer(inputs, state.hidden[0], state.cell[0], mask)
        assert worst(outputs[:, mask], expected[:, mask]) < TOLERANCE[torch.float32]
        clip = MODEL.lstm.projection_clip
        projected = torch.bmm(hidden, layer.projection.transpose(1, 2)).clamp(-clip, clip)
        assert worst(projected, expected[:, mask]) < TOLERANCE[torch.float32]
        assert worst(joint[..., :32], inputs[:, mask]) == 0
        previous = torch.nn.functional.pad(outputs, (0, 0, 1, 0))[:, :, :-1]
        assert worst(joint[..., 32:], previous[:, mask]) == 0


def test_moments_do_not_count_padding(model, sentences):
    moments = collect(model, sentences)
    tokens = sum(len(sentence) + 2 for sentence in sentences)
    distinct = len({word for sentence in sentences for word in sentence}) + 2
    assert moments["lstm.layers.1.projection.1"].count == tokens
    assert moments["softmax"].count == 2 * tokens
    assert moments["projection"].count == distinct  # one batch
    top = pyelmo.Embedder(model).embed(sentences, layers="top")
    assert len(top) == len(sentences)


def test_products_change_less_than_with_plain_rounding(model, sentences, rounded):
    weights = {name: parameter.detach().numpy() for name, parameter in model.bilm.named_parameters()}
    layer, inputs, mask = layer_inputs(model, sentences, 0)
    with torch.inference_mode():
        joint, hidden, _ = run_layer(layer, torch.stack([inputs, inputs]), mask)
    names = ("lstm.layers.0.input", "lstm.layers.0.recurrent")
    gates = np.concatenate([weights[name][0] for name in names], 1)
    plain = pack(gates).restore()
    better = np.concatenate([rounded[name].restore()[0] for name in names], 1)
    bias, moved = weights["lstm.layers.0.bias"][0], rounded["lstm.layers.0.bias"][0]
    seen = joint[0].numpy()
    assert errors(gates, bias, seen, better, moved) < 0.5 * errors(gates, bias, seen, plain, bias)
    name = "lstm.layers.0.projection"
    matrix, seen = weights[name][0], hidden[0].numpy()
    better = rounded[name].restore()[0]
    assert errors(matrix, None, seen, better, None) < 0.5 * errors(matrix, None, seen, pack(matrix).restore(), None)


def test_every_matrix_of_a_product_is_rounded_and_its_bias_moved(model, rounded):
    packed = {name for name, value in rounded.items() if isinstance(value, Packed)}
    parts = ("input", "recurrent", "projection")
    layers = {f"lstm.layers.{number}.{part}" for number in (0, 1) for part in parts}
    highway = {f"chars.highways.0.{part}.weight" for part in ("transform", "gate")}
    assert packed == layers | highway | {"projection.weight", "softmax.weight"}
    assert {name for name in rounded if name.endswith("bias")} == {
        name for name, _ in model.bilm.named_parameters() if name.endswith("bias") and "convolutions" not in name
    }


def test_the_layers_of_a_calibrated_file_are_nearer(model, sentences, rounded, tmp_path):
    from pyelmo.formats.resolve import write

    write(model, tmp_path / "plain", precision="int4")
    write(model, tmp_path / "calibrated", precision="int4", rounded=rounded)
    sizes = {name: (tmp_path / name / "model.safetensors").stat().st_size for name in ("plain", "calibrated")}
    assert sizes["plain"] == sizes["calibrated"]
    want = pyelmo.Embedder(model).embed(sentences, layers="all")
    read = {name: pyelmo.load(tmp_path / name) for name in sizes}
    distances = {
        name: sum(
            float(np.square(a - b).sum()) for a, b in zip(reader.embed(sentences, layers="all"), want, strict=True)
        )
        for name, reader in read.items()
    }
    assert distances["calibrated"] < 0.5 * distances["plain"]
    for name, parameter in read["calibrated"].bilm.named_parameters():
        if name in rounded:
            value = rounded[name]
            expected = value.restore() if isinstance(value, Packed) else value
            assert np.array_equal(parameter.detach().numpy(), expected)


def test_text_without_words_is_an_error(model):
    with pytest.raises(InputError, match="no text to calibrate with"):
        calibrated(model, [[]])


def test_a_model_whose_rows_are_no_whole_groups_keeps_all_weights():
    config = ModelConfig(
        chars=CharConfig(dim=4, filters=((1, 8),), highways=1), lstm=LstmConfig(cells=16, projection=8, layers=2)
    )
    model = Pretrained(BiLM(config).eval(), Lexicon(Bytes()), "test", "test")
    assert calibrated(model, [["a", "bank"]]) == {}


def test_a_model_that_reads_words_in_one_direction_without_projection(sentences):
    config = ModelConfig(
        chars=None, words=WordConfig(size=len(WORDS), dim=32), project=False, bidirectional=False,
        lstm=LstmConfig(cells=32, projection=None, layers=1), softmax=len(WORDS), softmax_shares_words=True,
    )  # fmt: skip
    lexicon = Lexicon(None, Vocabulary(WORDS), reads_words=True)
    rounded = calibrated(Pretrained(BiLM(config).eval(), lexicon, "test", "test"), sentences)
    assert set(rounded) == {f"lstm.layers.0.{part}" for part in ("input", "recurrent", "bias")}


def test_convert_calibrates(model, tmp_path, capsys):
    from pyelmo.formats.resolve import write

    write(model, tmp_path / "full")
    text = tmp_path / "text.txt"
    text.write_text("".join(TEXT.read_text("utf-8").splitlines(keepends=True)[:60]), "utf-8")
    full, out = str(tmp_path / "full"), str(tmp_path / "out")
    options = ["--calibrate", str(text), "--tokenised"]
    assert main(["convert", full, out, *options]) == 1
    assert "--precision is float32. Add --precision int4" in capsys.readouterr().err
    assert main(["convert", full, out, *options, "--precision", "int4"]) == 0
    assert main(["convert", full, f"{out}-plain", "--precision", "int4"]) == 0
    one, other = (Path(folder, "model.safetensors").read_bytes() for folder in (out, f"{out}-plain"))
    assert len(one) == len(other)
    assert one != other
    assert main(["convert", full, out, *options, "--precision", "int4", "--force"]) == 0
    assert Path(out, "model.safetensors").read_bytes() == one
