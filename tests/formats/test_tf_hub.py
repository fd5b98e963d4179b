"""Modules of TensorFlow Hub, written here in their format from known weights; NLPL folders; alignments."""

from __future__ import annotations

import logging
import pickle
import shutil
import tarfile
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from support import GOLDEN, TINY, make_embedder, worst
from tensorflow_support import MODULE, write_arrays, write_module

import pyelmo
from pyelmo.cli import main
from pyelmo.errors import FormatError, InputError, NotFoundError, UnsafeFileError
from pyelmo.formats import describe

SENTENCES = [["A", "bank", "account"], ["Yes"]]
CHECKPOINT = GOLDEN / "bilm-tf-training" / "bilm_chars_skip"


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


# --- folders of NLPL: an HDF5 file and a checkpoint with the softmax ---------------------------------------------------


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
    assert model.pretrained.source.endswith("model.hdf5 (softmax: model.ckpt-180)")
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
    assert model.pretrained.source.endswith("model.hdf5")


# --- align.pth ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def matrix():
    return np.random.default_rng(0).normal(size=(TINY.dim, TINY.dim)).astype(np.float32)


@pytest.mark.parametrize("kind", ["array", "array, zip", "tensor", "tensor, zip", "double"])
def test_an_alignment_multiplies_every_vector(tmp_path, tiny, matrix, kind):
    tiny.save(tmp_path / "model")
    stored = matrix.astype(np.float64) if kind == "double" else matrix
    value = torch.from_numpy(stored) if "tensor" in kind else stored
    torch.save(value, tmp_path / "align.pth", _use_new_zipfile_serialization="zip" in kind)
    plain, aligned = pyelmo.load(tmp_path / "model"), pyelmo.load(tmp_path / "model", align=tmp_path / "align.pth")
    for layers in ("all", "top", [0.5, 0.3, 0.2]):
        for one, other in zip(
            plain.embed(SENTENCES, layers=layers), aligned.embed(SENTENCES, layers=layers), strict=True
        ):
            assert worst(other, one @ matrix.T) < 1e-5
    alone = aligned.embed(SENTENCES[:1])[0]
    assert np.array_equal(alone, aligned.embed([*SENTENCES, ["More", "words", "in", "a", "batch"]])[0])
    first = aligned.embed(SENTENCES, layers="top", pooling="max")[0]
    assert worst(first, (plain.embed(SENTENCES, layers="top")[0] @ matrix.T).max(0)) < 1e-5


def test_the_command_aligns(tmp_path, tiny, matrix, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tiny.save("model")
    torch.save(matrix, "align.pth")
    Path("text.txt").write_text("A bank account\n")
    for name, options in (("plain", []), ("aligned", ["--align", "align.pth"])):
        assert main(["embed", "text.txt", "-o", f"{name}.npz", "--model", "model", "-q", *options]) == 0
    plain, aligned = np.load("plain.npz")["0"], np.load("aligned.npz")["0"]
    assert worst(aligned, plain @ matrix.T) < 1e-5


def test_a_wrong_alignment_is_one_clear_error(tmp_path, tiny, matrix):
    tiny.save(tmp_path / "model")
    path = tmp_path / "align.pth"

    def loading(value: object) -> pyelmo.Embedder:
        torch.save(value, path)
        return pyelmo.load(tmp_path / "model", align=path)

    with pytest.raises(FormatError, match="of another model"):
        loading(matrix[:3, :3])
    with pytest.raises(FormatError, match="NaN"):
        loading(np.full_like(matrix, np.nan))
    with pytest.raises(FormatError, match="expected one tensor|got another object"):
        loading({"matrix": torch.from_numpy(matrix)})
    with pytest.raises(FormatError, match="another object"):
        loading([1.0, 2.0])
    with pytest.raises(UnsafeFileError, match="could run code"):
        loading(Path("/etc/passwd"))
    path.write_bytes(b"damaged")
    with pytest.raises(FormatError, match="align.pth"):
        pyelmo.load(tmp_path / "model", align=path)
    with pytest.raises(NotFoundError):
        pyelmo.load(tmp_path / "model", align=tmp_path / "missing.pth")


def test_what_cannot_be_aligned_says_so(tmp_path, tiny, matrix):
    tiny.save(tmp_path / "model")
    torch.save(matrix, tmp_path / "align.pth")
    model = pyelmo.load(tmp_path / "model", align=tmp_path / "align.pth")
    with pytest.raises(InputError, match="without align"):
        model.elmo()


def test_a_pickle_in_a_zip_is_not_run(tmp_path, tiny):
    class Evil:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return Path.touch, (tmp_path / "run",)  # type: ignore[return-value]

    tiny.save(tmp_path / "model")
    with zipfile.ZipFile(tmp_path / "align.pth", "w") as file:
        file.writestr("archive/data.pkl", pickle.dumps(Evil(), protocol=2))
    with pytest.raises(UnsafeFileError):
        pyelmo.load(tmp_path / "model", align=tmp_path / "align.pth")
    assert not (tmp_path / "run").exists()
