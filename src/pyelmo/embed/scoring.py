"""A language model's view of single words: the score of each word of a sentence, and guesses for a gap.

    sentences --> top layer of each token --> full softmax --> scores, guesses

The forward half of a position predicts the next word, the backward half the word before. Each sentence starts from a
zero state, so its scores depend on no other sentence.

T words of a sentence, N directions, P vector of one direction, M positions, V words of the vocabulary.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, overload

import numpy as np
import numpy.typing as npt

from pyelmo.arrays import Float32Array, Float64Array
from pyelmo.config import ModelConfig
from pyelmo.embed.engines.softmax import WordSoftmax
from pyelmo.errors import InputError
from pyelmo.text.vocabulary import Vocabulary

Direction = Literal["forward", "backward", "both"]
DIRECTIONS = ("forward", "backward", "both")
# Tokenised sentences -> the top layer of each with its boundary tokens, (T + 2, N * P).
TopLayers = Callable[[Iterable[list[str]]], Iterator[Float32Array]]

POSITIONS = 4096  # positions whose scores are computed together
# The product of both directions counts the probability of the word itself, p(w), twice. So it is divided by p(w) to
# this power, chosen on held-out text (docs/results/guesses.md).
PRIOR_POWER = 0.7
# p(w) from the rank r of the word in the vocabulary, which is ordered by falling frequency: the law of Zipf and
# Mandelbrot, 1 / (r + 2.7). It needs no counts, and on held-out text it does as well as counts.
RANK_SHIFT = 2.7


@dataclass(frozen=True)
class WordPredictor:
    """What predicts words: the vocabulary, the softmax over it, and a function for the top layers of sentences."""

    source: str
    config: ModelConfig
    vocab: Vocabulary
    softmax: WordSoftmax
    layers: TopLayers


@dataclass(frozen=True)
class WordScore:
    """The natural log probability of a word given the words before it, and given those after it.

    Of an out-of-vocabulary word (`known` is false) it is an equal share of the probability of `<UNK>`, as if there were
    as many such words as words in the vocabulary. A direction that was not asked for is None.
    """

    word: str
    forward: float | None
    backward: float | None
    known: bool


@dataclass(frozen=True)
class SentenceScore(Sequence[WordScore]):
    """The scores of the words of a sentence, as a sequence, with that of its end and their sums.

    `end` is the score of the boundary token after the last word (forward) and before the first one (backward). The sums
    `forward` and `backward` include it: they are the log probability of the whole sentence. A sentence without words
    has no end, and its sums are 0.
    """

    words: tuple[WordScore, ...]
    end: WordScore | None
    forward: float | None
    backward: float | None

    @property
    def unknown(self) -> int:
        """The number of out-of-vocabulary words."""
        return sum(not word.known for word in self.words)

    def __len__(self) -> int:
        return len(self.words)

    @overload
    def __getitem__(self, index: int) -> WordScore: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[WordScore]: ...
    def __getitem__(self, index: int | slice) -> WordScore | Sequence[WordScore]:
        return self.words[index]


@dataclass(frozen=True)
class Guess:
    """A word for a gap: its share of the probability of all candidates, and its log probability in each direction."""

    word: str
    probability: float
    forward: float | None
    backward: float | None


def score(
    model: WordPredictor,
    sentences: Iterable[Sequence[str]],
    *,
    direction: Direction = "both",
    advance: Callable[[int], None] | None = None,
) -> Iterator[SentenceScore]:
    """Yield the scores of each sentence. `advance` is called with the number of words of each part computed."""
    names = directions(model, direction)
    first, second = itertools.tee(map(list, sentences))
    group: list[tuple[list[str], Float32Array]] = []
    size = 0
    for words, top in zip(first, model.layers(second), strict=True):
        group.append((words, top))
        size += len(words)
        if size >= POSITIONS:
            yield from _score_group(model, group, names, advance)
            group, size = [], 0
    yield from _score_group(model, group, names, advance)


def predict(
    model: WordPredictor,
    before: Sequence[str],
    after: Sequence[str],
    *,
    count: int = 10,
    direction: Direction | None = None,
    punctuation: bool = False,
) -> list[Guess]:
    """Return the `count` likeliest words between `before` and `after`.

    The forward direction reads the words before the gap, the backward direction those after it:

        log p(w) = log p_forward(w) + log p_backward(w) - PRIOR_POWER * log p_prior(w) + constant

    Without a `direction`, both are used, but only the forward one if nothing follows: a text that breaks off is not
    the end of a sentence. (A gap at the begin is the begin of a sentence.) Punctuation is no candidate unless asked
    for.
    """
    if direction is None:
        direction = "both" if after else "forward"
    names = directions(model, direction)
    (log_probabilities,) = gap_log_probabilities(model, [(before, after)], names)
    scores = combine(log_probabilities)
    scores[~candidates(model.vocab, punctuation=punctuation)] = -math.inf
    return best_guesses(model.vocab, dict(zip(names, log_probabilities, strict=True)), scores, count)


def gap_log_probabilities(
    model: WordPredictor, gaps: Sequence[tuple[Sequence[str], Sequence[str]]], names: Sequence[str]
) -> Float32Array:  # -> (gaps, N, V)
    """Return the log probability of each word in gaps: by the words before the gap and by those after it."""
    tops = model.layers(list(side) for gap in gaps for side in gap)
    size = model.config.lstm.dim
    contexts = []
    for left, right in zip(tops, tops, strict=True):
        context = {"forward": left[-2, :size], "backward": right[1, -size:]}  # of the words beside the gap
        contexts += [context[name] for name in names]
    rows = model.softmax.log_probabilities(np.stack(contexts))
    return rows.reshape(len(gaps), len(names), -1)


def combine(log_probabilities: Float32Array) -> Float64Array:  # (N, V) -> (V,)
    """Return the score of each word in a gap, by the formula of `predict`."""
    count, words = log_probabilities.shape
    scores: Float64Array = log_probabilities.sum(0, dtype=np.float64) - (count - 1) * PRIOR_POWER * log_prior(words)
    return scores


def candidates(vocab: Vocabulary, *, punctuation: bool = False) -> npt.NDArray[np.bool_]:  # (V,)
    """Mark the words that may be guessed: no special tokens, and no punctuation unless asked for."""
    special = {vocab.begin, vocab.end, vocab.unknown}
    return np.array([word not in special and (punctuation or any(map(str.isalnum, word))) for word in vocab])


def best_guesses(
    vocab: Vocabulary, by_direction: Mapping[str, Float32Array], scores: Float64Array, count: int
) -> list[Guess]:
    """Return the words with the highest scores (V,); those whose score is minus infinity are no candidates."""
    probabilities = np.exp(scores - scores.max())
    probabilities /= probabilities.sum()
    best = np.argsort(-probabilities, kind="stable")[: min(count, int(np.isfinite(scores).sum()))].tolist()
    return [
        Guess(
            vocab.words[i],
            float(probabilities[i]),
            float(by_direction["forward"][i]) if "forward" in by_direction else None,
            float(by_direction["backward"][i]) if "backward" in by_direction else None,
        )
        for i in best
    ]


def log_prior(words: int) -> Float64Array:  # -> (V,)
    """Return the log probability of each word of a vocabulary without its context, by its rank."""
    weights = 1 / (1 + np.arange(words) + RANK_SHIFT)
    prior: Float64Array = np.log(weights / weights.sum())
    return prior


def directions(model: WordPredictor, direction: Direction = "both") -> tuple[str, ...]:
    """Return the directions to compute, of those that the model has."""
    if direction not in DIRECTIONS:
        raise InputError(f"direction {direction!r} is unknown. Use one of {', '.join(DIRECTIONS)}.")
    if not model.config.bidirectional:
        if direction == "backward":
            raise InputError(f"{model.source}: reads only forwards. Use the direction forward.")
        return ("forward",)
    return ("forward", "backward") if direction == "both" else (direction,)


def _score_group(
    model: WordPredictor,
    group: list[tuple[list[str], Float32Array]],
    names: tuple[str, ...],
    advance: Callable[[int], None] | None,
) -> Iterator[SentenceScore]:
    """Yield the scores of sentences whose softmax is computed together."""
    vocab = model.vocab
    size = model.config.lstm.dim
    sentences = [words for words, _ in group if words]
    tops = [top for words, top in group if words]
    scores: dict[str, Iterator[float]] = {}
    if "forward" in names:
        targets = [word for words in sentences for word in (*words, vocab.end)]
        scores["forward"] = _log_probabilities(model, [top[:-1, :size] for top in tops], targets)
    if "backward" in names:  # the boundary token last, as in the forward direction
        targets = [word for words in sentences for word in (*words, vocab.begin)]
        vectors = [np.roll(top[1:, -size:], -1, axis=0) for top in tops]
        scores["backward"] = _log_probabilities(model, vectors, targets)
    if advance is not None:
        advance(sum(map(len, sentences)))
    for words, _ in group:
        marked = [*words, vocab.end] if words else []
        ahead, behind = (
            list(itertools.islice(scores[name], len(marked))) if name in scores else None
            for name in ("forward", "backward")
        )
        items = [
            WordScore(word, ahead[i] if ahead else None, behind[i] if behind else None, word in vocab)
            for i, word in enumerate(marked)
        ]
        yield SentenceScore(
            tuple(items[:-1]),
            items[-1] if items else None,
            None if ahead is None else math.fsum(ahead),
            None if behind is None else math.fsum(behind),
        )


def _log_probabilities(model: WordPredictor, vectors: list[Float32Array], words: list[str]) -> Iterator[float]:
    """Return the log probability of each word, predicted by the vector at its position."""
    if not words:
        return iter(())
    ids = model.vocab.encode(words).astype(np.int64)
    values = -model.softmax.losses(np.concatenate(vectors), ids)
    share = math.log(len(model.vocab))  # the reason is at WordScore
    return iter((values - share * (ids == model.vocab.ids[model.vocab.unknown])).tolist())
