"""The examples that word2vec learns from: pairs of an input and a word to predict, from a window over the text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyelmo.errors import InputError
from pyelmo.vectors.train import MODELS


@dataclass(frozen=True)
class TrainingPair:
    """One example: the words that the model reads, and the word that it learns to predict from them."""

    inputs: tuple[str, ...]
    predicts: str


def training_pairs(words: Sequence[str], window: int = 2, algorithm: str = "skip-gram") -> Iterator[TrainingPair]:
    """Yield the examples of a sentence.

    Skip-gram predicts each word of the window from the word in its middle, CBOW the middle from all others. Training
    also draws a smaller window at random for each word, and skips some of the frequent words; this does neither.

    Args:
        words: The words of a sentence.
        window: The maximum distance between a word and its context words.
        algorithm: skip-gram or cbow.

    Raises:
        InputError: The window is less than 1, or the algorithm is unknown.

    Example:
        >>> from pyelmo.vectors.pairs import training_pairs
        >>> [(pair.inputs[0], pair.predicts) for pair in training_pairs(["the", "quick", "fox"], window=1)]
        [('the', 'quick'), ('quick', 'the'), ('quick', 'fox'), ('fox', 'quick')]
        >>> [pair.inputs for pair in training_pairs(["the", "quick", "fox"], window=1, algorithm="cbow")]
        [('quick',), ('the', 'fox'), ('quick',)]
    """
    if window < 1:
        raise InputError(f"the window is {window}; it must be at least 1")
    if algorithm not in MODELS:
        raise InputError(f"algorithm {algorithm!r} is unknown. Use {' or '.join(MODELS)}.")
    for position, word in enumerate(words):
        context = (*words[max(position - window, 0) : position], *words[position + 1 : position + 1 + window])
        if algorithm == "cbow" and context:
            yield TrainingPair(context, word)
        elif algorithm == "skip-gram":
            yield from (TrainingPair((word,), other) for other in context)
