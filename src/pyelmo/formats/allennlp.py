"""Read and write AllenNLP's (and bilm-tf's) options.json and HDF5 weights through one table of names.

C cells, P projection, E symbol embedding, F features, D input of a layer (= P).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pyelmo.arrays import Float32Array
from pyelmo.config import CharConfig, LstmConfig, ModelConfig, WordConfig, weight_shapes
from pyelmo.errors import ConfigError, FormatError
from pyelmo.files import atomic_path, check_output, check_replaceable, write_text
from pyelmo.formats.pretrained import (
    MODEL_FILES,
    Pretrained,
    Weights,
    build,
    find_vocabulary,
    floats,
    mismatch,
)
from pyelmo.hdf5 import check_claims, create_hdf5, read_hdf5
from pyelmo.parsing import read_json
from pyelmo.text.characters import BYTE_SYMBOLS, Bytes
from pyelmo.text.lexicon import Lexicon
from pyelmo.text.vocabulary import Vocabulary

WEIGHTS, OPTIONS = "weights.hdf5", "options.json"
Shape = tuple[int, ...]
LIMIT = "this model cannot be written in AllenNLP's format (choose pyelmo's own)"


@dataclass(frozen=True)
class Link:
    """One array of the file, the parameters of ours that it contains, and how to convert in both ways.

    With `direction`, the array is that direction's slice of each parameter. `shape` returns the shape of the array for
    those of the parameters.
    """

    theirs: str
    ours: tuple[str, ...]
    read: Callable[[Float32Array], tuple[Float32Array, ...]]
    write: Callable[..., Float32Array]
    shape: Callable[..., Shape]
    direction: int | None = None


@dataclass(frozen=True)
class Naming:
    """The names of the LSTM's arrays in a kind of file; `cell` has the fields {direction} and {layer}."""

    root: str
    cell: str
    kernel: str
    bias: str
    projection: str


_HDF5 = ("W_0", "B", "W_P_0")
_TENSORFLOW = ("kernel", "bias", "projection/kernel")
# They are tried in this order: two directions before forward only; several layers before bilm-tf's single cell.
NAMINGS = (
    Naming("", "RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell", *_HDF5),
    Naming("", "RNN_{direction}/RNN/LSTMCell", *_HDF5),
    Naming("", "rnn/MultiRNNCell/Cell{layer}/LSTMCell", *_TENSORFLOW),
    Naming("", "rnn/LSTMCell", *_TENSORFLOW),
    Naming("lm/", "RNN_{direction}/rnn/multi_rnn_cell/cell_{layer}/lstm_cell", *_TENSORFLOW),
    Naming("lm/", "RNN_{direction}/rnn/lstm_cell", *_TENSORFLOW),
    Naming("lm/", "rnn/multi_rnn_cell/cell_{layer}/lstm_cell", *_TENSORFLOW),
    Naming("lm/", "rnn/lstm_cell", *_TENSORFLOW),
)
WRITTEN = {True: NAMINGS[0], False: NAMINGS[2]}


def find_naming(names: Collection[str], where: str | Path) -> Naming:
    for naming in NAMINGS:
        if naming.root + naming.cell.format(direction=0, layer=0) + "/" + naming.kernel in names:
            return naming
    raise FormatError(
        f"{where}: has no LSTM weights of an ELMo model (first arrays: {', '.join(sorted(names)[:5]) or 'none'}). "
        "Is it another kind of model?"
    )


def links(config: ModelConfig, naming: Naming) -> list[Link]:
    """Return the table of names: one link for each array in the file of a model with this config."""
    table: list[Link] = []
    if config.chars:
        table.append(
            Link("char_embed", ("chars.embedding.weight",), _add_padding_row, _drop_padding_row, _one_row_less)
        )
        for index in range(len(config.chars.filters)):
            bank = f"chars.convolutions.{index}"
            table.append(Link(f"CNN/W_cnn_{index}", (f"{bank}.weight",), _read_filter, _write_filter, _filter_shape))
            table.append(_same(f"CNN/b_cnn_{index}", f"{bank}.bias"))
        for index in range(config.chars.highways):
            for name, part in (("carry", "gate"), ("transform", "transform")):
                table.append(_transposed(f"CNN_high_{index}/W_{name}", f"chars.highways.{index}.{part}.weight"))
                table.append(_same(f"CNN_high_{index}/b_{name}", f"chars.highways.{index}.{part}.bias"))
    if config.words:
        table.append(_same("embedding", "words.weight"))
    if config.project:
        table.append(_transposed("CNN_proj/W_proj", "projection.weight"))
        table.append(_same("CNN_proj/b_proj", "projection.bias"))
    for direction in range(config.directions):
        for layer in range(config.lstm.layers):
            table += _cell_links(config, naming, direction, layer)
    if config.softmax:
        if not config.softmax_shares_words:
            table.append(_same("softmax/W", "softmax.weight"))
        table.append(_same("softmax/b", "softmax.bias"))
    return [replace(link, theirs=naming.root + link.theirs) for link in table]


def _cell_links(config: ModelConfig, naming: Naming, direction: int, layer: int) -> list[Link]:
    cell, ours = naming.cell.format(direction=direction, layer=layer), f"lstm.layers.{layer}"
    size = config.lstm.dim

    def read_kernel(kernel: Float32Array) -> tuple[Float32Array, Float32Array]:  # (D + P, 4C) -> (4C, D), (4C, P)
        weights = _swap_gates(kernel.T)
        return weights[:, :-size], weights[:, -size:]

    def write_kernel(inputs: Float32Array, recurrent: Float32Array) -> Float32Array:
        return _swap_gates(np.concatenate([inputs, recurrent], axis=1)).T

    def kernel_shape(inputs: Shape, recurrent: Shape) -> Shape:
        return inputs[1] + recurrent[1], inputs[0]

    def read_bias(bias: Float32Array) -> tuple[Float32Array]:
        return (_swap_gates(bias),)

    table = [
        Link(
            f"{cell}/{naming.kernel}",
            (f"{ours}.input", f"{ours}.recurrent"),
            read_kernel,
            write_kernel,
            kernel_shape,
            direction,
        ),
        Link(f"{cell}/{naming.bias}", (f"{ours}.bias",), read_bias, _swap_gates, lambda bias: bias, direction),
    ]
    if config.lstm.projection is not None:
        table.append(replace(_transposed(f"{cell}/{naming.projection}", f"{ours}.projection"), direction=direction))
    return table


def _same(theirs: str, ours: str) -> Link:
    return Link(theirs, (ours,), lambda array: (array,), lambda array: array, lambda shape: shape)


def _transposed(theirs: str, ours: str) -> Link:  # TensorFlow multiplies by matrices from the right
    return Link(theirs, (ours,), lambda array: (array.T,), lambda array: array.T, lambda shape: shape[::-1])


def _swap_gates(array: Float32Array) -> Float32Array:
    """Exchange (input, candidate, forget, output) and (input, forget, candidate, output) along the first axis."""
    first, second, third, fourth = np.split(array, 4)
    return np.concatenate([first, third, second, fourth])


def _add_padding_row(table: Float32Array) -> tuple[Float32Array]:
    return (np.concatenate([np.zeros_like(table[:1]), table]),)


def _drop_padding_row(table: Float32Array) -> Float32Array:
    return table[1:]


def _one_row_less(shape: Shape) -> Shape:
    return shape[0] - 1, shape[1]


def _filter_shape(shape: Shape) -> Shape:  # (n, E, width) -> (1, width, E, n)
    return 1, *shape[::-1]


def _read_filter(array: Float32Array) -> tuple[Float32Array]:  # (1, width, E, n) -> (n, E, width)
    return (array[0].transpose(2, 1, 0),)


def _write_filter(array: Float32Array) -> Float32Array:
    return array.transpose(2, 1, 0)[None]


def read_options(path: Path, names: Collection[str], shapes: Mapping[str, tuple[int, ...]]) -> ModelConfig:
    """Return the config that options.json describes; what is not in that file is taken from the weights."""
    options = read_json(path)
    naming = find_naming(names, path.parent)
    try:
        lstm, chars = options["lstm"], options.get("char_cnn")
        cells, size = int(lstm["dim"]), int(lstm["projection_dim"])
        if size > cells:
            raise FormatError(
                f"{path}: projection_dim {size} is larger than dim {cells}, which no ELMo program supports"
            )
        softmax = shapes.get(f"{naming.root}softmax/b")
        shares = softmax is not None and f"{naming.root}softmax/W" not in names
        table = None if chars else shapes.get(f"{naming.root}embedding", (int(options.get("n_tokens_vocab", 0)), size))
        return ModelConfig(
            chars=None if not chars else CharConfig(
                symbols=BYTE_SYMBOLS,
                max_length=int(chars.get("max_characters_per_token", 50)),
                dim=int(chars["embedding"]["dim"]),
                filters=tuple((int(width), int(count)) for width, count in chars["filters"]),
                highways=int(chars.get("n_highway") or 0),
                activation=chars.get("activation", "relu"),
            ),
            words=WordConfig(size=table[0], dim=table[1]) if table else None,
            # bilm-tf leaves the projection out if the sizes are equal; AllenNLP never does.
            project=f"{naming.root}CNN_proj/W_proj" in names,
            lstm=LstmConfig(
                cells=cells,
                projection=size if size < cells else None,
                layers=int(lstm.get("n_layers", 1)),
                cell_clip=_clip(lstm.get("cell_clip")),
                projection_clip=_clip(lstm.get("proj_clip")),
                skip=bool(lstm.get("use_skip_connections", False)),
            ),
            bidirectional="{direction}" in naming.cell,
            softmax=softmax[0] if softmax else None,
            softmax_shares_words=shares,
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        if isinstance(error, FormatError):
            raise
        reason = str(error) if isinstance(error, ConfigError) else f"{type(error).__name__}: {error}"
        raise FormatError(f"{path}: not options of an ELMo model that fit the weights ({reason})") from error


def _clip(value: Any) -> float | None:
    return float(value) if value else None


def write_options(config: ModelConfig) -> dict[str, Any]:
    """Return the content of options.json for a config; `read_options` reads it back."""
    options: dict[str, Any] = {
        "bidirectional": config.bidirectional,
        "lstm": {
            "dim": config.lstm.cells,
            "projection_dim": config.lstm.dim,
            "n_layers": config.lstm.layers,
            "cell_clip": config.lstm.cell_clip,
            "proj_clip": config.lstm.projection_clip,
            "use_skip_connections": config.lstm.skip,
        },
    }
    if config.chars:
        options["char_cnn"] = {
            "activation": config.chars.activation,
            "embedding": {"dim": config.chars.dim},
            "filters": [list(pair) for pair in config.chars.filters],
            "max_characters_per_token": config.chars.max_length,
            "n_characters": BYTE_SYMBOLS,
            "n_highway": config.chars.highways,
        }
    if config.softmax or config.words:
        options["n_tokens_vocab"] = config.softmax or (config.words.size if config.words else 0)
        options["share_embedding_softmax"] = config.softmax_shares_words
    return options


def read_linked(
    config: ModelConfig, naming: Naming, stored: Mapping[str, Shape], fetch: Callable[[str], Float32Array], where: Path
) -> Weights:
    """Read the weights through the table of names, after comparing all shapes.

    `fetch` reads one array at a time, so that memory is not doubled.
    """
    shapes = weight_shapes(config)
    arrays: dict[str, Float32Array] = {}
    table = links(config, naming)
    for link in table:
        if link.theirs not in stored:
            raise FormatError(f"{where}: {link.theirs!r} is missing. Is the options file from another model?")
        expected = link.shape(*(shapes[name] if link.direction is None else shapes[name][1:] for name in link.ours))
        if tuple(stored[link.theirs]) != expected:
            raise mismatch(where, link.theirs, stored[link.theirs], expected)
    _check_names(stored, naming, table, where)
    for link in table:
        for name, value in zip(link.ours, link.read(fetch(link.theirs)), strict=True):
            if name not in arrays:
                arrays[name] = np.empty(shapes[name], np.float32)
            arrays[name][... if link.direction is None else link.direction] = value
    return build(config, arrays, where)


def _check_names(stored: Collection[str], naming: Naming, table: list[Link], where: Path) -> None:
    known = {link.theirs for link in table}
    groups = tuple(naming.root + group for group in ("RNN_", "rnn/", "CNN", "char_embed", "embedding"))
    for name in sorted(stored):
        if name.startswith(groups) and name not in known and not name.endswith(("/Adagrad", "/Adam", "/Adam_1")):
            raise FormatError(f"{where}: {name!r} is not a weight of the model that the options describe")


def lexicon_for(config: ModelConfig, vocab: Vocabulary | None) -> Lexicon:
    alphabet = Bytes(config.chars.max_length) if config.chars else None
    return Lexicon(alphabet, vocab, reads_words=config.words is not None)


def read(weights: Path, options: Path, vocab: Vocabulary | None = None) -> Pretrained:
    """Read a model from an HDF5 file and its options."""
    with read_hdf5(weights) as file:
        arrays = {name: array for name, array in file.items() if array.dtype.kind == "f"}
        shapes: dict[str, Shape] = {name: array.shape for name, array in arrays.items()}
        config = read_options(options, shapes.keys(), shapes)
        naming = find_naming(shapes, weights)
        check_claims(
            sum(arrays[link.theirs].nbytes for link in links(config, naming) if link.theirs in arrays), weights
        )
        model = read_linked(config, naming, shapes, lambda name: np.asarray(arrays[name], np.float32), weights)
    vocab = find_vocabulary(weights.parent, vocab, config)
    return Pretrained(model, lexicon_for(config, vocab), "allennlp", str(weights))


def write(model: Pretrained, folder: Path, *, force: bool = False) -> None:
    """Write a folder with options.json, weights.hdf5 and, if known, vocab.txt."""
    check_output(folder, force=force)
    check_replaceable(folder, MODEL_FILES)
    with atomic_path(folder, force=force) as part:
        part.mkdir()
        write_files(model, part / WEIGHTS, part / OPTIONS)
        if model.lexicon.vocab is not None:
            model.lexicon.vocab.save(part / "vocab.txt")


def write_files(model: Pretrained, weights: Path, options: Path, *, force: bool = False) -> None:
    """Write the two files that AllenNLP reads."""
    config = model.config
    if config.chars and config.chars.alphabet != "bytes":
        raise FormatError(f"{LIMIT}: its alphabet is {config.chars.alphabet!r}, and the format knows only bytes")
    if config.softmax_cutoffs:
        raise FormatError(f"{LIMIT}: its softmax is adaptive, and the format has none of that kind")
    if config.chars and config.words:
        raise FormatError(f"{LIMIT}: it reads characters and words, and the format knows only one of them")
    if config.words and config.project:
        raise FormatError(f"{LIMIT}: it has a projection of word vectors, and the format has none")
    stored = model.weights

    def fetch(name: str) -> Float32Array:
        array = floats(stored[name])
        if name.endswith(".bias") and name.startswith("lstm.") and config.lstm.forget_bias != 1.0:
            array = array.copy()  # AllenNLP and bilm-tf add 1 to the stored bias
            array[:, config.lstm.cells : 2 * config.lstm.cells] += config.lstm.forget_bias - 1.0
        return array

    with atomic_path(weights, force=force) as part, create_hdf5(part) as file:
        for link in links(config, WRITTEN[config.bidirectional]):
            ours = (fetch(name)[... if link.direction is None else link.direction] for name in link.ours)
            file.write(link.theirs, link.write(*ours))
    write_text(options, json.dumps(write_options(config), indent=1) + "\n")
