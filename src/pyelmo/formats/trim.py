"""Reduce the vocabulary of a softmax, which is most of the size of a small model.

V words before, N words after. A model that reads characters does not read these words, so its embeddings do not change;
the probabilities of the remaining words are the old ones, normalised again.
"""

from __future__ import annotations

from dataclasses import replace

from pyelmo.errors import InputError
from pyelmo.formats.pretrained import Pretrained, Weights, floats
from pyelmo.text.vocabulary import Vocabulary


def trim(model: Pretrained, count: int) -> Pretrained:
    """Return the model with a softmax over the first `count` words; begin, end and unknown tokens always stay."""
    vocab = _trimmable(model, count)
    special = {vocab.ids[token] for token in (vocab.begin, vocab.end, vocab.unknown)}
    others = [number for number in range(len(vocab)) if number not in special]
    ids = sorted([*special, *others[: count - len(special)]])  # (N,)
    weights = dict(model.weights)
    for name in ("softmax.weight", "softmax.bias"):
        weights[name] = floats(weights[name])[ids]  # (V, ...) -> (N, ...)
    small = Weights(replace(model.config, softmax=count), weights, model.source)
    words = replace(vocab, words=tuple(vocab.words[number] for number in ids))
    return replace(model, model=small, lexicon=replace(model.lexicon, vocab=words))


def _trimmable(model: Pretrained, count: int) -> Vocabulary:
    config, vocab = model.config, model.lexicon.vocab
    reasons = {
        "it has no softmax": config.softmax is None,
        "it reads words, so its embedding table needs all of them": config.words is not None,
        "its softmax is adaptive, and its clusters cannot be cut": bool(config.softmax_cutoffs),
        "the words of its softmax are unknown; give its vocabulary (--vocab FILE)": vocab is None,
    }
    for reason, holds in reasons.items():
        if holds:
            raise InputError(f"{model.source}: the vocabulary cannot be reduced: {reason}")
    assert vocab is not None
    if not 4 <= count <= len(vocab):
        raise InputError(
            f"{model.source}: cannot keep {count} words; give 4 (three special tokens and a word) to {len(vocab)}"
        )
    return vocab
