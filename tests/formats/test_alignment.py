"""align.pth of AllenNLP's multilingual models: every vector is multiplied, and nothing in the file is run."""

from __future__ import annotations

import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from support import TINY, worst

import pyelmo
from pyelmo.cli import main
from pyelmo.errors import FormatError, InputError, NotFoundError, UnsafeFileError

SENTENCES = [["A", "bank", "account"], ["Yes"]]


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
