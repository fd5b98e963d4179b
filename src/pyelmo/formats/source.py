"""Finds out what it was given: a folder, a file, a name in the box or a Hub id -> a model."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from pyelmo.errors import FormatError, InputError, NotFoundError, missing_extra
from pyelmo.formats import allennlp, bilm_tf, many_langs, native
from pyelmo.formats.pretrained import Pretrained
from pyelmo.text.vocabulary import Vocabulary

BOX = Path(__file__).parent.parent / "models"
HDF5 = (".hdf5", ".h5")
Written = Literal["pyelmo", "allennlp"]


def names_in_box() -> list[str]:
    """The models that come with the package."""
    return sorted(path.parent.name for path in BOX.glob(f"*/{native.CONFIG}"))


def listed_box() -> str:
    """Those names, for an error."""
    return ", ".join(names_in_box()) or "it is empty"


def read(
    source: str | Path, *, options: str | Path | None = None, vocab: str | Path | Vocabulary | None = None
) -> Pretrained:
    """Read a model. `options` names options.json where it is not beside the weights; `vocab` a list of words."""
    path = locate(source)
    words = vocab if isinstance(vocab, Vocabulary) or vocab is None else Vocabulary.load(_existing(Path(vocab)))
    given = None if options is None else _existing(Path(options))
    if path.is_dir():
        return _read_folder(path, given, words)
    return _read_file(path, given, words)


def write(
    model: Pretrained,
    path: str | Path,
    *,
    format: Written = "pyelmo",
    precision: native.Precision = "float32",
    force: bool = False,
) -> None:
    """Write a model as a folder; a path that ends in .hdf5 gets AllenNLP's weights, and its options beside it."""
    path = Path(path)
    if precision not in ("float32", "int8", "int4"):
        raise InputError(f"cannot write precision {precision!r}; known: float32, int8, int4")
    if precision != "float32" and (format != "pyelmo" or path.suffix in HDF5):
        raise InputError(f"only pyelmo's own format holds {precision} weights")
    if path.suffix in HDF5:
        allennlp.write_files(model, path, path.with_name(f"{path.stem}_options.json"), force=force)
    elif format == "allennlp":
        allennlp.write(model, path, force=force)
    elif format == "pyelmo":
        native.write(model, path, precision=precision, force=force)
    else:
        raise InputError(f"cannot write format {format!r}; known: pyelmo, allennlp")


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise NotFoundError(f"{path}: not found")
    return path


def locate(source: str | Path) -> Path:
    """Where a model lies: a path as it is, the folder of a name in the box, or that of a Hub id once it is here."""
    if not str(source):
        raise InputError("the model's name is empty; give a folder, a file, a name in the box or a Hub id")
    path = Path(source)
    if path.exists() or bilm_prefix(path):
        return path
    name = str(source)
    if name in names_in_box():
        return BOX / name
    if isinstance(source, str) and re.fullmatch(r"[\w.-]+/[\w.-]+", source) and not path.parent.exists():
        return _download(source)
    raise NotFoundError(f"{name}: no such file or folder, and no model of that name in the box ({listed_box()})")


def bilm_prefix(path: Path) -> bool:
    """Whether this is a TensorFlow checkpoint's prefix, which no file bears as its whole name."""
    return path.with_name(path.name + ".index").is_file() if path.name else False


def _download(hub_id: str) -> Path:
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise missing_extra("hub", f"{hub_id}: no such folder here; reading it from the Hub") from None
    try:
        return Path(snapshot_download(hub_id))
    except Exception as error:  # its own errors, those of the network library below it, and OSError
        raise NotFoundError(f"{hub_id}: no such folder here, and the Hub did not give it ({error})") from error


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
        raise FormatError(f"{folder}: {len(weights)} HDF5 files in it; name one: {', '.join(p.name for p in weights)}")
    if checkpoint is not None:
        return bilm_tf.read(checkpoint, options or folder / allennlp.OPTIONS, vocab)
    if (folder / native.CONFIG).is_file():
        return native.read(folder, vocab)  # says what is missing
    raise FormatError(
        f"{folder}: no ELMo model in it. Looked for {native.WEIGHTS}, *.hdf5 with options.json, a TensorFlow "
        f"checkpoint (*.index) and {many_langs.ENCODER}."
    )


def _read_file(path: Path, options: Path | None, vocab: Vocabulary | None) -> Pretrained:
    if bilm_prefix(path) or path.suffix == ".index" or ".data-" in path.name:
        prefix = path if bilm_prefix(path) else path.with_name(re.sub(r"\.(index|data-\d+-of-\d+)$", "", path.name))
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
        f"{path}: not a model file that pyelmo knows. If it is an archive, unpack it and name the folder."
    )


def _options_for(weights: Path) -> Path:
    """options.json beside the weights, or the file of the same stem (`x_weights.hdf5` and `x_options.json`)."""
    stem = re.sub(r"[-_.]?weights$", "", weights.stem)
    for name in (f"{weights.stem}_options.json", f"{stem}_options.json", f"{stem}.json", allennlp.OPTIONS):
        if (weights.parent / name).is_file():
            return weights.parent / name
    others = sorted(weights.parent.glob("*options*.json"))
    if len(others) == 1:
        return others[0]
    raise NotFoundError(f"{weights}: no options.json beside it. Put it there, or name it with options= (--options).")


def _weights_for(options: Path) -> Path:
    for weights in sorted(path for path in options.parent.iterdir() if path.suffix in HDF5):
        try:
            if _options_for(weights) == options:
                return weights
        except NotFoundError:
            continue
    raise NotFoundError(f"{options}: no HDF5 weights beside it. Name the weights, not the options.")
