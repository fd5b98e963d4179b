"""What could stand in the place of a word, and how alike the places of two words are.

    the grassy *bank* --> "the grassy bank or ___", "___ or bank" --> hedge, stream, river, road, ...

A guess for a gap does not see the word. With a connector on each side, both halves of the model have read the word and
its side of the sentence, and name other words that are or mean something of the kind (Amrami and Goldberg 2018, "Word
Sense Induction with Neural biLM and Symmetric Patterns"). Words in the same sense have the same substitutes: their
distributions tell senses apart better than the layers do (docs/results/senses.md).

V words of the vocabulary.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from pyelmo.arrays import Float32Array, Float64Array
from pyelmo.embed.scoring import (
    Guess,
    WordPredictor,
    best_guesses,
    candidates,
    combine,
    directions,
    gap_log_probabilities,
)
from pyelmo.errors import InputError

Place = tuple[Sequence[str], int]  # the words of a sentence, and the position of one of them

# By the language of a model, "or". Models of other languages have a plain gap in the place of the word. The words and
# the temperature were chosen by the lists of words with two senses (docs/log.md).
CONNECTORS = {"en": "or", "ko-morph": "또는"}
TEMPERATURE = 2.0
PLACES_AT_ONCE = 64


def substitutes(model: WordPredictor, place: Place, language: str, count: int) -> list[Guess]:
    """Return the `count` likeliest substitutes of a word."""
    log_probabilities, scores = next(_score(model, [place], language))
    by_direction = dict(zip(directions(model), log_probabilities, strict=True))
    return best_guesses(model.vocab, by_direction, scores, count)


def substitute_vectors(model: WordPredictor, places: Iterable[Place], language: str) -> Iterator[Float32Array]:
    """Yield a vector (V,) of length 1 for each place: the square roots of its substitutes' probabilities.

    The cosine of two such vectors says how far two distributions overlap (the Bhattacharyya coefficient).
    """
    for _, scores in _score(model, places, language):
        roots = np.exp((scores - scores.max()) / (2 * TEMPERATURE))
        yield (roots / np.linalg.norm(roots)).astype(np.float32)


def _score(
    model: WordPredictor, places: Iterable[Place], language: str
) -> Iterator[tuple[Float32Array, Float64Array]]:  # (N, V), (V,)
    """Yield the log probabilities by direction and the score of each word in each place; its own word is left out."""
    candidate = candidates(model.vocab)
    remaining = iter(places)
    while group := list(itertools.islice(remaining, PLACES_AT_ONCE)):
        gaps = [_gap(words, position, CONNECTORS.get(language)) for words, position in group]
        rows = gap_log_probabilities(model, gaps, directions(model))
        for (words, position), log_probabilities in zip(group, rows, strict=True):
            scores = combine(log_probabilities)
            scores[~candidate] = -math.inf
            own = model.vocab.ids.get(words[position])
            if own is not None:
                scores[own] = -math.inf
            yield log_probabilities, scores


def _gap(words: Sequence[str], position: int, connector: str | None) -> tuple[list[str], list[str]]:
    if isinstance(words, str) or not 0 <= position < len(words):
        raise InputError(f"{words!r:.60}, {position}: expected a list of words and the position of one of them")
    if connector is None:
        return [*words[:position]], [*words[position + 1 :]]
    return [*words[: position + 1], connector], [connector, *words[position:]]
