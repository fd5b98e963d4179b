"""Find out which format a source has, and read it; write a model in a format of choice.

A source is a folder (of a model, or of a run that trained one), a file, the name of a bundled model or the id of a
model on the Hugging Face Hub (`user/name` or `user/name@revision`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pyelmo.errors import FormatError, InputError, NotFoundError
from pyelmo.formats import allennlp, bilm_tf, bundled, hub, many_langs, native
from pyelmo.formats.pretrained import Pretrained, StoredWeight
from pyelmo.text.vocabulary import Vocabulary

HDF5 = (".hdf5", ".h5")
RUN_MODEL = "model"  # folder of the model in the folder of a run
WritableFormat = Literal["pyelmo", "allennlp"]


def read(
    source: str | Path, *, options: str | Path | None = None, vocab: str | Path | Vocabulary | None = None
) -> Pretrained:
    """Read a model of any format.

    `options` is the path of options.json if that file is not beside the weights; `vocab` is the vocabulary, or a file
    of one word a line.
    """
    path = locate(source)
    words = vocab if isinstance(vocab, Vocabulary) or vocab is None else Vocabulary.load(_existing(Path(vocab)))
    options_path = None if options is None else _existing(Path(options))
    if path.is_dir():
        return _read_folder(path, options_path, words)
    return _read_file(path, options_path, words)


def write(
    model: Pretrained,
    path: str | Path,
    *,
    format: WritableFormat = "pyelmo",
    precision: native.StoredPrecision = "float32",
    rounded: Mapping[str, StoredWeight] | None = None,
    force: bool = False,
) -> None:
    """Write a model as a folder; if the path ends in .hdf5, as AllenNLP's weights with the options beside them.

    `rounded` has weights that an int4 file gets in place of the model's (see `pyelmo.training.calibration`).
    """
    path = Path(path)
    check_precision(path, format, precision)
    if path.suffix == ".onnx":
        raise InputError(f"{path}: an ONNX file is written by elmo convert, or by pyelmo.integrations.onnx.write")
    if path.suffix in HDF5:
        allennlp.write_files(model, path, path.with_name(f"{path.stem}_options.json"), force=force)
    elif format == "allennlp":
        allennlp.write(model, path, force=force)
    elif format == "pyelmo":
        native.write(model, path, precision=precision, rounded=rounded, force=force)
    else:
        raise InputError(f"format {format!r} cannot be written; choose pyelmo or allennlp")


def check_precision(path: Path, format: str, precision: native.StoredPrecision) -> None:
    """Raise an error if `write` cannot write this precision in this format."""
    if precision not in ("float32", "int8", "int4"):
        raise InputError(f"precision {precision!r} cannot be written; choose float32, int8 or int4")
    if precision != "float32" and (format != "pyelmo" or path.suffix in HDF5):
        raise InputError(f"{precision} weights: only pyelmo's own format stores them; choose that format, or float32")


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise NotFoundError(f"{path}: not found")
    return path


def locate(source: str | Path) -> Path:
    """Return the path of a model; a model on the Hub is downloaded, or taken from the local cache."""
    if not str(source):
        raise InputError("the name of the model is empty; give a folder, a file, a bundled model's name or a Hub id")
    path = Path(source)
    if path.exists() or is_checkpoint_prefix(path):
        return path / RUN_MODEL if _is_run(path) else path
    name = str(source)
    names = bundled.bundled_names()
    if name in names:
        return bundled.BUNDLED / name
    hub_id = hub.split_id(source) if isinstance(source, str) else None
    if hub_id is not None and (hub_id[1] is not None or not path.parent.exists()):
        return hub.download(name)
    raise NotFoundError(
        f"{name}: no such file or folder, and no bundled model of that name (bundled: {', '.join(names) or 'none'})"
    )


def _is_run(path: Path) -> bool:
    """Return whether a folder is a run of `elmo pretrain` or `elmo finetune`, which has its model in a folder."""
    return not (path / native.CONFIG).exists() and (path / RUN_MODEL / native.CONFIG).is_file()


def is_checkpoint_prefix(path: Path) -> bool:
    """Return whether `path` is the common prefix of a TensorFlow checkpoint's files, which is itself no file."""
    return path.with_name(path.name + ".index").is_file() if path.name else False


def _read_folder(folder: Path, options: Path | None, vocab: Vocabulary | None) -> Pretrained:
    if (folder / native.CONFIG).is_file() and (folder / native.WEIGHTS).is_file():
        return native.read(folder, vocab)
    if (folder / many_langs.ENCODER).is_file() or (folder / many_langs.TOKENS).is_file():
        return many_langs.read(folder)
    weights = sorted(path for path in folder.iterdir() if path.suffix in HDF5)
    checkpoint = bilm_tf.find_prefix(folder)
    if len(weights) == 1:
        return allennlp.read(weights[0], options or _options_for(weights[0]), vocab)
    if len(weights) > 1:
        raise FormatError(f"{folder}: holds {len(weights)} HDF5 files; name one: {', '.join(p.name for p in weights)}")
    if checkpoint is not None:
        return bilm_tf.read(checkpoint, options or folder / allennlp.OPTIONS, vocab)
    if (folder / native.CONFIG).is_file():
        return native.read(folder, vocab)  # raises an error that says what is missing
    if (folder / "recipe.json").is_file() or (folder / "all" / "recipe.json").is_file():
        raise NotFoundError(f"{folder}: the training in this folder has not finished. Run its command again first.")
    raise FormatError(
        f"{folder}: holds no ELMo model. Looked for {native.WEIGHTS}, *.hdf5 with options.json, a TensorFlow "
        f"checkpoint (*.index) and {many_langs.ENCODER}."
    )


def _read_file(path: Path, options: Path | None, vocab: Vocabulary | None) -> Pretrained:
    if is_checkpoint_prefix(path) or path.suffix == ".index" or ".data-" in path.name:
        prefix = (
            path if is_checkpoint_prefix(path) else path.with_name(re.sub(r"\.(index|data-\d+-of-\d+)$", "", path.name))
        )
        return bilm_tf.read(prefix, options or prefix.parent / allennlp.OPTIONS, vocab)
    if path.suffix in HDF5:
        return allennlp.read(path, options or _options_for(path), vocab)
    if path.suffix == ".safetensors" or path.name == native.CONFIG:
        return _read_folder(path.parent, options, vocab)
    if path.name in (many_langs.ENCODER, many_langs.TOKENS):
        return many_langs.read(path.parent)
    if path.suffix == ".json":
        return allennlp.read(_weights_for(path), path, vocab)
    raise FormatError(
        f"{path}: not a model file that pyelmo can read. If it is an archive, unpack it and name the folder."
    )


def _options_for(weights: Path) -> Path:
    """Return the options file beside the weights: options.json, or the same stem (x_weights.hdf5, x_options.json)."""
    stem = re.sub(r"[-_.]?weights$", "", weights.stem)
    for name in (f"{weights.stem}_options.json", f"{stem}_options.json", f"{stem}.json", allennlp.OPTIONS):
        if (weights.parent / name).is_file():
            return weights.parent / name
    others = sorted(weights.parent.glob("*options*.json"))
    if len(others) == 1:
        return others[0]
    raise NotFoundError(
        f"{weights}: no options.json beside it. Copy it there, or give its path as options= (--options)."
    )


def _weights_for(options: Path) -> Path:
    for weights in sorted(path for path in options.parent.iterdir() if path.suffix in HDF5):
        try:
            if _options_for(weights) == options:
                return weights
        except NotFoundError:
            continue
    raise NotFoundError(f"{options}: no HDF5 weights beside it. Name the weights, not the options.")
