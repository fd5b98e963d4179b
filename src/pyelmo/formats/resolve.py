"""Find out which format a source has, and read it; write a model in a format of choice.

A source is a folder (of a model, or of a run that trained one), a file, an archive, the address of one of these, the
name of a bundled model or the id of a model on the Hugging Face Hub (`user/name` or `user/name@revision`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pyelmo.errors import FormatError, InputError, NotFoundError
from pyelmo.formats import allennlp, bilm_tf, bundled, hub, many_langs, native, tf_hub
from pyelmo.formats.pretrained import Pretrained, StoredPrecision, StoredWeight
from pyelmo.formats.sources import is_archive, is_url
from pyelmo.text.vocabulary import Vocabulary

HDF5 = (".hdf5", ".h5")
RUN_MODEL = "model"  # folder of the model in the folder of a run
# Endings of files: a source with one of them is never the id of a model on the Hub. An id may have a dot (elmo-v1.0).
FILES = re.compile(
    r".*\.(hdf5?|h5|json|safetensors|index|meta|ckpt|ckpt-\d+|data-\d+-of-\d+|pkl|pickle|pth|pt|pb|bin|onnx|npz|npy|dic"
    r"|vec|txt|md|toml|zip|tgz|tar|gz|bz2|xz|zst|7z|rar|fasta|fa|faa)",
    re.IGNORECASE,
)
WritableFormat = Literal["pyelmo", "allennlp"]


def read(
    source: str | Path,
    *,
    options: str | Path | None = None,
    vocab: str | Path | Vocabulary | None = None,
    align: str | Path | None = None,
) -> Pretrained:
    """Read a model of any format.

    `options` is the path of options.json if that file is not beside the weights; `vocab` is the vocabulary, or a file
    of one word a line; `align` is a matrix of an alignment (`alignment.py`). All may be addresses.
    """
    path = locate(source)
    words = vocab if isinstance(vocab, Vocabulary) or vocab is None else Vocabulary.load(_local_file(vocab))
    options_path = None if options is None else _local_file(options)
    read_it = _read_folder if path.is_dir() else _read_file
    model = read_it(path, options_path, words)
    if is_url(source) or is_archive(Path(source)):
        model.source = str(source)
    if align is not None:
        from pyelmo.formats.alignment import read_alignment

        model.alignment = read_alignment(_local_file(align), model.config.dim)
    return model


def write(
    model: Pretrained,
    path: str | Path,
    *,
    format: WritableFormat = "pyelmo",
    precision: StoredPrecision = "float32",
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


def check_precision(path: Path, format: str, precision: StoredPrecision) -> None:
    """Raise an error if `write` cannot write this precision in this format."""
    if precision not in ("float32", "int8", "int4"):
        raise InputError(f"precision {precision!r} cannot be written; choose float32, int8 or int4")
    if precision != "float32" and (format != "pyelmo" or path.suffix in HDF5):
        raise InputError(f"{precision} weights: only pyelmo's own format stores them; choose that format, or float32")


def _local_file(source: str | Path) -> Path:
    """Return the path of a file that belongs to a model; one with an address is downloaded."""
    if is_url(source):
        from pyelmo.formats.sources.download import fetch

        return fetch(str(source))
    path = Path(source)
    if not path.is_file():
        raise NotFoundError(f"{path}: not found")
    return path


def locate(source: str | Path) -> Path:
    """Return the path of a model; one on the Hub or on a server is downloaded, or taken from the local cache."""
    if not str(source):
        raise InputError("the name of the model is empty; give a folder, a file, a bundled model's name or a Hub id")
    path = _fetch_model(str(source)) if is_url(source) else Path(source)
    if path.exists() or is_checkpoint_prefix(path):
        if is_archive(path):
            from pyelmo.formats.sources.archive import unpack

            try:
                path = unpack(path)
            except FormatError:
                if is_url(source):
                    path.unlink(missing_ok=True)  # the next call downloads it again
                raise
        return path / RUN_MODEL if _is_run(path) else path
    name = str(source)
    names = bundled.bundled_names()
    if name in names:
        return bundled.BUNDLED / name
    if _is_hub_id(source):
        return hub.download(name)
    raise NotFoundError(
        f"{name}: no such file or folder, and no bundled model of that name (bundled: {', '.join(names) or 'none'})"
    )


def _is_hub_id(source: str | Path) -> bool:
    hub_id = hub.split_id(source) if isinstance(source, str) else None
    if hub_id is None:
        return False
    name, revision = hub_id
    return not FILES.fullmatch(name) and (revision is not None or not Path(name).parent.exists())


def _fetch_model(url: str) -> Path:
    """Download the file of an address, and the options or weights that belong to it from beside it."""
    from pyelmo.formats.sources.download import Address, fetch, fetch_first

    path = fetch(url)
    stem = re.sub(r"[-_.]?(weights|options)$", "", path.stem)
    if path.suffix in HDF5:
        fetch_first(Address.parse(url), [f"{stem}_options.json", allennlp.OPTIONS] if stem else [allennlp.OPTIONS])
    elif path.name in (native.WEIGHTS, native.CONFIG):
        # These two come last: with both, all others are here, too, or not on the server.
        if not all((path.parent / name).is_file() for name in (native.WEIGHTS, native.CONFIG)):
            for name in reversed(hub.NATIVE_FILES):
                fetch_first(Address.parse(url), [name])
    elif path.suffix == ".json":
        names = [f"{stem}_weights.hdf5"] if stem else [allennlp.WEIGHTS, "model.hdf5"]
        fetch_first(Address.parse(url), names)
    return path


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
    if (folder / tf_hub.VARIABLES).is_file():
        return tf_hub.read(folder)
    weights = sorted(path for path in folder.iterdir() if path.suffix in HDF5)
    checkpoint = bilm_tf.find_prefix(folder)
    if len(weights) == 1:
        options = options or _options_for(weights[0])
        model = allennlp.read(weights[0], options, vocab)
        return model if checkpoint is None else bilm_tf.add_softmax(model, checkpoint, options, vocab)
    if len(weights) > 1:
        raise FormatError(f"{folder}: holds {len(weights)} HDF5 files; name one: {', '.join(p.name for p in weights)}")
    if checkpoint is not None:
        return bilm_tf.read(checkpoint, options or folder / allennlp.OPTIONS, vocab)
    if (folder / native.CONFIG).is_file():
        return native.read(folder, vocab)  # raises an error that says what is missing
    if (folder / "recipe.json").is_file() or (folder / "all" / "recipe.json").is_file():
        raise NotFoundError(f"{folder}: the training in this folder has not finished. Run its command again first.")
    raise FormatError(
        f"{folder}: holds no ELMo model{_contents(folder)}. Looked for {native.WEIGHTS}, *.hdf5 with options.json, a "
        f"TensorFlow checkpoint (*.index), {tf_hub.VARIABLES.as_posix()} and {many_langs.ENCODER}."
    )


def _contents(folder: Path) -> str:
    """Return the first names in a folder, for an error."""
    names = sorted(entry.name for entry in folder.iterdir() if entry.name[0] != ".")
    return f" (it has {', '.join(names[:5])}{', ...' if len(names) > 5 else ''})" if names else ", it is empty"


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
    if path.name in tf_hub.GRAPHS:
        return _read_folder(path.parent, options, vocab)
    if path.suffix == ".json":
        return allennlp.read(_weights_for(path), path, vocab)
    raise FormatError(
        f"{path}: not a model file that pyelmo can read. Archives are read as .zip and .tar.gz; unpack any other, and "
        "name the folder."
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
