"""Modules of TensorFlow Hub, written here in their format from known weights."""

from __future__ import annotations

import tarfile

import numpy as np
import pytest
from support import make_embedder
from tensorflow_support import MODULE, write_arrays, write_module

import pyelmo
from pyelmo.errors import FormatError

SENTENCES = [["A", "bank", "account"], ["Yes"]]


@pytest.fixture
def known(tmp_path):
    """A model, and its weights in AllenNLP's format."""
    model = make_embedder(MODULE)
    model.save(tmp_path / "weights.hdf5")
    return model


@pytest.mark.parametrize(("root", "padded"), [("", True), ("", False), ("module/", True)])
def test_a_module_gives_the_vectors_of_its_weights(known, tmp_path, root, padded):
    write_module(tmp_path / "module", tmp_path / "weights.hdf5", root=root, padded=padded)
    for source in ("module", "module/saved_model.pb"):
        model = pyelmo.load(tmp_path / source)
        assert model.config == MODULE
        assert model.pretrained.format == "tf_hub"
        assert all(map(np.array_equal, model.embed(SENTENCES), known.embed(SENTENCES)))


def test_a_module_is_read_from_its_archive(known, tmp_path, monkeypatch):
    monkeypatch.setenv("PYELMO_CACHE", str(tmp_path / "cache"))
    write_module(tmp_path / "module", tmp_path / "weights.hdf5")
    with tarfile.open(tmp_path / "elmo_3.tar.gz", "w:gz") as file:
        file.add(tmp_path / "module", ".")
    model = pyelmo.load(tmp_path / "elmo_3.tar.gz")
    assert all(map(np.array_equal, model.embed(SENTENCES), known.embed(SENTENCES)))


def test_another_saved_model_is_refused(tmp_path):
    (tmp_path / "variables").mkdir()
    write_arrays(tmp_path / "variables" / "variables", {"dense/kernel": np.zeros((2, 2), np.float32)})
    with pytest.raises(FormatError, match="not of ELMo.*dense/kernel"):
        pyelmo.load(tmp_path)
    write_arrays(tmp_path / "variables" / "variables", {"bilm/char_embed": np.zeros((262, 4), np.float32)})
    with pytest.raises(FormatError, match="not those of an ELMo module"):
        pyelmo.load(tmp_path)


def test_a_damaged_module_is_one_clear_error(known, tmp_path):
    write_module(tmp_path / "module", tmp_path / "weights.hdf5")
    data = tmp_path / "module" / "variables" / "variables.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:-500])
    with pytest.raises(FormatError, match="Copy it again"):
        pyelmo.load(tmp_path / "module")
