"""safetensors files: damage, alignment, permissions, and files that change while a model lives."""

from __future__ import annotations

import json
import os
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from support import make_embedder

import pyelmo
from pyelmo.errors import FormatError, NotFoundError
from pyelmo.formats import bundled
from pyelmo.formats.tensor_file import TensorFile, read_tensors, write_tensors
from pyelmo.formats.torch_file import read_safetensors, write_safetensors

TENSORS = {
    "floats": torch.arange(6.0).reshape(2, 3),
    "half": torch.ones(3, dtype=torch.float16),
    "brain": torch.tensor([[1.5, -3e38], [0.0, 7e-40]], dtype=torch.bfloat16),
    "empty": torch.ones(2, 0),
    "bytes": torch.arange(5, dtype=torch.uint8),
    "one": torch.tensor(7),
}


def rewritten(path, change) -> None:
    """Write the file again with a changed header."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    text = change(json.loads(data[8 : 8 + length]))
    header = text if isinstance(text, bytes) else (text if isinstance(text, str) else json.dumps(text)).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + data[8 + length :])


def test_tensors_are_read_as_the_library_reads_them(tmp_path):
    write_safetensors(tmp_path / "a", TENSORS, {"note": "한"})
    tensors, theirs = read_safetensors(tmp_path / "a"), load_file(tmp_path / "a")
    assert tensors.keys() == theirs.keys() == TENSORS.keys()
    for name, tensor in tensors.items():
        assert tensor.dtype == theirs[name].dtype
        assert torch.equal(tensor, theirs[name])
    assert TensorFile(tmp_path / "a").metadata == {"note": "한"}


def test_arrays_are_the_same_values_and_bytes_as_tensors(tmp_path):
    write_safetensors(tmp_path / "a", TENSORS, {"note": "한"})
    arrays = read_tensors(tmp_path / "a")
    for name, tensor in TENSORS.items():
        tensor = tensor.float() if tensor.dtype == torch.bfloat16 else tensor  # numpy has no bfloat16
        assert arrays[name].dtype == tensor.numpy().dtype
        np.testing.assert_array_equal(arrays[name], tensor.numpy())
    del arrays["brain"]
    tensors = {name: TENSORS[name] for name in arrays}
    write_tensors(tmp_path / "numpy", arrays, {"note": "한"})
    write_safetensors(tmp_path / "torch", tensors, {"note": "한"})
    assert (tmp_path / "numpy").read_bytes() == (tmp_path / "torch").read_bytes()


def test_nothing_in_a_file_need_be_aligned(tmp_path):
    write_safetensors(tmp_path / "a", TENSORS)
    for spaces in range(1, 8):
        rewritten(tmp_path / "a", lambda header, spaces=spaces: json.dumps(header) + " " * spaces)
        for name, array in read_tensors(tmp_path / "a").items():
            assert array.ctypes.data % 8 == 0
            np.testing.assert_array_equal(array, TENSORS[name].float().numpy())


def test_a_tensor_file_has_the_permissions_of_any_file(tmp_path):
    write_safetensors(tmp_path / "a", TENSORS)
    (tmp_path / "b").touch()
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


def entry(name="floats", **changes):
    return lambda header: {**header, name: {**header[name], **changes}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (entry(shape=[2, 2**62]), "needs"),
        (entry(shape=[2, -3]), "no dtype, shape and position"),
        (entry(shape=3), "no dtype, shape and position"),
        (entry(shape=[1] * 99), "no dtype, shape and position"),
        (entry(dtype="C64"), "has the dtype 'C64'"),
        (entry(dtype=["F32"]), "no dtype, shape and position"),
        (entry(data_offsets=[0, 24, 1]), "no dtype, shape and position"),
        (entry("bytes", data_offsets=[0, 5]), "begins at byte"),
        (entry("one", data_offsets=[2**40, 2**40 + 8]), "begins at byte"),
        (lambda header: {name: header[name] for name in list(header)[:-1]}, "begins at byte|bytes, expected"),
        (lambda header: {**header, "floats": 3}, "no dtype, shape and position"),
        (lambda header: {**header, "__metadata__": {"a": 3}}, "its metadata are not strings"),
        (lambda header: "[1]", "not a JSON object"),
        (lambda header: '{"a": ' * 10_000, "nested too deeply"),
        (lambda header: b'{"\xff": 1}', "can't decode byte"),
    ],
)
def test_a_header_that_lies_is_one_clear_error(change, message, tmp_path):
    write_safetensors(tmp_path / "a", TENSORS)
    rewritten(tmp_path / "a", change)
    with pytest.raises(FormatError, match=f"not a complete safetensors file.*({message})"):
        read_tensors(tmp_path / "a")


def test_a_file_cut_anywhere_is_never_read(tmp_path):
    write_safetensors(tmp_path / "a", TENSORS)
    data = (tmp_path / "a").read_bytes()
    for length in range(len(data)):
        (tmp_path / "a").write_bytes(data[:length])
        with pytest.raises(FormatError, match="not a complete safetensors file"):
            read_tensors(tmp_path / "a")
    with pytest.raises(NotFoundError):
        read_tensors(tmp_path / "b")


@pytest.mark.parametrize("change", ["copied over", "truncated", "replaced", "removed"])
def test_an_embedder_never_mixes_two_models(change, tmp_path):
    shutil.copytree(bundled.BUNDLED / "en", tmp_path / "en")
    path = tmp_path / "en" / "model.safetensors"
    model = pyelmo.load(tmp_path / "en", threads=1)
    expected = model.embed(["A bank account."])[0]
    if change == "truncated":
        os.truncate(path, 5000)
    elif change == "removed":
        path.unlink()
    else:
        data = bytearray(path.read_bytes())
        data[-1000:] = bytes(1000)
        target = path if change == "copied over" else tmp_path / "new"
        with open(target, "r+b" if change == "copied over" else "wb") as file:
            file.write(data)
        os.replace(target, path)
    np.testing.assert_array_equal(model.embed(["A bank account."])[0], expected)
    with pytest.raises(FormatError, match="was changed or replaced after it was opened.*Load it again"):
        model.predict("the ___ of")


def test_a_weight_that_is_no_weight_is_refused(tmp_path):
    make_embedder().save(tmp_path / "m")
    path = tmp_path / "m" / "model.safetensors"
    tensors = load_file(path)
    for name, bad, message in (
        ("projection.bias", torch.ones(8, dtype=torch.int64), "is int64, expected float, int8 or int4"),
        ("projection.bias", torch.ones(8, dtype=torch.int8), "which a weight of shape"),
        ("projection.bias", torch.tensor(8, dtype=torch.uint8), "which a weight of shape"),
        ("projection.bias.scale", torch.ones(8), "has no int8 or int4 weight to scale"),
    ):
        save_file({**tensors, name: bad}, path)
        with pytest.raises(FormatError, match=message):
            pyelmo.load(tmp_path / "m")
