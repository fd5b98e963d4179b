"""What the older programs compute, from their own files."""

from __future__ import annotations

import json

import h5py
import numpy as np
import pytest
import torch
from support import FIXTURES, GOLDEN, fixture_folder, worst

import pyelmo
from pyelmo.compat.allennlp import Elmo, ElmoEmbedder, batch_to_ids
from pyelmo.embed.engines.torch_perplexity import perplexity
from pyelmo.text.characters import encode_rows

OUTPUTS = GOLDEN / "allennlp-outputs"


def all_layers(model: pyelmo.Embedder, sentences: list[list[str]]) -> tuple[np.ndarray, np.ndarray]:
    with torch.no_grad():
        layers = model.bilm(model.batch(sentences))
    return layers.values.numpy(), layers.mask.numpy()


def check_allennlp(model: pyelmo.Embedder, outputs: np.lib.npyio.NpzFile, inputs: dict, tolerance: float) -> None:
    for name, sentences in inputs.items():
        values, mask = all_layers(model, sentences)
        if f"{name}/mask" in outputs:
            np.testing.assert_array_equal(mask, outputs[f"{name}/mask"])
        for layer, got in enumerate(values):
            assert worst(got, outputs[f"{name}/layer{layer}"]) < tolerance, (name, layer)


def check_states(model: pyelmo.Embedder, outputs: np.lib.npyio.NpzFile, inputs: dict, tolerance: float) -> None:
    """One model, batches in order, the state tied to the row of the batch and never cleared."""
    elmo = ElmoEmbedderWithMarks(model)
    for name, sentences in inputs.items():
        values, state = elmo.run(sentences)
        for layer, got in enumerate(values):
            assert worst(got, outputs[f"{name}/layer{layer}"]) < tolerance, (name, layer)
        for key, kept in (("state_h", state.hidden), ("state_c", state.cell)):
            both = torch.cat([kept[:, 0], kept[:, 1]], -1)  # (L, B, 2 * size)
            want = outputs[f"{name}/{key}"]  # unclipped cells reach 13: relative to the largest
            assert worst(both, want) < tolerance * max(1.0, np.abs(want).max()), (name, key)


class ElmoEmbedderWithMarks:
    """The compat module's carried state, with all layers and the boundary tokens."""

    def __init__(self, model: pyelmo.Embedder) -> None:
        self.elmo = Elmo(module=model.bilm, stateful=True, keep_sentence_boundaries=True)

    def run(self, sentences: list[list[str]]):
        with torch.no_grad():
            layers = self.elmo._layers(batch_to_ids(sentences), None)
        return layers.values.numpy(), self.elmo._state


@pytest.mark.parametrize(("name", "tolerance"), [("clip", 1e-5), ("layers1_noclip", 1e-5)])
def test_all_layers_equal_allennlp(name, tolerance, golden_inputs):
    model = pyelmo.load(OUTPUTS / "models" / name)
    check_allennlp(model, np.load(OUTPUTS / f"allennlp_{name}_reset.npz"), golden_inputs, tolerance)


def test_carried_state_equals_allennlp(golden_inputs):
    model = pyelmo.load(OUTPUTS / "models" / "layers1_noclip")
    check_states(model, np.load(OUTPUTS / "allennlp_layers1_noclip_carry.npz"), golden_inputs, 1e-5)


def test_float64_equals_allennlp_in_float64(golden_inputs, clip_model):
    model = pyelmo.load(clip_model)
    model.bilm.double()
    # Not 1e-12: AllenNLP rounded "forget bias + 1" to float32 before it went to float64.
    check_allennlp(model, np.load(OUTPUTS / "allennlp_clip_reset_float64.npz"), golden_inputs, 1e-6)


def test_character_ids_equal_allennlp(golden_inputs):
    want = np.load(OUTPUTS / "char_ids.npz")
    for name, sentences in golden_inputs.items():
        np.testing.assert_array_equal(batch_to_ids(sentences).numpy(), want[name])


def test_fixture_layers_equal_allennlp_reset_and_carried(golden_inputs):
    model = pyelmo.load(fixture_folder("allennlp-fixture") / "lm_weights.hdf5")
    folder = fixture_folder("allennlp-outputs")
    check_allennlp(model, np.load(folder / "allennlp_fixture_reset.npz"), golden_inputs, 2e-6)
    check_states(model, np.load(folder / "allennlp_fixture_carry.npz"), golden_inputs, 2e-6)


def test_fixture_character_vectors():
    folder = fixture_folder("allennlp-fixture")
    model = pyelmo.load(folder / "lm_weights.hdf5")
    words = (folder / "vocab_test.txt").read_text("utf-8").split("\n")
    with h5py.File(folder / "elmo_token_embeddings.hdf5") as file:
        want = file["embedding"][...]
    words = words[: len(want)]
    with torch.no_grad():
        got = model.bilm.encode_words(torch.from_numpy(encode_rows(model.lexicon.alphabet, words)), None)
    assert worst(got, want) < 2e-6


def test_fixture_top_layer_with_carried_state():
    folder = fixture_folder("allennlp-fixture")
    lists = json.loads((folder / "sentences.json").read_text("utf-8"))
    embedder = ElmoEmbedder(folder / "options.json", folder / "lm_weights.hdf5", stateful=True)
    wanted = [h5py.File(folder / f"lm_embeddings_{k}.hdf5") for k in range(3)]
    for number in range(10):
        batch = [sentences[number].split() for sentences in lists]
        for k, layers in enumerate(embedder.embed_batch(batch)):
            forward, backward = np.split(layers[-1], 2, -1)
            assert worst(np.stack([forward, backward]), wanted[k][str(number)][...]) < 2e-6


def test_bilm_tf_fixture_without_skip(golden_inputs):
    model = pyelmo.load(fixture_folder("bilm-tf-fixture") / "model" / "lm_weights.hdf5")
    want = np.load(fixture_folder("allennlp-outputs") / "bilmtf_bilmfixture_noskip_reset.npz")
    for name, sentences in golden_inputs.items():
        if f"{name}/lm_embeddings" not in want:
            continue
        got = model.embed(sentences)
        for row, length in enumerate(want[f"{name}/lengths"]):
            assert worst(got[row], want[f"{name}/lm_embeddings"][row, :, :length]) < 2e-6, name


@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize("keep", [False, True])
def test_scalar_mixes_equal_allennlp(layer_norm, keep, golden_inputs):
    folder = fixture_folder("allennlp-fixture")
    want = np.load(FIXTURES / "allennlp-outputs" / "allennlp_fixture_scalarmix_reset.npz")
    elmo = Elmo(
        folder / "options.json", folder / "lm_weights.hdf5", 2,
        do_layer_norm=layer_norm, dropout=0.0, keep_sentence_boundaries=keep,
    )  # fmt: skip
    set_mixes(elmo, want)
    for name, sentences in golden_inputs.items():
        key = f"{name}/ln{int(layer_norm)}_keep{int(keep)}"
        if f"{key}/rep0" not in want:
            continue
        with torch.no_grad():
            got = elmo(batch_to_ids(sentences))
        np.testing.assert_array_equal(got["mask"].numpy(), want[f"{key}/mask"])
        for number in range(2):
            assert worst(got["elmo_representations"][number], want[f"{key}/rep{number}"]) < 1e-5, key


def set_mixes(elmo: Elmo, want: np.lib.npyio.NpzFile) -> None:
    for number, mix in enumerate(elmo._elmo.mixes):
        with torch.no_grad():
            mix.logits.copy_(torch.from_numpy(np.asarray(want["scalar_parameters"][number], np.float32)))
            mix.gamma.copy_(torch.tensor(float(want["gamma"][number])))


def test_many_langs_outputs(golden_inputs):
    model = pyelmo.load(GOLDEN / "many-langs" / "model")
    want = np.load(GOLDEN / "many-langs" / "outputs.npz")
    for key in want:
        _, name, row = key.split("/")
        assert worst(model.embed([golden_inputs[name][int(row)]])[0], want[key]) < 1e-5, key


def test_many_langs_does_not_need_its_settings_file(golden_inputs, tmp_path):
    import shutil

    shutil.copytree(GOLDEN / "many-langs" / "model", tmp_path / "model")
    (tmp_path / "model" / "cnn_50_100_512_4096_sample.json").unlink()
    model = pyelmo.load(tmp_path / "model")
    want = np.load(GOLDEN / "many-langs" / "outputs.npz")
    assert worst(model.embed(golden_inputs["b4_one_token"])[0], want["reset/b4_one_token/0"]) < 1e-5


TRAINED = ["bilm_chars_skip", "bilm_words_shared_softmax", "lm_unidirectional_words"]


@pytest.mark.parametrize("name", TRAINED)
def test_bilm_tf_checkpoint_gives_its_perplexity(name):
    train = fixture_folder("bilm-tf-fixture") / "train"
    model = pyelmo.load(GOLDEN / "bilm-tf-training" / name / "model.ckpt-180", vocab=train / "vocab.txt")
    sentences = [line.split() for line in (train / "data.txt").read_text("utf-8").splitlines()]
    info = json.loads((GOLDEN / "bilm-tf-training" / "info.json").read_text("utf-8"))[name]
    # bilm-tf at batch 1 carries the state through the whole text: one document.
    result = perplexity(model.pretrained, [sentences])
    assert result.average == pytest.approx(info["perplexity_batch1"], abs=1e-3)
    assert result.words == info["n_batches_batch1"]


@pytest.mark.parametrize("name", TRAINED)
def test_bilm_tf_checkpoint_and_its_hdf5_hold_the_same_model(name):
    folder = GOLDEN / "bilm-tf-training" / name
    checkpoint, dumped = pyelmo.load(folder / "model.ckpt-180.index"), pyelmo.load(folder / "weights.hdf5")
    assert checkpoint.bilm.softmax is not None
    weights = dict(checkpoint.bilm.named_parameters())
    for parameter_name, parameter in dumped.bilm.named_parameters():
        assert torch.equal(parameter, weights[parameter_name]), parameter_name
