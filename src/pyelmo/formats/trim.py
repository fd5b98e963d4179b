"""A model that predicts fewer words: most of a small model's size is the words of its softmax.

V words before, N words after. What is left out never was an input of a model that reads characters, so the vectors of
every word stay as they were, and the probabilities of the words kept are the old ones, made to sum to 1 again.
"""

from __future__ import annotations

from dataclasses import replace

from pyelmo.errors import InputError
from pyelmo.formats.pretrained import Pretrained, empty_bilm
from pyelmo.text.vocabulary import Vocabulary


def trim(model: Pretrained, count: int) -> Pretrained:
    """The same model with a softmax over the first `count` words of its vocabulary; the three marks always stay."""
    vocab = _trimmable(model, count)
    marks = {vocab.ids[mark] for mark in (vocab.begin, vocab.end, vocab.unknown)}
    others = [number for number in range(len(vocab)) if number not in marks]
    kept = sorted([*marks, *others[: count - len(marks)]])  # (N,)
    tensors = {name: parameter.detach() for name, parameter in model.bilm.named_parameters()}
    for name in ("softmax.weight", "softmax.bias"):
        tensors[name] = tensors[name][kept]  # (V, ...) -> (N, ...)
    bilm = empty_bilm(replace(model.config, softmax=count))
    bilm.load_state_dict(tensors, assign=True)
    words = replace(vocab, words=tuple(vocab.words[number] for number in kept))
    return replace(model, model=bilm.eval(), lexicon=replace(model.lexicon, vocab=words))


def _trimmable(model: Pretrained, count: int) -> Vocabulary:
    config, vocab = model.config, model.lexicon.vocab
    reasons = {
        "it has no softmax, so it predicts no words": config.softmax is None,
        "it reads words by number, and needs them all": config.words is not None,
        "its softmax is adaptive: clusters of words that belong together": bool(config.softmax_cutoffs),
        "the words of its softmax are not known; give its vocabulary (--vocab FILE)": vocab is None,
    }
    for reason, holds in reasons.items():
        if holds:
            raise InputError(f"{model.source}: no word can be left out: {reason}")
    assert vocab is not None
    if not 4 <= count <= len(vocab):
        raise InputError(
            f"{model.source}: cannot keep {count} words; give 4 (the three marks and a word) to {len(vocab)}"
        )
    return vocab
