"""pyelmo's own format: a folder with config.json, model.safetensors and, when known, vocab.txt and characters.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyelmo.config import ModelConfig, from_dict, to_dict
from pyelmo.errors import ConfigError, FormatError, NotFoundError, OutputError
from pyelmo.files import atomic_path
from pyelmo.formats.pretrained import Pretrained, build, find_vocabulary, read_json
from pyelmo.text.characters import Alphabet, Bytes, Dictionary, Jamo
from pyelmo.text.lexicon import Lexicon
from pyelmo.text.vocabulary import Vocabulary

CONFIG, WEIGHTS, VOCABULARY, CHARACTERS = "config.json", "model.safetensors", "vocab.txt", "characters.json"
VERSION = 1


def read(folder: Path, vocab: Vocabulary | None = None) -> Pretrained:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

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
    weights = folder / WEIGHTS
    if not weights.is_file():
        raise NotFoundError(f"{weights}: not found. A pyelmo model is {CONFIG} and {WEIGHTS} in one folder.")
    try:
        tensors = load_file(weights)
    except (SafetensorError, OSError, ValueError) as error:
        raise FormatError(f"{weights}: not a whole safetensors file ({error}). Was the copy cut short?") from error
    bilm = build(config, tensors, weights)
    vocab = find_vocabulary(folder, vocab, config, header.get("marks"))
    lexicon = Lexicon(_alphabet(folder, config), vocab, reads_words=config.words is not None)
    return Pretrained(bilm, lexicon, "pyelmo", str(folder))


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


def write(model: Pretrained, folder: Path, *, force: bool = False) -> None:
    """The whole folder in one step."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    header: dict[str, Any] = {"format": "pyelmo", "version": VERSION, "model": to_dict(model.bilm.config)}
    # named_parameters() names a shared table once.
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in model.bilm.named_parameters()}
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
