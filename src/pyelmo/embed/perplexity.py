"""Evaluation of a language model on text: perplexity, with the full softmax.

B rows, T time steps, N directions, P vector, V words, U distinct words, M predictions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from pyelmo.arrays import Float64Array, Int64Array
from pyelmo.embed.engines.cpu import CpuEngine
from pyelmo.embed.scoring import WordPredictor
from pyelmo.errors import InputError
from pyelmo.text.lexicon import Lexicon
from pyelmo.text.vocabulary import Vocabulary

Context = Literal["sentence", "document"]
Document = list[list[str]]  # sentences of words
# Documents -> the losses and the targets (N, M) of their words, in parts.
Losses = tuple[Float64Array, Int64Array]
DocumentLosses = Callable[[list[Document]], Iterator[Losses]]

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
    compute: DocumentLosses,
    vocab: Vocabulary,
    documents: Iterable[Document],
    *,
    context: Context = "document",
    advance: Callable[[int], None] | None = None,
) -> Perplexity:
    """Return the perplexity of each direction over documents.

    With `context="document"`, the LSTM state is carried from sentence to sentence of a document; with "sentence", each
    sentence starts from a zero state. `advance` is called with the number of predictions of each part computed.
    """
    sums, words, unknown = np.zeros(1), 0, 0
    for group in _groups(documents):
        texts = group if context == "document" else [[sentence] for document in group for sentence in document]
        for losses, targets in compute(texts):
            sums = sums + losses.sum(1)
            words += targets.shape[1]
            if advance is not None:
                advance(targets.shape[1])
            unknown += int((targets[0] == vocab.ids[vocab.unknown]).sum())
    if words == 0:
        raise InputError("there is no text to evaluate: the input has no words")
    means = np.exp(sums / words)
    return Perplexity(float(means[0]), float(means[1]) if len(means) > 1 else None, words, unknown)


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


@dataclass(frozen=True)
class DocumentBatch:
    """Documents as rows, the longest first, as in training: the input [begin, words] predicts [words, end].

    Backwards, [end, reversed words] predicts [reversed words, begin]. All words are indices of the distinct ones.
    """

    inputs: Int64Array  # (N, B, T)
    targets: Int64Array  # (N, B, T)
    lengths: Int64Array  # (B,)


def document_batches(
    documents: list[Document], vocab: Vocabulary, directions: int, size: int
) -> tuple[list[str], Iterator[DocumentBatch]]:
    """Return the distinct words of documents, and the documents in batches of `size` of similar length."""
    distinct: dict[str, int] = {}
    sequences = [_sequences(document, vocab, distinct, directions) for document in documents]
    sequences.sort(key=lambda sequence: -sequence.shape[-1])

    def batches() -> Iterator[DocumentBatch]:
        for start in range(0, len(sequences), size):
            group = sequences[start : start + size]
            lengths = np.array([sequence.shape[-1] for sequence in group])
            padded = np.zeros((2, directions, len(group), lengths[0]), dtype=np.int64)
            for row, sequence in enumerate(group):
                padded[:, :, row, : sequence.shape[-1]] = sequence
            yield DocumentBatch(padded[0], padded[1], lengths)

    return list(distinct), batches()


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


def engine_losses(
    engine: CpuEngine, lexicon: Lexicon, model: WordPredictor, documents: list[Document], *, batch_size: int
) -> Iterator[Losses]:
    """Yield the losses and targets (N, M) of documents, each from a zero state, computed on a CPU."""
    words, batches = document_batches(documents, model.vocab, model.config.directions, batch_size)
    target_of = model.vocab.encode(words).astype(np.int64)
    vectors = engine.encode(lexicon.encode(words))  # (U, P)
    for batch in batches:
        states = engine.zero_states(len(batch.lengths))
        steps = max(1, RUN_TOKENS // len(batch.lengths))
        for first in range(0, int(batch.lengths[0]), steps):
            time = np.arange(first, min(first + steps, int(batch.lengths[0])))
            live: npt.NDArray[np.int64] = (time[:, None] < batch.lengths).sum(1)
            rows = np.concatenate([np.arange(count) for count in live])  # step after step
            columns = np.repeat(time, live)
            tops = engine.run_on([vectors[side[rows, columns]] for side in batch.inputs], live, states)
            targets = target_of[batch.targets[:, rows, columns]]  # (N, M)
            losses = [model.softmax.losses(top, own) for top, own in zip(tops, targets, strict=True)]
            yield np.stack(losses), targets
