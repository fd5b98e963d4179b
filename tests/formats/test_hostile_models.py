"""Model files that were made to do harm: to read elsewhere, to take all memory, or to fail in a foreign way."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import zipfile
from dataclasses import replace

import h5py
import numpy as np
import pytest
import torch
from support import GOLDEN, TINY, make_embedder

import pyelmo
from pyelmo.cli import main
from pyelmo.errors import FormatError, NotFoundError

MANY = GOLDEN / "many-langs" / "model"


@pytest.fixture
def model(tmp_path, clip_model):
    """A copy of a model that a test may damage."""
    shutil.copytree(clip_model, tmp_path / "model")
    return tmp_path / "model"


def edit_options(model, change) -> None:
    options = json.loads((model / "options.json").read_text())
    change(options)
    (model / "options.json").write_text(json.dumps(options))


def edit_json(path, **changes) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def external(model) -> None:
    """The weights of the projection are read from a file of the user."""
    secret = model.parent / "secret"
    with h5py.File(model / "weights.hdf5", "a") as file:
        shape = file["CNN_proj/b_proj"].shape
        secret.write_bytes(bytes(4 * shape[0]))
        del file["CNN_proj/b_proj"]
        file.create_dataset("CNN_proj/b_proj", shape, np.float32, external=[(str(secret), 0, 4 * shape[0])])


def linked(model, link) -> None:
    with h5py.File(model / "weights.hdf5", "a") as file:
        file["other"] = link


def virtual(model) -> None:
    with h5py.File(model / "weights.hdf5", "a") as file:
        layout = h5py.VirtualLayout((3,), np.float32)
        layout[:] = h5py.VirtualSource("elsewhere.hdf5", "x", (3,))
        file.create_virtual_dataset("other", layout)


def filtered(model) -> None:
    """A data set whose filter HDF5 would look for in a folder of programs."""
    with h5py.File(model / "weights.hdf5", "a") as file:
        settings = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        settings.set_chunk((3,))
        settings.set_filter(32015, h5py.h5z.FLAG_OPTIONAL, ())
        h5py.h5d.create(file.id, b"other", h5py.h5t.NATIVE_FLOAT, h5py.h5s.create_simple((3,)), settings)


def loop(model) -> None:
    with h5py.File(model / "weights.hdf5", "a") as file:
        file["CNN/again"] = file["CNN"]


def resize(model, name, shape, dtype=np.float32) -> None:
    """Replace a data set by one that claims a shape, without data."""
    with h5py.File(model / "weights.hdf5", "a") as file:
        del file[name]
        file.create_dataset(name, shape, dtype, chunks=tuple(min(size, 64) for size in shape))


def claim(model) -> None:
    """Data sets of gigabytes without data, in a file of some kilobytes."""
    for name, shape in (("softmax/W", (10**8, 16)), ("softmax/b", (10**8,))):
        with h5py.File(model / "weights.hdf5", "a") as file:
            file.create_dataset(name, shape, np.float32, chunks=(16,) * len(shape))


def bad_name(model) -> None:
    with h5py.File(model / "weights.hdf5", "a") as file:
        h5py.h5g.create(file.id, b"\xff\xfe")


ALLENNLP = {
    "external storage": (external, "the data of '/CNN_proj/b_proj' are in another file"),
    "an external link": (lambda m: linked(m, h5py.ExternalLink("x.hdf5", "/x")), "'other' is a link, perhaps to another"),
    "a soft link": (lambda m: linked(m, h5py.SoftLink("/CNN")), "'other' is a link, perhaps to another"),
    "a virtual data set": (virtual, "the data of '/other' are in another file"),
    "a filter of others": (filtered, "needs the HDF5 filter 32015"),
    "a group inside itself": (loop, "levels of groups"),
    "claims without data": (claim, "but its arrays claim"),
    "a name that is not UTF-8": (bad_name, "not a complete HDF5 file|is not a weight|missing"),
    "filters with a first axis": (lambda m: resize(m, "CNN/W_cnn_0", (2, 1, 4, 32)), r"W_cnn_0' is \(2, 1, 4, 32\), expected \(1, "),
    "integers": (lambda m: resize(m, "CNN_proj/b_proj", (16,), np.int32), "'CNN_proj/b_proj' is missing"),
    "10^9 filters": (lambda m: edit_options(m, lambda o: o["char_cnn"]["filters"][0].__setitem__(1, 10**9)), "filters of width 1 is 1000000000; it must be"),
    "10^5 layers": (lambda m: edit_options(m, lambda o: o["lstm"].update(n_layers=10**5)), "layers is 100000; it must be 1 to 100"),
    "10^5 highways": (lambda m: edit_options(m, lambda o: o["char_cnn"].update(n_highway=10**5)), "highways is 100000; it must be 0 to 100"),
    "10^8 characters": (lambda m: edit_options(m, lambda o: o["char_cnn"].update(max_characters_per_token=10**8)), "max_length is 100000000; it must be 3 to 1,000"),
    "10^6 filter widths": (lambda m: edit_options(m, lambda o: o["char_cnn"].update(filters=[[1, 1]] * 10**6)), "number of filter widths is 1000000"),
    "a size over 2^63": (lambda m: edit_options(m, lambda o: o["lstm"].update(dim=2**63)), "does not fit into 64 bits"),
    "5000 digits": (lambda m: (m / "options.json").write_text('{"lstm": {"dim": ' + "9" * 5000 + "}}"), "5000 digits does not fit"),
    "Infinity": (lambda m: (m / "options.json").write_text('{"lstm": {"cell_clip": Infinity}}'), "Infinity is not a number"),
    "deep nesting": (lambda m: (m / "options.json").write_text("[" * 10**5), "nested too deeply"),
    "lstm is a number": (lambda m: edit_options(m, lambda o: o.update(lstm=5)), "not options of an ELMo model"),
    "char_cnn is a number": (lambda m: edit_options(m, lambda o: o.update(char_cnn=5)), "not options of an ELMo model"),
    "filters is a number": (lambda m: edit_options(m, lambda o: o["char_cnn"].update(filters=5)), "not options of an ELMo model"),
    "clip is NaN": (lambda m: edit_options(m, lambda o: o["lstm"].update(cell_clip="nan")), "cell_clip nan must be positive and finite"),
    "clip is a list": (lambda m: edit_options(m, lambda o: o["lstm"].update(cell_clip=[3])), "not options of an ELMo model"),
}  # fmt: skip


@pytest.mark.parametrize("case", ALLENNLP)
def test_hostile_hdf5_files_and_options_are_one_clear_error(model, case, capsys):
    harm, message = ALLENNLP[case]
    harm(model)
    with pytest.raises(FormatError, match=message) as error:
        pyelmo.load(model)
    assert str(model) in str(error.value)
    assert main(["inspect", str(model)]) == 1
    assert "internal error" not in capsys.readouterr().err


NATIVE = {
    "marks are a number": (lambda m: edit_json(m / "config.json", marks=3), "'marks' must be strings named begin, end"),
    "marks of other names": (lambda m: edit_json(m / "config.json", marks={"start": "x"}), "'marks' must be strings"),
    "a mark is a number": (lambda m: edit_json(m / "config.json", marks={"begin": 3}), "'marks' must be strings"),
    "the model is a number": (lambda m: edit_json(m / "config.json", model=3), "expected a table of settings, got 3"),
    "many highways": (lambda m: edit_json(m / "config.json", model={"chars": {"highways": 10**5}}), "highways is 100000"),
    "forget_bias is NaN": (lambda m: (m / "config.json").write_text('{"forget_bias": NaN}'), "NaN is not a number of JSON"),
    "a pipe": (lambda m: (os.remove(m / "config.json"), os.mkfifo(m / "config.json")), "holds no ELMo model"),
    "a pipe of weights": (lambda m: (os.remove(m / "model.safetensors"), os.mkfifo(m / "model.safetensors")), "model.safetensors: not found"),
}  # fmt: skip


@pytest.mark.parametrize("case", NATIVE)
def test_hostile_configs_are_one_clear_error(model, tmp_path, case):
    pyelmo.load(model).save(tmp_path / "native")
    harm, message = NATIVE[case]
    harm(tmp_path / "native")
    with pytest.raises((FormatError, NotFoundError), match=message):
        pyelmo.load(tmp_path / "native")


@pytest.mark.parametrize("size", [2, 4])
def test_a_vocabulary_that_is_not_as_large_as_the_softmax_is_refused(tmp_path, size):
    make_embedder(replace(TINY, softmax=3)).save(tmp_path / "m")
    (tmp_path / "m" / "vocab.txt").write_text("<S>\n</S>\n<UNK>\na\n")
    edit_json(tmp_path / "m" / "config.json", marks={"unknown": "</S>"} if size == 2 else None)
    if size == 2:
        (tmp_path / "m" / "vocab.txt").write_text("<S>\n</S>\n")
    with pytest.raises(FormatError, match=f"{size} words, the model has 3"):
        pyelmo.load(tmp_path / "m")


def save(model, change) -> None:
    """Write the encoder again with one tensor changed."""
    tensors = torch.load(model / "encoder.pkl")
    name = "forward_layer_0.input_linearity.weight"
    torch.save({**tensors, name: change(tensors[name])}, model / "encoder.pkl")


def grow(path) -> None:
    """Claim a larger shape for a tensor than its storage has; torch makes the storage larger, without values."""
    with zipfile.ZipFile(path) as archive:
        parts = {entry.filename: archive.read(entry) for entry in archive.infolist()}
    name = next(name for name in parts if name.endswith("data.pkl"))
    with zipfile.ZipFile(path, "w") as archive:
        for part, data in parts.items():
            archive.writestr(
                part, data.replace(b"M\x00\x01K\x10\x86", b"M\x00\xffK\x10\x86", 1) if part == name else data
            )


def compress(path) -> None:
    with zipfile.ZipFile(path) as archive:
        parts = {entry.filename: archive.read(entry) for entry in archive.infolist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for part, data in parts.items():
            archive.writestr(part, data)


class ObjectArray:
    """Pickled as numpy's function that builds arrays."""

    def __reduce__(self):
        return np.array([1]).__reduce__()[0], (np.ndarray, (0,), b"b")


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda m: edit_json(m / "cnn_50_100_512_4096_sample.json", encoder=5), "settings of the encoder are '5'"),
        (lambda m: edit_json(m / "cnn_50_100_512_4096_sample.json", encoder={"cell_clip": "x"}), "not those of an ELMo"),
        (lambda m: edit_json(m / "cnn_50_100_512_4096_sample.json", token_embedder={"max_characters_per_token": 10**8}), "max_length is 100000000"),
        (lambda m: save(m, lambda t: t.to_sparse()), "_rebuild_sparse_tensor.*not weights of a model"),
        (lambda m: save(m, lambda t: t.to("meta")), "_rebuild_meta_tensor_no_storage.*not weights of a model"),
        (lambda m: save(m, lambda t: torch.quantize_per_tensor(t, 0.1, 0, torch.qint8)), "_rebuild_qtensor.*not weights of a model"),
        (lambda m: save(m, lambda t: torch.ones(1, 1).expand(t.shape)), "but not as many values"),
        (lambda m: save(m, lambda t: t.to(torch.complex64)), "ComplexFloatStorage.*not weights of a model"),
        (lambda m: torch.save({3: torch.ones(3)}, m / "encoder.pkl"), "got the name '3'"),
        (lambda m: grow(m / "encoder.pkl"), "but its tensors have|not a complete torch file"),
        (lambda m: compress(m / "encoder.pkl"), "its parts are compressed"),
        (lambda m: (os.remove(m / "encoder.pkl"), os.mkfifo(m / "encoder.pkl")), "encoder.pkl: is a pipe"),
        (lambda m: (m / "encoder.pkl").write_bytes(pickle.dumps(ObjectArray(), 2)), "could run code|not a complete torch"),
    ],
)  # fmt: skip
def test_hostile_torch_files_and_settings_are_one_clear_error(tmp_path, harm, message):
    shutil.copytree(MANY, tmp_path / "model")
    harm(tmp_path / "model")
    with pytest.raises((FormatError, NotFoundError), match=message):
        pyelmo.load(tmp_path / "model")
