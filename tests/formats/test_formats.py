"""Formats: round trips, finding out what a source is, and files that are not what they should be."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import sys

import h5py
import numpy as np
import pytest
import torch
from support import GOLDEN, TINY, make_embedder

import pyelmo
from pyelmo.config import CharConfig, LstmConfig, ModelConfig, WordConfig
from pyelmo.errors import FormatError, MissingExtraError, NotFoundError, OutputError, UnsafeFileError
from pyelmo.formats import bundled, resolve
from pyelmo.formats.describe import describe
from pyelmo.formats.pretrained import Pretrained
from pyelmo.model.bilm import BiLM
from pyelmo.text.characters import JAMO_SYMBOLS, Jamo
from pyelmo.text.lexicon import Lexicon

MODELS = GOLDEN / "allennlp-outputs" / "models"
MANY = GOLDEN / "many-langs" / "model"
TRAINED = GOLDEN / "bilm-tf-training"


@pytest.fixture
def model(tmp_path, clip_model):
    """A copy of a model that a test may damage."""
    shutil.copytree(clip_model, tmp_path / "model")
    return tmp_path / "model"


def arrays(path) -> dict[str, np.ndarray]:
    result = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, item: result.update({name: item[...]}) if isinstance(item, h5py.Dataset) else None)
    return result


@pytest.mark.parametrize(
    "weights",
    [
        MODELS / "clip" / "weights.hdf5",
        MODELS / "layers1_noclip" / "weights.hdf5",
        TRAINED / "bilm_chars_skip" / "weights.hdf5",
        TRAINED / "bilm_words_shared_softmax" / "weights.hdf5",
        TRAINED / "lm_unidirectional_words" / "weights.hdf5",
    ],
    ids=lambda path: path.parent.name,
)
def test_hdf5_to_native_to_hdf5_is_bit_equal(weights, tmp_path):
    pyelmo.load(weights).save(tmp_path / "native")
    pyelmo.load(tmp_path / "native").save(tmp_path / "back", format="allennlp")
    before, after = arrays(weights), arrays(tmp_path / "back" / "weights.hdf5")
    assert sorted(before) == sorted(after)
    for name, array in before.items():
        assert array.dtype == after[name].dtype == np.float32
        assert array.tobytes() == after[name].tobytes(), name
    assert pyelmo.load(tmp_path / "back").config == pyelmo.load(weights).config


def test_a_checkpoint_with_softmax_and_vocabulary_survives(tmp_path):
    vocab = tmp_path / "words"
    vocab.write_text("".join(f"{word}\n" for word in ["<S>", "</S>", "<UNK>", *(f"w{i}" for i in range(29))]))
    for name in ("bilm_chars_skip", "bilm_words_shared_softmax", "lm_unidirectional_words"):
        first = pyelmo.load(TRAINED / name / "model.ckpt-180", vocab=vocab)
        for kind in ("pyelmo", "allennlp"):
            first.save(tmp_path / f"{name}-{kind}", format=kind)
            second = pyelmo.load(tmp_path / f"{name}-{kind}")
            assert second.lexicon.vocab == first.lexicon.vocab
            assert second.config == first.config
            wanted = first.bilm.state_dict()
            assert all(torch.equal(tensor, wanted[key]) for key, tensor in second.bilm.state_dict().items())
            assert np.array_equal(second.embed([["w1", "w2"]])[0], first.embed([["w1", "w2"]])[0])


def test_many_langs_survives_the_native_format(tmp_path):
    first = pyelmo.load(MANY)
    first.save(tmp_path / "native")
    second = pyelmo.load(tmp_path / "native")
    sentence = [["나는", "학교에", "갔다", ".", "\u3000", "unseen"]]
    assert np.array_equal(first.embed(sentence)[0], second.embed(sentence)[0])
    with pytest.raises(FormatError, match="knows only bytes"):
        first.save(tmp_path / "h5", format="allennlp")
    assert not (tmp_path / "h5").exists()


def test_others_may_read_all_that_is_written(tiny, tmp_path):
    tiny.save(tmp_path / "native")
    (tmp_path / "any").touch()
    assert {path.stat().st_mode for path in (tmp_path / "native").iterdir()} == {(tmp_path / "any").stat().st_mode}


def test_a_jamo_model_survives_the_native_format(tmp_path):
    config = ModelConfig(
        chars=CharConfig(alphabet="jamo", symbols=JAMO_SYMBOLS, dim=4, filters=((1, 4),), highways=0, max_length=20),
        lstm=TINY.lstm,
    )
    first = pyelmo.Embedder(Pretrained(BiLM(config).eval(), Lexicon(Jamo(20)), "test", "test"))
    first.save(tmp_path / "native")
    assert np.array_equal(first.embed(["한글"])[0], pyelmo.load(tmp_path / "native").embed(["한글"])[0])


def test_a_model_knows_its_language(tiny, tmp_path):
    assert tiny.tokenise("I don't") == ["I", "don", "'", "t"]
    tiny.pretrained.language = "en"
    tiny.save(tmp_path / "native")
    assert describe(resolve.read(tmp_path / "native"))["language"] == "en"
    model = pyelmo.load(tmp_path / "native")
    assert model.tokenise("I don't") == pickle.loads(pickle.dumps(model)).tokenise("I don't") == ["I", "do", "n't"]
    assert pyelmo.load(tmp_path / "native", language="general").tokenise("I don't") == ["I", "don", "'", "t"]
    model.save(tmp_path / "again", precision="int8")
    assert pyelmo.load(tmp_path / "again").language == "en"


@pytest.mark.parametrize(
    "config",
    [
        ModelConfig(chars=CharConfig(dim=4, filters=((1, 8),), highways=0), project=False, lstm=TINY.lstm),
        ModelConfig(chars=TINY.chars, lstm=LstmConfig(cells=8, projection=None, layers=1)),
        ModelConfig(chars=None, words=WordConfig(size=5, dim=8), project=False, lstm=TINY.lstm),
    ],
    ids=["no token projection", "no LSTM projection", "words"],
)
def test_what_bilm_tf_leaves_out_may_be_left_out(config, tmp_path):
    make_embedder(config).save(tmp_path / "out", format="allennlp")
    assert pyelmo.load(tmp_path / "out").config == config


def test_a_source_may_be_any_file_of_the_model(model, tmp_path):
    want = pyelmo.load(model).embed([["bank"]])[0]
    native = tmp_path / "native"
    pyelmo.load(model).save(native)
    os.rename(model / "weights.hdf5", model / "elmo_2x64_weights.hdf5")
    os.rename(model / "options.json", model / "elmo_2x64_options.json")
    sources = [model, *model.iterdir(), native, *native.iterdir(), str(native)]
    for given in sources:
        assert np.array_equal(pyelmo.load(given).embed([["bank"]])[0], want), given


def test_options_may_be_elsewhere(model, tmp_path):
    os.rename(model / "options.json", tmp_path / "o.json")
    assert pyelmo.load(model / "weights.hdf5", options=tmp_path / "o.json").config.layers == 3
    with pytest.raises(NotFoundError, match=r"no options\.json beside it"):
        pyelmo.load(model / "weights.hdf5")


def test_a_tensorflow_folder_gives_the_checkpoint_it_names(tmp_path):
    shutil.copytree(TRAINED / "bilm_chars_skip", tmp_path / "run")
    (tmp_path / "run" / "weights.hdf5").unlink()
    for path in list((tmp_path / "run").glob("model.ckpt-180.*")):
        shutil.copy(path, path.with_name(path.name.replace("180", "20")))
    assert pyelmo.load(tmp_path / "run").pretrained.source.endswith("model.ckpt-180")
    (tmp_path / "run" / "checkpoint").unlink()
    assert pyelmo.load(tmp_path / "run").pretrained.source.endswith("model.ckpt-180")


def test_a_folder_replaces_another_only_with_force(model, tmp_path):
    embedder = pyelmo.load(model)
    embedder.save(tmp_path / "out")
    with pytest.raises(OutputError, match="--force"):
        embedder.save(tmp_path / "out")
    embedder.save(tmp_path / "out", format="allennlp", force=True)
    assert pyelmo.load(tmp_path / "out").pretrained.format == "allennlp"


def edit_options(model, change) -> None:
    options = json.loads((model / "options.json").read_text())
    change(options)
    (model / "options.json").write_text(json.dumps(options))


def drop(model, name) -> None:
    with h5py.File(model / "weights.hdf5", "a") as file:
        del file[name]


def poison(model) -> None:
    with h5py.File(model / "weights.hdf5", "a") as file:
        file["CNN_proj/W_proj"][0, :3] = np.nan


DAMAGE = {
    "truncated": (lambda m: os.truncate(m / "weights.hdf5", 5000), "not a complete HDF5 file"),
    "empty": (lambda m: os.truncate(m / "weights.hdf5", 0), "not a complete HDF5 file"),
    "not HDF5": (lambda m: (m / "weights.hdf5").write_text("hello"), "not a complete HDF5 file"),
    "foreign HDF5": (lambda m: (os.remove(m / "weights.hdf5"), h5py.File(m / "weights.hdf5", "w").close()), "no LSTM weights of an ELMo"),
    "more cells": (lambda m: edit_options(m, lambda o: o["lstm"].update(dim=65)), r"W_0' is \(32, 256\), expected \(32, 260\)"),
    "more filters": (lambda m: edit_options(m, lambda o: o["char_cnn"]["filters"].append([6, 3])), "'CNN/W_cnn_5' is missing"),
    "fewer layers": (lambda m: edit_options(m, lambda o: o["lstm"].update(n_layers=1)), "Cell1.* is not a weight"),
    "more layers": (lambda m: edit_options(m, lambda o: o["lstm"].update(n_layers=3)), "Cell2.* is missing"),
    "no lstm": (lambda m: edit_options(m, lambda o: o.pop("lstm")), "not options of an ELMo model"),
    "odd activation": (lambda m: edit_options(m, lambda o: o["char_cnn"].update(activation="gelu")), "'gelu' is none of"),
    "large projection": (lambda m: edit_options(m, lambda o: o["lstm"].update(projection_dim=99)), "no ELMo program supports"),
    "broken JSON": (lambda m: (m / "options.json").write_text('{"lstm": '), "not a JSON file"),
    "JSON list": (lambda m: (m / "options.json").write_text("[]"), "expected a JSON object"),
    "binary options": (lambda m: (m / "options.json").write_bytes(b"\xff\xfe"), "not a JSON file"),
    "missing dataset": (lambda m: drop(m, "char_embed"), "'char_embed' is missing"),
    "NaN": (poison, "3 values that are NaN or infinite"),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_model_is_one_clear_error(model, damage):
    harm, message = DAMAGE[damage]
    harm(model)
    with pytest.raises(FormatError, match=message) as error:
        pyelmo.load(model)
    assert str(model) in str(error.value)


NATIVE_DAMAGE = {
    "truncated": (lambda m: os.truncate(m / "model.safetensors", 5000), "not a complete safetensors file"),
    "version": (lambda m: edit_json(m / "config.json", version=99), "version 99"),
    "unknown key": (lambda m: edit_json(m / "config.json", model={"lsm": {}}), "Did you mean 'lstm'"),
    "other sizes": (lambda m: edit_json(m / "config.json", model={"lstm": {"cells": 3}}), "is missing|expected"),
    "unknown language": (lambda m: edit_json(m / "config.json", language="xx"), "language 'xx' is none of en, ko"),
    "no language": (lambda m: edit_json(m / "config.json", language=["en"]), r"language \['en'\] is none of en, ko"),
    "no weights": (lambda m: os.remove(m / "model.safetensors"), "model.safetensors: not found"),
}


def edit_json(path, **changes) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize("damage", NATIVE_DAMAGE)
def test_a_damaged_native_model_is_one_clear_error(model, tmp_path, damage):
    pyelmo.load(model).save(tmp_path / "native")
    harm, message = NATIVE_DAMAGE[damage]
    harm(tmp_path / "native")
    with pytest.raises((FormatError, NotFoundError), match=message):
        pyelmo.load(tmp_path / "native")


class RunsCode:
    def __reduce__(self):
        return os.system, ("touch pickle_ran_code",)


def test_a_pickle_that_wants_to_run_code_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, write in (
        ("legacy", lambda path: path.write_bytes(pickle.dumps(RunsCode()))),
        ("zip", lambda path: torch.save(RunsCode(), path)),
    ):
        shutil.copytree(MANY, tmp_path / name)
        write(tmp_path / name / "encoder.pkl")
        with pytest.raises(FormatError, match="could run code|not a complete torch file"):
            pyelmo.load(tmp_path / name)
    with pytest.raises(UnsafeFileError, match="could run code"):
        pyelmo.load(tmp_path / "zip")
    assert not (tmp_path / "pickle_ran_code").exists()


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda m: os.truncate(m / "encoder.pkl", 1000), "not a complete torch file"),
        (lambda m: os.truncate(m / "encoder.pkl", 0), "not a complete torch file"),
        (lambda m: torch.save([1, 2], m / "encoder.pkl"), "expected a state dict"),
        (lambda m: torch.save({}, m / "encoder.pkl"), "not those of an ELMo model"),
        (lambda m: os.remove(m / "char.dic"), "char.dic: not found"),
        (lambda m: os.remove(m / "encoder.pkl"), "encoder.pkl: not found"),
        (lambda m: (m / "word.dic").write_text("a\tb\n"), "word.dic, line 1: expected token, tab, id"),
        (lambda m: (m / "word.dic").write_text("<oov>\t0\n<bos>\t1\n<eos>\t2\n"), "3 entries, the weights have 43"),
        (lambda m: (m / "word.dic").write_bytes(b"\xff\t0\n"), "not UTF-8"),
        (lambda m: edit_json(m / "cnn_50_100_512_4096_sample.json", encoder={"name": "lstm"}), "the encoder is 'lstm'"),
    ],
)  # fmt: skip
def test_a_damaged_many_langs_folder_is_one_clear_error(tmp_path, harm, message):
    shutil.copytree(MANY, tmp_path / "model")
    harm(tmp_path / "model")
    with pytest.raises((FormatError, NotFoundError), match=message):
        pyelmo.load(tmp_path / "model")


def test_a_word_model_without_its_words_says_what_it_needs():
    with pytest.raises(pyelmo.PyelmoError, match="Pass vocab=FILE"):
        pyelmo.load(TRAINED / "lm_unidirectional_words" / "model.ckpt-180").embed([["a"]])


def test_a_vocabulary_of_another_model_is_refused(tmp_path):
    (tmp_path / "vocab.txt").write_text("<S>\n</S>\n<UNK>\n")
    with pytest.raises(FormatError, match="3 words, the model has 32"):
        pyelmo.load(TRAINED / "bilm_chars_skip" / "model.ckpt-180", vocab=tmp_path / "vocab.txt")


def test_a_folder_without_a_model_says_what_was_looked_for(tmp_path):
    with pytest.raises(FormatError, match="holds no ELMo model"):
        pyelmo.load(tmp_path)
    (tmp_path / "thing.zip").write_bytes(b"PK")
    with pytest.raises(FormatError, match="the archive is damaged"):
        pyelmo.load(tmp_path / "thing.zip")
    (tmp_path / "thing.rar").write_bytes(b"Rar!")
    with pytest.raises(FormatError, match="unpack any other"):
        pyelmo.load(tmp_path / "thing.rar")


def test_a_hub_id_says_which_extra_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtraError, match=r"pyelmo\[hub\]"):
        pyelmo.load("somebody/elmo-model")


def test_the_name_of_a_bundled_model_is_found(model, tmp_path, monkeypatch):
    pyelmo.load(model).save(tmp_path / "xx")
    monkeypatch.setattr(bundled, "BUNDLED", tmp_path)
    assert pyelmo.load("xx").config.layers == 3
    assert pyelmo.load("xx").language == "general"
    with pytest.raises(NotFoundError, match=r"bundled: xx"):
        pyelmo.load("yy")


def test_describe_counts_every_parameter_once():
    for path in (MODELS / "clip", MANY, TRAINED / "bilm_words_shared_softmax" / "model.ckpt-180"):
        embedder = pyelmo.load(path)
        facts = describe(embedder.pretrained)
        assert facts["parameters"]["total"] == sum(p.numel() for p in embedder.bilm.parameters())
        assert facts["layers"] == 3
