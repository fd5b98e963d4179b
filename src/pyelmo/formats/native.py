"""pyelmo's own format: a folder with config.json, model.safetensors and, if known, vocab.txt, characters.json and
sentence.json.

config.json has the model's config, the spelling of its boundary and unknown tokens and, if known, its language.
With int8 weights, a matrix is stored as two tensors (see `quantise`): NAME has the int8 values, NAME.scale the scales.
With int4 weights, likewise (see `quantise4`), if its rows are whole groups: NAME has two weights per byte (uint8). Its
biases are float32.

A folder that `save_pretrained` of transformers wrote (`pyelmo.integrations.transformers`) is read, too: its config.json
names `architectures`, its weights have a prefix, and those of a task head are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pyelmo.arrays import Float32Array
from pyelmo.config import ModelConfig, from_dict, to_dict
from pyelmo.errors import ConfigError, FormatError, NotFoundError
from pyelmo.files import atomic_path, check_output, check_replaceable
from pyelmo.formats.pretrained import (
    MODEL_FILES,
    Pretrained,
    StoredPrecision,
    StoredWeight,
    Weights,
    check_shapes,
    find_vocabulary,
    floats,
)
from pyelmo.formats.sentence import SENTENCE, read_form
from pyelmo.formats.tensor_file import TensorFile, write_tensors
from pyelmo.kernels.cpu import quantise4
from pyelmo.kernels.cpu.quantise import Quantised, quantise
from pyelmo.parsing import read_json
from pyelmo.text.characters import Alphabet, Bytes, Dictionary, Jamo
from pyelmo.text.lexicon import Lexicon
from pyelmo.text.tokens import LANGUAGES
from pyelmo.text.vocabulary import Vocabulary

CONFIG, WEIGHTS, VOCABULARY, CHARACTERS = "config.json", "model.safetensors", "vocab.txt", "characters.json"
VERSION = 1
SCALE = ".scale"
MODEL_TYPE = "elmo"  # what AutoModel of transformers looks at
PREFIX = "bilm."  # of the weights in a folder of transformers

# A matrix of a highway layer with at most so many weights stays float32 in int8 models. This costs nearly no time, and
# its rounding hurts the vectors of rare words most (the lowest cosine of `en` rises from 0.990 to 0.997).
SMALL_HIGHWAY = 1 << 20


def read(folder: Path, vocab: Vocabulary | None = None, *, with_form: bool = True) -> Pretrained:
    """Read a model folder; `vocab` replaces its vocab.txt. Without its sentence form, that file is not looked at."""
    header, config = read_header(folder)
    language = header.get("language")
    if language is not None and language not in LANGUAGES:
        raise FormatError(f"{folder / CONFIG}: language {language!r} is none of {', '.join(LANGUAGES)}")
    weights = folder / WEIGHTS
    if not weights.is_file():
        raise NotFoundError(f"{weights}: not found. A pyelmo model is {CONFIG} and {WEIGHTS} in one folder.")
    stored = _WeightFile(weights, PREFIX if header.get("architectures") else "")
    check_shapes(config, stored.shapes, weights)
    vocab = find_vocabulary(folder, vocab, config, _special_tokens(folder, header.get("marks")))
    lexicon = Lexicon(_alphabet(folder, config), vocab, reads_words=config.words is not None)
    model = Weights(config, stored, weights, precision=stored.precision)
    return Pretrained(model, lexicon, "pyelmo", str(folder), language, read_form(folder, config) if with_form else None)


def read_header(folder: Path) -> tuple[dict[str, Any], ModelConfig]:
    """Read and check config.json: all of it, and the sizes of the model."""
    header = read_json(folder / CONFIG)
    if header.get("format") != "pyelmo":
        raise FormatError(f"{folder / CONFIG}: not a pyelmo model ('format' is {header.get('format')!r})")
    if header.get("version") != VERSION:
        raise FormatError(
            f"{folder / CONFIG}: version {header.get('version')}, this pyelmo reads {VERSION}. Upgrade it."
        )
    try:
        return header, from_dict(ModelConfig, header.get("model", {}))
    except ConfigError as error:
        raise FormatError(f"{folder / CONFIG}: {error}") from error


def _special_tokens(folder: Path, marks: Any) -> dict[str, str]:
    names = ("begin", "end", "unknown")
    if marks is None:
        return {}
    if not isinstance(marks, dict) or not all(name in names and isinstance(mark, str) for name, mark in marks.items()):
        raise FormatError(f"{folder / CONFIG}: 'marks' must be strings named {', '.join(names)}, got {str(marks)[:80]}")
    return marks


class _WeightFile(Mapping[str, StoredWeight]):
    """The weights of a safetensors file: names, dtypes and shapes are checked at once, values are read on access."""

    def __init__(self, path: Path, prefix: str = "") -> None:
        """Weights without the prefix are left out."""
        self.file, self.prefix = TensorFile(path), prefix
        named = {name: entry for name, entry in self.file.tensors.items() if name.startswith(prefix)}
        self.tensors = {name.removeprefix(prefix): entry for name, entry in named.items()}
        self.shapes: dict[str, tuple[int, ...]] = {}
        for name, entry in self.tensors.items():
            if not name.endswith(SCALE):
                self.shapes[name] = self._weight_shape(name, entry.dtype, entry.shape)
            elif not self._is_quantised(name.removesuffix(SCALE)):
                raise FormatError(f"{path}: {name!r} has no int8 or int4 weight to scale")

    @property
    def precision(self) -> StoredPrecision:
        """That of the LSTMs; small matrices have more bits."""
        dtypes = {entry.dtype for name, entry in self.tensors.items() if name.startswith("lstm.")}
        return "int4" if "uint8" in dtypes else "int8" if "int8" in dtypes else "float32"

    def _is_quantised(self, name: str) -> bool:
        return name in self.tensors and self.tensors[name].dtype in ("int8", "uint8")

    def _weight_shape(self, name: str, dtype: str, stored: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of a weight after checking its dtype and the shape of its scales."""
        path = self.file.path
        if "float" in dtype:
            return stored
        if dtype not in ("int8", "uint8"):
            raise FormatError(f"{path}: {name!r} is {dtype}, expected float, int8 or int4 weights")
        four_bits = dtype == "uint8"
        shape = (*stored[:-1], 2 * stored[-1]) if four_bits and stored else stored
        if four_bits:
            packable = quantise4.fits(shape)
            expected = "float16", (*shape[:-1], shape[-1] // quantise4.GROUP) if packable else ()
        else:
            packable = len(shape) >= 2
            expected = "float32", shape[: -_row_axes(name)]
        if not packable:
            raise FormatError(f"{path}: {name!r} is {dtype}, which a weight of shape {shape} cannot be")
        scale = self.tensors.get(name + SCALE)
        if scale is None:
            kind = "int4" if four_bits else "int8"
            raise FormatError(f"{path}: {name!r} is {kind}, but {name + SCALE!r} is missing")
        if (scale.dtype, scale.shape) != expected:
            raise FormatError(
                f"{path}: {name + SCALE!r} is {scale.shape} {scale.dtype}, expected {expected[1]} {expected[0]}"
            )
        return shape

    def __getitem__(self, name: str) -> StoredWeight:
        array = self.file.read(self.prefix + name)
        if array.dtype.kind == "f":
            return array.astype(np.float32, copy=False)
        scales = self.file.read(self.prefix + name + SCALE)
        if array.dtype == np.uint8:
            return quantise4.Packed(array, scales)
        if (array == -128).any():  # beyond the range of `quantise`; AVX2 would negate it to itself
            raise FormatError(
                f"{self.file.path}: {name!r} has the int8 value -128, expected -127 to 127. Is it damaged?"
            )
        return Quantised(array, scales)

    def __iter__(self) -> Iterator[str]:
        return iter(self.shapes)

    def __len__(self) -> int:
        return len(self.shapes)


def _row_axes(name: str) -> int:
    """Return how many of the last axes of a weight share an int8 scale."""
    return 2 if name.startswith("chars.convolutions.") else 1


def quantised(name: str, weight: StoredWeight) -> Float32Array | Quantised:
    """Return a weight as an int8 file stores it: matrices quantised, except small parts of the encoder."""
    if isinstance(weight, Quantised):
        return weight
    array = floats(weight)
    small_highway = name.startswith("chars.highways.") and array.size <= SMALL_HIGHWAY
    if array.ndim < 2 or name == "chars.embedding.weight" or small_highway:
        return array
    return quantise(array, axes=_row_axes(name))


def _round(name: str, weight: StoredWeight, precision: StoredPrecision) -> StoredWeight:
    """Return a weight as a file of this precision stores it."""
    if precision == "int8":
        return quantised(name, weight)
    array = floats(weight)
    # The bias of an LSTM has an axis of directions, as a matrix has; an int4 file keeps it as it is.
    if precision == "float32" or name.endswith("bias"):
        return array
    if quantise4.fits(array.shape) and not name.startswith("chars.convolutions."):
        return quantise4.pack(array)
    return quantised(name, array)


def _alphabet(folder: Path, config: ModelConfig) -> Alphabet | None:
    if config.chars is None:
        return None
    alphabet: Alphabet
    if config.chars.alphabet == "dictionary":
        alphabet = read_dictionary(folder / CHARACTERS, config.chars.max_length)
    else:
        alphabet = (Jamo if config.chars.alphabet == "jamo" else Bytes)(config.chars.max_length)
    if alphabet.size != config.chars.symbols:
        raise FormatError(f"{folder}: the config has {config.chars.symbols} symbols, the alphabet {alphabet.size}")
    return alphabet


def read_dictionary(path: Path, max_length: int) -> Dictionary:
    """Read the symbols of an alphabet (characters.json)."""
    symbols = read_json(path).get("symbols")
    if not isinstance(symbols, list) or not all(isinstance(symbol, str) for symbol in symbols):
        raise FormatError(f"{path}: expected a list of strings under 'symbols'")
    return Dictionary(tuple(symbols), max_length)


def write(
    model: Pretrained,
    folder: Path,
    *,
    precision: StoredPrecision = "float32",
    rounded: Mapping[str, StoredWeight] | None = None,
    force: bool = False,
) -> None:
    """Write the folder in one step: a failure leaves the old one or none.

    `rounded` has weights to write in place of the model's, packed if they are rounded to int4 already.
    """
    header: dict[str, Any] = {"format": "pyelmo", "model_type": MODEL_TYPE, "version": VERSION}
    header["model"] = to_dict(model.config)
    if model.language is not None:
        header["language"] = model.language
    arrays: dict[str, np.ndarray] = {}
    weights, rounded = model.weights, rounded or {}
    for name in weights:
        given = rounded.get(name)
        if isinstance(given, quantise4.Packed):
            small: StoredWeight = given
        else:
            small = _round(name, weights[name] if given is None else given, precision)
        if isinstance(small, quantise4.Packed):
            arrays[name], arrays[name + SCALE] = small.codes, small.scales
        elif isinstance(small, Quantised):
            arrays[name], arrays[name + SCALE] = small.values, small.scales
        else:
            arrays[name] = small
    check_output(folder, force=force)
    check_replaceable(folder, MODEL_FILES)
    with atomic_path(folder, force=force) as part:
        part.mkdir()
        if (vocab := model.lexicon.vocab) is not None:
            header["marks"] = {"begin": vocab.begin, "end": vocab.end, "unknown": vocab.unknown}
            vocab.save(part / VOCABULARY)
        if isinstance(model.lexicon.alphabet, Dictionary):
            symbols = {"symbols": list(model.lexicon.alphabet.symbols)}
            (part / CHARACTERS).write_text(json.dumps(symbols, ensure_ascii=True), encoding="utf-8")
        if model.sentence is not None:
            model.sentence.write(part / SENTENCE)
        (part / CONFIG).write_text(json.dumps(header, indent=1) + "\n", encoding="utf-8")
        write_tensors(part / WEIGHTS, arrays, {"format": "pt"})
