"""The facts of a model as plain values, for `elmo inspect` and other programs."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from pyelmo.config import to_dict, weight_shapes
from pyelmo.formats.pretrained import Pretrained, Weights


def describe(model: Pretrained) -> dict[str, Any]:
    """Return format, language, parameters of each module, layers, sizes and vocabulary."""
    config, counts = model.config, Counter[str]()
    for name, shape in weight_shapes(config).items():
        counts[name.partition(".")[0]] += math.prod(shape)
    vocab = model.lexicon.vocab
    return {
        "source": model.source,
        "format": model.format,
        "language": model.language,
        "parameters": {"total": sum(counts.values()), **counts},
        "weights": model.model.precision if isinstance(model.model, Weights) else "float32",
        "layers": config.layers,
        "dim": config.dim,
        "bidirectional": config.bidirectional,
        "vocabulary": {
            "reads_words": config.words.size if config.words else 0,
            "predicts_words": config.softmax or 0,
            "words_known": vocab is not None,
        },
        "sentence": None
        if (form := model.sentence) is None
        else {
            "weighted_words": len(form.weights),
            "common_directions": len(form.common),
        },
        "chars": to_dict(config.chars) if config.chars else None,
        "lstm": to_dict(config.lstm),
    }
