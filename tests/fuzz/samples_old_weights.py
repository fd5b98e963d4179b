"""Models as they were published: archives, modules of TensorFlow Hub, folders of NLPL, alignments; and proteins."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from fuzz.formats import Command, Format
from fuzz.samples_models import GOLDEN, _copy, _forge_bundle, _write_vocabulary

NLPL = "bilm_chars_skip"
ARCHIVES = {"zip": "model.zip", "gztar": "model.tar.gz"}


def _use_cache(folder: Path) -> None:
    """Unpack archives where the audit hook allows to write, and forget those of earlier trials."""
    cache = folder.parent / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    os.environ["PYELMO_CACHE"] = str(cache)


def _make_archives(folder: Path, shared: Path) -> None:
    folder.mkdir()
    for kind in ARCHIVES:
        (folder / kind).mkdir()
        shutil.make_archive(str(folder / kind / "model"), kind, shared / "LM")


def _archive(folder: Path) -> Path:
    return folder / ARCHIVES[folder.name]


def _embed(source: Path, **options: Path) -> None:
    import pyelmo

    pyelmo.load(source, **options).embed([["The", "bank"], []])


def _read_archive(folder: Path) -> None:
    _use_cache(folder)
    _embed(_archive(folder))


def _archive_commands(folder: Path, shared: Path) -> list[Command]:
    _use_cache(folder)
    return _commands(_archive(folder), shared)


def _commands(model: Path, shared: Path) -> list[Command]:
    output = f"{model.parent / model.name.partition('.')[0]}.npz"
    embed = ["embed", str(shared / "text.txt"), "-o", output, "--model", str(model), "--quiet"]
    return [["inspect", str(model)], embed]


def _make_module(folder: Path, shared: Path) -> None:
    import torch
    from support import make_embedder
    from tensorflow_support import MODULE, write_module

    torch.manual_seed(0)
    folder.mkdir()
    weights = folder.parent / "module-weights.hdf5"
    make_embedder(MODULE).save(weights)
    write_module(folder / "module", weights)


def _make_nlpl(folder: Path, shared: Path) -> None:
    _copy(
        folder / NLPL, GOLDEN / "bilm-tf-training" / NLPL, "model.ckpt*", "checkpoint", "options.json", "weights.hdf5"
    )
    _write_vocabulary(folder / NLPL)


def _read_nlpl(folder: Path) -> None:
    import pyelmo

    model = pyelmo.load(folder)
    model.embed([["The", "bank"]])
    if model.config.softmax:
        model.score("w1 w2")


def _make_alignment(folder: Path, shared: Path) -> None:
    import numpy as np
    import torch
    from support import TINY

    matrix = np.eye(TINY.dim, dtype=np.float32)
    for name, value, new in (
        ("array", matrix, False),
        ("zip", matrix, True),
        ("tensor", torch.from_numpy(matrix), True),
    ):
        (folder / name).mkdir(parents=True)
        torch.save(value, folder / name / "align.pth", _use_new_zipfile_serialization=new)


def _read_alignment(folder: Path) -> None:
    from support import TINY

    from pyelmo.formats.alignment import read_alignment

    read_alignment(folder / "align.pth", TINY.dim)


def _alignment_commands(folder: Path, shared: Path) -> list[Command]:
    embed = ["embed", str(shared / "text.txt"), "-o", f"{folder}.npz", "--model", str(shared / "LM"), "--quiet"]
    return [[*embed, "--align", str(folder / "align.pth")]]


def _make_proteins(folder: Path, shared: Path) -> None:
    (folder / "proteins").mkdir(parents=True)
    text = "; comment\n>P69905 Hemoglobin\nMVLSPADKTN\nVKAAW\n\n>Q1/5-8\nM-K.V*\n>empty\n"
    (folder / "proteins" / "proteins.fasta").write_text(text, "utf-8")


def _read_proteins(folder: Path) -> None:
    import pyelmo

    list(pyelmo.read_fasta(folder / "proteins.fasta"))


def _protein_commands(folder: Path, shared: Path) -> list[Command]:
    embed = ["embed", str(folder / "proteins.fasta"), "--model", str(shared / "LM"), "--quiet"]
    return [[*embed, "-o", f"{folder}.hdf5", "--pooling", "mean"], [*embed, "-o", f"{folder}.npz"]]


FORMATS = (
    Format("archive", _make_archives, _read_archive, _archive_commands),
    Format("tf-hub", _make_module, _embed, _commands, forge=lambda folder: _forge_bundle(folder / "variables")),
    Format("nlpl", _make_nlpl, _read_nlpl, _commands, forge=_forge_bundle),
    Format("alignment", _make_alignment, _read_alignment, _alignment_commands),
    Format("fasta", _make_proteins, _read_proteins, _protein_commands),
)
