"""Tokenised sentences -> their vectors, one by one in input order, in constant memory.

    sentences --> windows of many sentences --> batches of similar length --> engine --> vectors of each sentence

The sentences of a window are sorted by length, so that those of a batch need little padding. The vectors of a window
leave it together, in input order.

N tokens of all sentences of a window with boundary tokens, T tokens of one sentence, L layers, D vector.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pyelmo.arrays import Float32Array
from pyelmo.embed.engines.base import PendingBatch, PickLayers
from pyelmo.embed.engines.word_table import WordTable
from pyelmo.embed.layers import pool, pool_words
from pyelmo.errors import InputError

# The first window is smaller by this factor, so that an engine that runs beside the host has work soon.
FIRST_WINDOW = 8


@dataclass(frozen=True, kw_only=True)
class VectorOptions:
    """What to compute for each sentence."""

    pick: PickLayers
    pooling: str | None
    keep_boundaries: bool
    dtype: str
    align: Float32Array | None = None  # (D, D): a vector x becomes align @ x
    convert: Callable[[np.ndarray], Any] = lambda array: array  # to what the caller wants


@dataclass
class _Window:
    """Sentences whose vectors are yielded together; `missing` of them are not computed yet."""

    results: list[Any]
    missing: int


@dataclass(frozen=True)
class _SubmittedBatch:
    window: _Window
    sentences: npt.NDArray[np.int64]  # their numbers in the window
    lengths: npt.NDArray[np.int64]  # with boundary tokens
    pending: PendingBatch


def stream_vectors(
    table: WordTable,
    sentences: Iterable[Sequence[str]],
    options: VectorOptions,
    *,
    batch_size: int | None,
    window: int,
) -> Iterator[Any]:
    """Yield the vectors of each sentence; `window` is the number of tokens in a window."""
    engine = table.engine
    batch_sentences = min(batch_size or engine.batch_sentences, engine.batch_sentences)
    # Pooling and alignment are computed in float32, whatever the dtype of the result.
    dtype = "float32" if options.pooling or options.align is not None else options.dtype
    submitted: deque[_SubmittedBatch] = deque()
    windows: deque[_Window] = deque()
    done = 0  # sentences of earlier windows
    size = max(window, engine.window_tokens)
    first = max(window, size // FIRST_WINDOW)
    for tokens, lengths in split_windows(sentences, size, table.boundaries, first=first):
        windows.append(_Window([None] * len(lengths), len(lengths)))
        # All words of a window are looked up in the order of the text: after sorting by length, words that follow each
        # other would be far apart in memory.
        try:
            rows, vectors = table.look_up(tokens)  # (N,)
        except TypeError:
            for number, words in enumerate(np.split(np.array(tokens, object), lengths.cumsum()[:-1]), done):
                check_words(words[1:-1].tolist(), number)
            raise
        done += len(lengths)
        starts = lengths.cumsum() - lengths
        for batch in _batches(lengths, batch_sentences, engine.batch_tokens):
            own = lengths[batch]
            positions = np.arange(own.sum()) + np.repeat(starts[batch] + own - own.cumsum(), own)
            pending = engine.submit(vectors, rows[positions], own, options.pick, dtype)
            submitted.append(_SubmittedBatch(windows[-1], batch, own, pending))
            if len(submitted) >= engine.max_pending:
                _finish(submitted.popleft(), options, copy=engine.copy_sentences)
        while windows and not windows[0].missing:
            yield from windows.popleft().results
    while submitted:
        _finish(submitted.popleft(), options, copy=engine.copy_sentences)
    for remaining in windows:
        yield from remaining.results


def stream_words(
    split: Iterable[tuple[list[str], list[tuple[int, int]]]],
    stream: Callable[[Iterable[list[str]]], Iterator[Any]],
    options: VectorOptions,
) -> Iterator[Any]:
    """Yield the vectors of the words of each sentence: the means of those that `stream` returns for their tokens."""
    waiting: deque[list[tuple[int, int]]] = deque()

    def tokens() -> Iterator[list[str]]:
        for sentence, groups in split:
            waiting.append(groups)
            yield sentence

    for values in stream(tokens()):
        pooled = pool_words(values, waiting.popleft()).astype(options.dtype, copy=False)
        yield options.convert(pooled)


def split_windows(
    sentences: Iterable[Sequence[str]], size: int, boundaries: tuple[str, ...] = (), *, first: int | None = None
) -> Iterator[tuple[list[str], npt.NDArray[np.int64]]]:
    """Yield the tokens of groups of sentences, and the length of each sentence.

    A group has about `size` tokens, counted with boundary tokens. The first one has `first`, and the next ones twice as
    many as the one before, up to `size`. If boundary tokens are given, each sentence stands between them, and they
    count in its length.
    """
    least = size if first is None else first
    begin, end = boundaries[:1], boundaries[1:]
    tokens: list[str] = []
    lengths: list[int] = []
    for sentence in sentences:
        before = len(tokens)
        tokens += begin
        tokens += sentence
        tokens += end
        lengths.append(len(tokens) - before)
        if len(tokens) + (2 - len(boundaries)) * len(lengths) >= least:
            yield tokens, np.array(lengths)
            tokens, lengths, least = [], [], min(size, 2 * least)
    if lengths:
        yield tokens, np.array(lengths)


def check_words(words: Sequence[str], sentence: int) -> None:
    """Raise an error for the first word of a sentence that is no string."""
    for position, word in enumerate(words):
        if not isinstance(word, str):
            raise InputError(
                f"sentence {sentence}, word {position}: expected a string, got {type(word).__name__} {word!r}"
            )


def _batches(lengths: npt.NDArray[np.int64], max_sentences: int, max_tokens: int) -> Iterator[npt.NDArray[np.int64]]:
    """Yield the numbers of sentences in groups, longest first. A sentence longer than `max_tokens` runs alone."""
    order, start = np.argsort(-lengths, kind="stable"), 0
    while start < len(order):
        count = min(max_sentences, max(1, max_tokens // int(lengths[order[start]])))
        yield order[start : start + count]
        start += count


def _finish(batch: _SubmittedBatch, options: VectorOptions, *, copy: bool) -> None:
    """Wait for a batch and store the vectors of its sentences in their window."""
    values = batch.pending.result()  # (.., N, D)
    ends = batch.lengths.cumsum().tolist()
    skipped = 0 if options.keep_boundaries else 1
    for number, start, end in zip(batch.sentences.tolist(), [0, *ends[:-1]], ends, strict=True):
        vectors = values[..., start + skipped : end - skipped, :]  # (.., T, D)
        if options.align is not None:
            # One sentence at a time, because the sums of a product depend on the number of its rows.
            vectors = vectors @ options.align.T
        if options.pooling is not None:
            vectors = pool(vectors, options.pooling)
        if copy or vectors.dtype != options.dtype:
            vectors = np.array(vectors, dtype=options.dtype)
        batch.window.results[number] = options.convert(vectors)
    batch.window.missing -= len(batch.sentences)
