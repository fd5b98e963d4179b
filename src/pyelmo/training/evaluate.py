"""What a language model says of text: perplexity, the probability of each word, the likeliest words for a gap.

Always with the full softmax. B rows, T steps, P vector, V words, U distinct words.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from pyelmo.errors import InputError
from pyelmo.formats.pretrained import Pretrained
from pyelmo.model.softmax import AdaptiveSoftmax, Softmax
from pyelmo.text.vocabulary import Vocabulary

Context = Literal["sentence", "document"]
Sentences = list[list[str]]

# Words of text held at once, and tokens (rows times steps) run at once.
GROUP_WORDS = 200_000
RUN_TOKENS = 4096


@dataclass(frozen=True)
class Perplexity:
    """Over `words` predictions a direction (each sentence's words and its end), `unknown` of them the unknown mark."""

    forward: float
    backward: float | None
    words: int
    unknown: int

    @property
    def average(self) -> float:
        """Of the joint likelihood: the exponential of the mean of both directions' losses."""
        return self.forward if self.backward is None else math.sqrt(self.forward * self.backward)


@dataclass(frozen=True)
class WordScore:
    """Natural logarithms of a word's probability given what stands before it, and after it."""

    word: str
    forward: float
    backward: float | None
    known: bool


@dataclass(frozen=True)
class Guess:
    """A word for a gap: its share of the combined probability, and what each direction alone gives it."""

    word: str
    probability: float
    forward: float
    backward: float | None


def perplexity(
    model: Pretrained, documents: Iterable[Sentences], *, context: Context = "document", batch_size: int = 32
) -> Perplexity:
    """Perplexity of each direction, the same for any batch size.

    `context` says how far the state is carried: through a document, sentence by sentence, or only within a sentence.
    """
    vocab, _ = _needed(model)
    sums, words, unknown = np.zeros(model.bilm.config.directions), 0, 0
    for group in _groups(documents):
        rows = group if context == "document" else [[sentence] for document in group for sentence in document]
        for losses, targets in _losses(model, rows, batch_size):
            sums += losses.double().sum(1).cpu().numpy()
            words += targets.shape[1]
            unknown += int((targets[0] == vocab.ids[vocab.unknown]).sum())
    if words == 0:
        raise InputError("there is no text to evaluate")
    means = np.exp(sums / words)
    return Perplexity(float(means[0]), float(means[1]) if len(means) > 1 else None, words, unknown)


def score(model: Pretrained, sentences: Iterable[Sequence[str]]) -> Iterator[list[WordScore]]:
    """The log probability of each word of each sentence by itself, in both directions."""
    vocab, _ = _needed(model)
    for sentence in sentences:
        words = list(sentence)
        if not words:
            yield []
            continue
        losses = torch.cat([part for part, _ in _losses(model, [[words]], 1)], 1)  # a long sentence comes in parts
        forward = -losses[0, :-1]  # the last prediction is the end mark
        backward = -losses[1, :-1].flip(0) if len(losses) > 1 else None
        yield [
            WordScore(word, float(forward[place]), None if backward is None else float(backward[place]), word in vocab)
            for place, word in enumerate(words)
        ]


def predict(model: Pretrained, before: Sequence[str], after: Sequence[str], *, count: int = 10) -> list[Guess]:
    """The likeliest words between two pieces of a sentence, by the product of both directions' probabilities."""
    vocab, softmax = _needed(model)
    sides = [[vocab.begin, *before], [vocab.end, *reversed(after)]][: model.bilm.config.directions]
    scores = []
    with torch.inference_mode():
        for direction, words in enumerate(sides):
            tokens = _encode(model, words)
            reading = tokens[None, None].expand(model.bilm.config.directions, -1, -1, -1)
            outputs, _ = model.bilm.lstm(reading)
            scores.append(softmax(outputs[-1][direction, :, -1])[0].cpu())
    both = torch.stack(scores).sum(0)
    marks = [vocab.ids[mark] for mark in (vocab.begin, vocab.end, vocab.unknown)]
    both[marks] = -math.inf  # a gap holds a word
    shares = both.softmax(0)
    best = shares.topk(min(count, len(vocab) - len(marks))).indices.tolist()
    return [
        Guess(vocab.words[i], float(shares[i]), float(scores[0][i]), float(scores[1][i]) if len(scores) > 1 else None)
        for i in best
    ]


def _needed(model: Pretrained) -> tuple[Vocabulary, Softmax | AdaptiveSoftmax]:
    vocab, softmax = model.lexicon.vocab, model.bilm.softmax
    if softmax is None:
        raise InputError(f"{model.source}: has no softmax, so it cannot predict words; train one with elmo finetune")
    if vocab is None:
        raise InputError(f"{model.source}: the words of its softmax are not known; give its vocabulary (--vocab FILE)")
    return vocab, softmax


def _groups(documents: Iterable[Sentences]) -> Iterator[list[Sentences]]:
    group: list[Sentences] = []
    size = 0
    for document in documents:
        if document:
            group.append(document)
            size += sum(map(len, document))
        if size > GROUP_WORDS:
            yield group
            group, size = [], 0
    if group:
        yield group


def _encode(model: Pretrained, words: list[str]) -> Tensor:
    """Token vectors (U, P) of some words."""
    ids = model.lexicon.encode(words)
    device = next(model.bilm.parameters()).device
    return model.bilm.encode_words(
        None if ids.chars is None else torch.from_numpy(ids.chars).to(device),
        None if ids.words is None else torch.from_numpy(ids.words).to(device),
    )


def _losses(model: Pretrained, rows: list[Sentences], batch_size: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Losses and targets (N, M) of rows of sentences, each row from a zero state.

    A sentence is read as [begin, words] and predicts [words, end]; backwards as [end, reversed words] and predicts
    [reversed words, begin], as in training.
    """
    vocab, softmax = _needed(model)
    lstm = model.bilm.lstm
    distinct: dict[str, int] = {}
    sequences = [_sequences(row, vocab, distinct, model.bilm.config.directions) for row in rows]
    device = next(model.bilm.parameters()).device
    target_of = torch.from_numpy(vocab.encode(distinct)).long().to(device)
    sequences.sort(key=lambda sequence: -sequence.shape[-1])
    with torch.inference_mode():
        vectors = _encode(model, list(distinct))
        for start in range(0, len(sequences), batch_size):
            group = sequences[start : start + batch_size]
            group += [group[0][..., :0]] * (-len(group) % 8)  # full rows: see pad_rows
            lengths = torch.tensor([sequence.shape[-1] for sequence in group], device=device)
            width = int(lengths.max())
            padded = np.zeros((2, model.bilm.config.directions, len(group), width), dtype=np.int64)
            for row, sequence in enumerate(group):
                padded[:, :, row, : sequence.shape[-1]] = sequence
            inputs, targets = torch.from_numpy(padded).to(device)
            state = None
            steps = max(1, RUN_TOKENS // len(group))
            for step in range(0, width, steps):
                here = slice(step, step + steps)
                mask = torch.arange(width, device=device)[here] < lengths[:, None]
                tokens = torch.nn.functional.embedding(inputs[:, :, here], vectors)
                outputs, state = lstm(tokens, state, mask)
                real = target_of[targets[:, :, here][:, mask]]  # (N, M)
                predictions = outputs[-1][:, mask]
                losses = softmax.nll(predictions.flatten(0, 1).float(), real.flatten()).view(real.shape)
                yield losses, real


def _sequences(
    document: Sentences, vocab: Vocabulary, distinct: dict[str, int], directions: int
) -> np.ndarray:  # (2, N, M): inputs and targets as numbers of distinct words
    def number(word: str) -> int:
        return distinct.setdefault(word, len(distinct))

    begin, end = number(vocab.begin), number(vocab.end)
    forward: list[list[int]] = [[], []]
    backward: list[list[int]] = [[], []]
    for sentence in document:
        words = [number(word) for word in sentence]
        forward[0] += [begin, *words]
        forward[1] += [*words, end]
        words.reverse()
        backward[0] += [end, *words]
        backward[1] += [*words, begin]
    return np.array([forward, backward][:directions], dtype=np.int64).transpose(1, 0, 2)
