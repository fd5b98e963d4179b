"""Folders of NLPL: the vectors of an HDF5 file, and the softmax of the checkpoint beside it."""

from __future__ import annotations

import logging
import pickle
import shutil

import h5py
import numpy as np
import pytest
from support import GOLDEN

import pyelmo
from pyelmo.cli import main
from pyelmo.formats import describe

CHECKPOINT = GOLDEN / "bilm-tf-training" / "bilm_chars_skip"
SENTENCES = [["A", "bank", "account"], ["Yes"]]


@pytest.fixture
def nlpl(tmp_path):
    folder = tmp_path / "nlpl"
    shutil.copytree(CHECKPOINT, folder)
    (folder / "weights.hdf5").rename(folder / "model.hdf5")
    words = ["<S>", "</S>", "<UNK>", *(f"w{number}" for number in range(29))]
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in words))
    return folder


def test_the_softmax_of_a_checkpoint_is_used_beside_the_hdf5_file(nlpl, capsys, tmp_path):
    model, checkpoint = pyelmo.load(nlpl), pyelmo.load(nlpl / "model.ckpt-180")
    assert model.pretrained.source.endswith("model.hdf5")
    assert model.pretrained.format == "allennlp, softmax of model.ckpt-180"
    assert all(map(np.array_equal, model.embed(SENTENCES), pyelmo.load(nlpl / "model.hdf5").embed(SENTENCES)))
    ours, theirs = (each.predict("w1 w2 ___ w3", count=3) for each in (model, checkpoint))
    assert [guess.word for guess in ours] == [guess.word for guess in theirs]
    assert main(["predict", str(nlpl), "w1 ___ w3"]) == 0
    assert describe.describe(pyelmo.load(nlpl).pretrained)["vocabulary"]["predicts_words"] == 32
    pickle.loads(pickle.dumps(model)).predict("w1 ___")
    model.save(tmp_path / "native")
    assert pyelmo.load(tmp_path / "native").config.softmax == 32


def test_the_softmax_is_read_when_it_is_needed(nlpl, monkeypatch):
    read: list[str] = []
    fetch = pyelmo.formats.tensorflow_bundle.Bundle.__getitem__
    monkeypatch.setattr(
        "pyelmo.formats.tensorflow_bundle.Bundle.__getitem__", lambda self, name: read.append(name) or fetch(self, name)
    )
    model = pyelmo.load(nlpl)
    model.embed(SENTENCES)
    assert not any("softmax" in name for name in read)
    model.predict("w1 ___")
    assert {"lm/softmax/W", "lm/softmax/b"} <= set(read)


@pytest.mark.parametrize("problem", ["other weights", "other vocabulary", "damaged"])
def test_a_checkpoint_that_does_not_fit_is_left_out_and_named(nlpl, caplog, problem):
    if problem == "other weights":
        with h5py.File(nlpl / "model.hdf5", "a") as file:
            file["RNN_1/RNN/MultiRNNCell/Cell0/LSTMCell/B"][0] += 1
    elif problem == "other vocabulary":
        (nlpl / "vocab.txt").write_text("a\nb\n")
    else:
        (nlpl / "model.ckpt-180.index").write_bytes(b"damaged")
    with caplog.at_level(logging.WARNING):
        model = pyelmo.load(nlpl)
    assert "model.ckpt-180: its softmax is not used" in caplog.text
    assert model.config.softmax is None
    assert model.pretrained.format == "allennlp"
