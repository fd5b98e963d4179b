"""Read ELMoForManyLangs folders: two torch state dicts, two dictionaries and their settings."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING, Any

import numpy as np

from pyelmo.arrays import Float32Array
from pyelmo.config import CharConfig, LstmConfig, ModelConfig, WordConfig
from pyelmo.errors import ConfigError, FormatError, NotFoundError, require_torch
from pyelmo.files import read_regular
from pyelmo.formats.pretrained import Pretrained, build
from pyelmo.parsing import read_json
from pyelmo.text.characters import Dictionary
from pyelmo.text.lexicon import Lexicon
from pyelmo.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from torch import Tensor

TOKENS, ENCODER, CHARACTERS, WORDS = "token_embedder.pkl", "encoder.pkl", "char.dic", "word.dic"
MAX_DICTIONARY = 1 << 28  # bytes
log = logging.getLogger("pyelmo")

# All 44 published models have these settings, and most of their folders lack the settings file.
PUBLISHED = {
    "encoder": {"name": "elmo", "cell_clip": 3, "proj_clip": 3},
    "token_embedder": {"name": "cnn", "activation": "relu", "max_characters_per_token": 50},
}


def read(folder: Path) -> Pretrained:
    """Read a model folder. Its weights are torch's own files, so that torch is needed to read them."""
    require_torch(f"{folder}: reading ELMoForManyLangs' files")
    from pyelmo.formats.torch_file import load_state_dict

    tokens, encoder = load_state_dict(folder / TOKENS), load_state_dict(folder / ENCODER)
    settings = _settings(folder)
    symbols, words = _dictionary(folder / CHARACTERS), _dictionary(folder / WORDS)
    config = _config(folder, settings, tokens, encoder)
    alphabet = vocab = None
    if config.chars:
        if symbols is None:
            raise NotFoundError(f"{folder / CHARACTERS}: not found, and this model reads characters")
        alphabet = Dictionary(symbols, config.chars.max_length)
    if words is not None:
        vocab = Vocabulary(words, begin="<bos>", end="<eos>", unknown="<oov>")
    elif config.words:
        raise NotFoundError(f"{folder / WORDS}: not found, and this model reads words")
    for what, have, want in (
        (CHARACTERS, alphabet and alphabet.size, config.chars and config.chars.symbols),
        (WORDS, vocab and len(vocab), config.words and config.words.size),
    ):
        if want is not None and have != want:
            raise FormatError(f"{folder / what}: {have} entries, the weights have {want}. Is it from another model?")
    weights = build(config, _arrays(folder, config, tokens, encoder), folder)
    return Pretrained(weights, Lexicon(alphabet, vocab, config.words is not None), "many_langs", str(folder))


def _settings(folder: Path) -> dict[str, Any]:
    """Read the settings file that config.json names; of its path, only the base name is valid on this machine."""
    config = folder / "config.json"
    config_path = read_json(config).get("config_path", "") if config.is_file() else ""
    name = PureWindowsPath(str(config_path)).name  # splits at / and at \
    if len(name.encode("utf-8", "replace")) < 256 and (folder / name).is_file():
        return read_json(folder / name)
    log.warning("%s: no settings file; using the settings of the published models (clip 3, relu)", folder)
    return PUBLISHED


def _dictionary(path: Path) -> tuple[str, ...] | None:
    """Return the tokens of `token<TAB>id` lines by their ids; a line with only one field is the token U+3000."""
    if not path.is_file():
        return None
    try:
        lines = read_regular(path, limit=MAX_DICTIONARY).decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}: not UTF-8 at byte {error.start}") from error
    entries: dict[int, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        token, tab, index = line.rstrip("\r").rpartition("\t")
        try:
            entries[int(index)] = token if tab else "\u3000"
        except ValueError as error:
            raise FormatError(f"{path}, line {number}: expected token, tab, id; got {line[:60]!r}") from error
    if sorted(entries) != list(range(len(entries))):
        raise FormatError(f"{path}: the ids are not 0 to {len(entries) - 1}, each once")
    return tuple(entries[index] for index in range(len(entries)))


def _config(
    folder: Path, settings: dict[str, Any], tokens: dict[str, Tensor], encoder: dict[str, Tensor]
) -> ModelConfig:
    """Return the config: sizes from the weights, the rest from the settings."""
    token, lstm = settings.get("token_embedder", {}), settings.get("encoder", {})
    for part, kind, name in (("token_embedder", token, "cnn"), ("encoder", lstm, "elmo")):
        if not isinstance(kind, dict):
            raise FormatError(f"{folder}: the settings of the {part} are {str(kind)[:80]!r}, expected a table")
        if str(kind.get("name", name)).lower() != name:
            raise FormatError(f"{folder}: the {part} is {kind['name']!r}; pyelmo can read {name!r} only")
    try:
        filters = tuple((w.shape[2], w.shape[0]) for w in _numbered(tokens, r"convolutions\.(\d+)\.weight"))
        word, char = tokens.get("word_emb_layer.embedding.weight"), tokens.get("char_emb_layer.embedding.weight")
        inputs = _numbered(encoder, r"forward_layer_(\d+)\.input_linearity\.weight")
        return ModelConfig(
            chars=None if char is None else CharConfig(
                alphabet="dictionary",
                symbols=char.shape[0],
                max_length=int(token.get("max_characters_per_token", 50)),
                dim=char.shape[1],
                filters=filters,
                highways=len(_numbered(tokens, r"highways\._layers\.(\d+)\.weight")),
                activation=token.get("activation", "relu"),
            ),
            words=None if word is None else WordConfig(size=word.shape[0], dim=word.shape[1]),
            lstm=LstmConfig(
                cells=inputs[0].shape[0] // 4,
                projection=inputs[0].shape[1],
                layers=len(inputs),
                cell_clip=lstm.get("cell_clip") or None,
                projection_clip=lstm.get("proj_clip") or None,
                forget_bias=0.0,
            ),
        )  # fmt: skip
    except (IndexError, ConfigError, TypeError, ValueError, OverflowError) as error:
        raise FormatError(f"{folder}: the weights or settings are not those of an ELMo model ({error})") from error


def _numbered(tensors: Mapping[str, Tensor], pattern: str) -> list[Tensor]:
    """Return the tensors whose names match, sorted by the number in the name."""
    numbered = [(int(match[1]), tensor) for name, tensor in tensors.items() if (match := re.fullmatch(pattern, name))]
    return [tensor for _, tensor in sorted(numbered, key=lambda pair: pair[0])]


def _arrays(
    folder: Path, config: ModelConfig, tokens: dict[str, Tensor], encoder: dict[str, Tensor]
) -> dict[str, Float32Array]:
    """Return the weights under our names; the two directions of a layer are stacked."""

    def take(source: dict[str, Tensor], name: str) -> Float32Array:
        if name not in source:
            raise FormatError(f"{folder}: {name!r} is missing from {TOKENS if source is tokens else ENCODER}")
        array: Float32Array = source[name].float().numpy()
        return array

    arrays = {
        "projection.weight": take(tokens, "projection.weight"),
        "projection.bias": take(tokens, "projection.bias"),
    }
    if config.words:
        arrays["words.weight"] = take(tokens, "word_emb_layer.embedding.weight")
    if config.chars:
        arrays["chars.embedding.weight"] = take(tokens, "char_emb_layer.embedding.weight")
        for index in range(len(config.chars.filters)):
            for part in ("weight", "bias"):
                arrays[f"chars.convolutions.{index}.{part}"] = take(tokens, f"convolutions.{index}.{part}")
        for index in range(config.chars.highways):
            for part in ("weight", "bias"):
                transform, gate = np.split(take(tokens, f"highways._layers.{index}.{part}"), 2)
                arrays[f"chars.highways.{index}.transform.{part}"] = transform
                # Their gate multiplies the carried input, ours the transformed one: sigmoid(-x) = 1 - sigmoid(x).
                arrays[f"chars.highways.{index}.gate.{part}"] = -gate
    names = {
        "input": "input_linearity.weight", "recurrent": "state_linearity.weight",
        "bias": "state_linearity.bias", "projection": "state_projection.weight",
    }  # fmt: skip
    for layer in range(config.lstm.layers):
        for ours, theirs in names.items():
            pair = [take(encoder, f"{direction}_layer_{layer}.{theirs}") for direction in ("forward", "backward")]
            if pair[0].shape != pair[1].shape:
                raise FormatError(f"{folder}: layer {layer}: forward and backward {theirs} differ in shape")
            arrays[f"lstm.layers.{layer}.{ours}"] = np.stack(pair)
    return arrays
