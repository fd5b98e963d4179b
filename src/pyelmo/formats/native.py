"""pyelmo's own format: a folder with config.json, model.safetensors and, when known, vocab.txt and characters.json.

config.json says what the model is, its marks and, when known, the language whose rules split its text.
In int8 every matrix is stored as `quantise` gives it: its name holds the small numbers, its name + ".scale" the scales.
In int4 so is every matrix whose rows are whole groups, as `quantise4` gives it (uint8, two weights a byte).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from pyelmo.config import ModelConfig, from_dict, to_dict
from pyelmo.errors import ConfigError, FormatError, NotFoundError, OutputError
from pyelmo.files import atomic_path
from pyelmo.formats.pretrained import Pretrained, Stored, Weights, check_shapes, find_vocabulary, read_json
from pyelmo.kernels import quantise4
from pyelmo.kernels.quantise import Quantised, quantise
from pyelmo.text.characters import Alphabet, Bytes, Dictionary, Jamo
from pyelmo.text.lexicon import Lexicon
from pyelmo.text.tokens import LANGUAGES
from pyelmo.text.vocabulary import Vocabulary

CONFIG, WEIGHTS, VOCABULARY, CHARACTERS = "config.json", "model.safetensors", "vocab.txt", "characters.json"
VERSION = 1
SCALE = ".scale"

Precision = Literal["float32", "int8", "int4"]


def read(folder: Path, vocab: Vocabulary | None = None) -> Pretrained:
    header = read_json(folder / CONFIG)
    if header.get("format") != "pyelmo":
        raise FormatError(f"{folder / CONFIG}: not a pyelmo model ('format' is {header.get('format')!r})")
    if header.get("version") != VERSION:
        raise FormatError(
            f"{folder / CONFIG}: version {header.get('version')}, this pyelmo reads {VERSION}. Upgrade it."
        )
    try:
        config = from_dict(ModelConfig, header.get("model", {}))
    except ConfigError as error:
        raise FormatError(f"{folder / CONFIG}: {error}") from error
    language = header.get("language")
    if language is not None and language not in LANGUAGES:
        raise FormatError(f"{folder / CONFIG}: language {language!r} is none of {', '.join(LANGUAGES)}")
    weights = folder / WEIGHTS
    if not weights.is_file():
        raise NotFoundError(f"{weights}: not found. A pyelmo model is {CONFIG} and {WEIGHTS} in one folder.")
    stored = _File(weights)
    check_shapes(config, stored.shapes, weights)
    vocab = find_vocabulary(folder, vocab, config, header.get("marks"))
    lexicon = Lexicon(_alphabet(folder, config), vocab, reads_words=config.words is not None)
    return Pretrained(Weights(config, stored, weights), lexicon, "pyelmo", str(folder), language)


class _File(Mapping[str, Stored]):
    """The weights of a safetensors file, each read when it is asked for and mapped, not copied, into memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.shapes: dict[str, tuple[int, ...]] = {}
        with self._open() as file:
            for name in file.keys():  # noqa: SIM118 -- it is no mapping
                if name.endswith(SCALE):
                    continue
                part = file.get_slice(name)
                shape = tuple(part.get_shape())
                self.shapes[name] = (*shape[:-1], 2 * shape[-1]) if part.get_dtype() == "U8" else shape

    def __getitem__(self, name: str) -> Stored:
        # Opened anew each time: a mapping goes with its last tensor, and the whole file is never in memory at once.
        with self._open() as file:
            tensor: Tensor = file.get_tensor(name)
            if tensor.dtype not in (torch.int8, torch.uint8):
                return tensor.float()
            if name + SCALE not in file.keys():  # noqa: SIM118
                kind = "int8" if tensor.dtype == torch.int8 else "int4"
                raise FormatError(f"{self.path}: {name!r} is {kind}, and its {name + SCALE!r} is missing")
            scales: Tensor = file.get_tensor(name + SCALE)
        if tensor.dtype == torch.uint8:
            groups = (*tensor.shape[:-1], 2 * tensor.shape[-1] // quantise4.GROUP)
            if tuple(scales.shape) != groups or scales.dtype != torch.float16:
                raise FormatError(f"{self.path}: {name + SCALE!r} does not fit {name!r}")
            return torch.from_numpy(quantise4.Packed(tensor.numpy(), scales.numpy()).restore())
        if scales.shape != tensor.shape[: scales.dim()] or scales.dtype != torch.float32:
            raise FormatError(f"{self.path}: {name + SCALE!r} does not fit {name!r}")
        return Quantised(tensor.numpy(), scales.numpy())

    def __iter__(self) -> Iterator[str]:
        return iter(self.shapes)

    def __len__(self) -> int:
        return len(self.shapes)

    def _open(self) -> Any:
        from safetensors import SafetensorError, safe_open

        try:
            return safe_open(self.path, "pt")
        except (SafetensorError, OSError, ValueError) as error:
            raise FormatError(
                f"{self.path}: not a whole safetensors file ({error}). Was the copy cut short?"
            ) from error


def quantised(name: str, weight: Stored) -> Stored:
    """A weight as int8 files hold it: matrices as small numbers, biases and the symbols' embedding as they are."""
    if isinstance(weight, Quantised) or weight.dim() < 2 or name == "chars.embedding.weight":
        return weight
    return quantise(weight.detach().float().cpu().numpy(), axes=2 if name.startswith("chars.convolutions.") else 1)


def _alphabet(folder: Path, config: ModelConfig) -> Alphabet | None:
    if config.chars is None:
        return None
    alphabet: Alphabet
    if config.chars.alphabet == "dictionary":
        symbols = read_json(folder / CHARACTERS).get("symbols")
        if not isinstance(symbols, list) or not all(isinstance(symbol, str) for symbol in symbols):
            raise FormatError(f"{folder / CHARACTERS}: expected a list of strings under 'symbols'")
        alphabet = Dictionary(tuple(symbols), config.chars.max_length)
    else:
        alphabet = (Jamo if config.chars.alphabet == "jamo" else Bytes)(config.chars.max_length)
    if alphabet.size != config.chars.symbols:
        raise FormatError(f"{folder}: {config.chars.symbols} symbols in the config, {alphabet.size} in the alphabet")
    return alphabet


def write(model: Pretrained, folder: Path, *, precision: Precision = "float32", force: bool = False) -> None:
    """The whole folder in one step."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    header: dict[str, Any] = {"format": "pyelmo", "version": VERSION, "model": to_dict(model.config)}
    if model.language is not None:
        header["language"] = model.language
    # named_parameters() names a shared table once.
    tensors: dict[str, Tensor] = {}
    for name, parameter in model.bilm.named_parameters():
        if (
            precision == "int4"
            and quantise4.fits(tuple(parameter.shape))
            and not name.startswith("chars.convolutions.")
        ):
            packed = quantise4.pack(parameter.detach().float().cpu().numpy())
            tensors[name], tensors[name + SCALE] = torch.from_numpy(packed.codes), torch.from_numpy(packed.scales)
            continue
        weight = parameter if precision == "float32" else quantised(name, parameter)
        if isinstance(weight, Quantised):
            tensors[name], tensors[name + SCALE] = torch.from_numpy(weight.values), torch.from_numpy(weight.scales)
        else:
            tensors[name] = weight.detach().cpu().contiguous()
    with atomic_path(folder, force=force) as part:
        part.mkdir()
        if (vocab := model.lexicon.vocab) is not None:
            header["marks"] = {"begin": vocab.begin, "end": vocab.end, "unknown": vocab.unknown}
            vocab.save(part / VOCABULARY)
        if isinstance(model.lexicon.alphabet, Dictionary):
            symbols = {"symbols": list(model.lexicon.alphabet.symbols)}
            (part / CHARACTERS).write_text(json.dumps(symbols, ensure_ascii=True), encoding="utf-8")
        (part / CONFIG).write_text(json.dumps(header, indent=1) + "\n", encoding="utf-8")
        try:
            save_file(tensors, part / WEIGHTS, metadata={"format": "pt"})
        except SafetensorError as error:
            raise OutputError(f"{folder}: cannot be written ({error}). Nothing was changed.") from error
        (part / WEIGHTS).chmod((part / CONFIG).stat().st_mode)  # safetensors keeps all others from reading it
