"""The facts of a model as plain values, for `elmo inspect` and other programs."""

from __future__ import annotations

from typing import Any

from pyelmo.config import to_dict
from pyelmo.formats.pretrained import Pretrained, Weights, empty_bilm


def describe(model: Pretrained) -> dict[str, Any]:
    """Return format, language, parameters of each module, layers, sizes and vocabulary."""
    config, counts = model.config, {}
    for name, child in empty_bilm(config).named_children():
        counts[name] = sum(parameter.numel() for parameter in child.parameters())
    if config.softmax_shares_words and config.words:
        counts["softmax"] -= config.words.size * config.words.dim
    vocab = model.lexicon.vocab
    return {
        "source": model.source,
        "format": model.format,
        "language": model.language,
        "parameters": {"total": sum(counts.values()), **counts},
        "weights": "int8" if isinstance(model.model, Weights) and model.model.quantised else "float32",
        "layers": config.layers,
        "dim": config.dim,
        "bidirectional": config.bidirectional,
        "vocabulary": {
            "reads_words": config.words.size if config.words else 0,
            "predicts_words": config.softmax or 0,
            "words_known": vocab is not None,
        },
        "chars": to_dict(config.chars) if config.chars else None,
        "lstm": to_dict(config.lstm),
    }
