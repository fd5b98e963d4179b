"""Evaluation of a language model on text: perplexity, with the full softmax.

B rows, T time steps, N directions, P vector, V words, U distinct words, M predictions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from pyelmo.errors import InputError
from pyelmo.formats.pretrained import Pretrained
from pyelmo.model.bilm import ROWS
from pyelmo.model.softmax import AdaptiveSoftmax, Softmax
from pyelmo.text.vocabulary import Vocabulary

Context = Literal["sentence", "document"]
Document = list[list[str]]  # sentences of words

# Words of text in memory at once, and tokens (rows times time steps) in one call of the LSTM.
GROUP_WORDS = 200_000
RUN_TOKENS = 4096


@dataclass(frozen=True)
class Perplexity:
    """Perplexity of each direction over `words` predictions: all words and the end of each sentence.

    `unknown` is the number of out-of-vocabulary words among them.
    """

    forward: float
    backward: float | None
    words: int
    unknown: int

    @property
    def average(self) -> float:
        """The exponential of the mean loss of both directions."""
        return self.forward if self.backward is None else math.sqrt(self.forward * self.backward)


def perplexity(
    model: Pretrained,
    documents: Iterable[Document],
    *,
    context: Context = "document",
    batch_size: int = 32,
    advance: Callable[[int], None] | None = None,
) -> Perplexity:
    """Return the perplexity of each direction over documents; the batch size does not change it.

    With `context="document"`, the LSTM state is carried from sentence to sentence of a document; with "sentence", each
    sentence starts from a zero state. `advance` is called with the number of predictions of each part computed.
    """
    vocab, _ = vocabulary_and_softmax(model)
    sums, words, unknown = np.zeros(model.bilm.config.directions), 0, 0
    for group in _groups(documents):
        texts = group if context == "document" else [[sentence] for document in group for sentence in document]
        for losses, targets in _losses(model, texts, batch_size):
            sums += losses.double().sum(1).cpu().numpy()
            words += targets.shape[1]
            if advance is not None:
                advance(targets.shape[1])
            unknown += int((targets[0] == vocab.ids[vocab.unknown]).sum())
    if words == 0:
        raise InputError("there is no text to evaluate: the input has no words")
    means = np.exp(sums / words)
    return Perplexity(float(means[0]), float(means[1]) if len(means) > 1 else None, words, unknown)


def vocabulary_and_softmax(model: Pretrained) -> tuple[Vocabulary, Softmax | AdaptiveSoftmax]:
    """Return what predicts words, or raise an error that says what the model lacks."""
    vocab, softmax = model.lexicon.vocab, model.bilm.softmax
    if softmax is None:
        raise InputError(f"{model.source}: has no softmax, so it cannot predict words. Train one with elmo finetune.")
    if vocab is None:
        raise InputError(f"{model.source}: the words of its softmax are unknown. Give its vocabulary (--vocab FILE).")
    return vocab, softmax


def _groups(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """Yield lists of documents of about GROUP_WORDS words."""
    group: list[Document] = []
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
    """Return the token vectors (U, P) of words."""
    ids = model.lexicon.encode(words)
    device = next(model.bilm.parameters()).device
    return model.bilm.encode_words(
        None if ids.chars is None else torch.from_numpy(ids.chars).to(device),
        None if ids.words is None else torch.from_numpy(ids.words).to(device),
    )


def _losses(model: Pretrained, documents: list[Document], batch_size: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the losses and targets (N, M) of documents, each from a zero state.

    As in training, the input [begin, words] predicts [words, end]; backwards, [end, reversed words] predicts [reversed
    words, begin].
    """
    vocab, softmax = vocabulary_and_softmax(model)
    lstm = model.bilm.lstm
    distinct: dict[str, int] = {}
    sequences = [_sequences(document, vocab, distinct, model.bilm.config.directions) for document in documents]
    device = next(model.bilm.parameters()).device
    target_of = torch.from_numpy(vocab.encode(distinct)).long().to(device)
    sequences.sort(key=lambda sequence: -sequence.shape[-1])
    with torch.inference_mode():
        vectors = _encode(model, list(distinct))
        for start in range(0, len(sequences), batch_size):
            group = sequences[start : start + batch_size]
            group += [group[0][..., :0]] * (-len(group) % ROWS)  # empty sequences; the reason is at ROWS
            lengths = torch.tensor([sequence.shape[-1] for sequence in group], device=device)
            width = int(lengths.max())
            padded = np.zeros((2, model.bilm.config.directions, len(group), width), dtype=np.int64)
            for row, sequence in enumerate(group):
                padded[:, :, row, : sequence.shape[-1]] = sequence
            inputs, targets = torch.from_numpy(padded).to(device)
            state = None
            steps = max(1, RUN_TOKENS // len(group))
            for step in range(0, width, steps):
                part = slice(step, step + steps)
                mask = torch.arange(width, device=device)[part] < lengths[:, None]
                tokens = torch.nn.functional.embedding(inputs[:, :, part], vectors)
                outputs, state = lstm(tokens, state, mask)
                ids = target_of[targets[:, :, part][:, mask]]  # (N, M)
                predictions = outputs[-1][:, mask]
                losses = softmax.nll(predictions.flatten(0, 1).float(), ids.flatten()).view(ids.shape)
                yield losses, ids


def _sequences(document: Document, vocab: Vocabulary, distinct: dict[str, int], directions: int) -> np.ndarray:
    """Return inputs and targets (2, N, M) as indices of `distinct`, to which new words are added."""

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
