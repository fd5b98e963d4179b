"""An endless stream of batches of a corpus for truncated back-propagation, from a position that can be saved.

    Corpus --shuffle sentences--> one sequence of N tokens --cut into B spans--> B rows of T time steps per batch

B batch rows (of all ranks together), T time steps, N tokens, K batches computed at once.

    forward    inputs <S> w1 .. wn      targets w1 .. wn </S>
    backward   inputs </S> wn .. w1     targets wn .. w1 <S>

Each epoch concatenates all sentences in a new order. Row r reads the r-th of B equal spans of this sequence, so that
each batch continues the rows of the batch before and the LSTM state can be carried over. An epoch contains every token
once, except for the last N mod (B T). A batch depends only on the corpus, the seed and its number: several ranks read
the same batches as one rank would, and a killed run can be resumed with another number of ranks.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pyelmo.arrays import Int32Array
from pyelmo.corpus.corpus import Corpus
from pyelmo.corpus.pieces import BEGIN_ID, END_ID
from pyelmo.errors import InputError

_TOKENS_AT_ONCE = 1 << 18
_Offsets = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Window:
    """T time steps of each row in one direction: the input types (B, T) and the target types (B, T).

    Both are type ids of the corpus; the model replaces targets outside its softmax vocabulary.
    """

    inputs: Int32Array
    targets: Int32Array


@dataclass(frozen=True)
class StreamBatch:
    """The windows of one training step."""

    forward: Window
    backward: Window


class Stream:
    """Iterates over the batches of one rank, epoch after epoch.

    `rows` is the number of rows of all ranks together. With `independent` the two directions read different sentences
    in a batch; otherwise they read the same sentences and have nearly all word types in common.
    """

    def __init__(
        self,
        corpus: Corpus,
        *,
        rows: int,
        steps: int,
        split: str = "train",
        seed: int = 0,
        shuffle: bool = True,
        independent: bool = False,
        rank: int = 0,
        ranks: int = 1,
    ) -> None:
        if rows < 1 or steps < 1:
            raise InputError(f"a batch of {rows} rows and {steps} time steps is invalid; both must be at least 1")
        if not 0 <= rank < ranks or rows % ranks:
            raise InputError(f"rank {rank} of {ranks} with {rows} rows is invalid; ranks must share the rows evenly")
        self._sentences = _Sentences(corpus, split)
        self.batches_per_epoch = self._sentences.tokens // (rows * steps)
        if not self.batches_per_epoch:
            problem = f"the split {split!r} has {self._sentences.tokens:,} tokens"
            needed = f"one batch of {rows:,} rows of {steps:,} time steps needs {rows * steps:,}"
            raise InputError(f"{corpus.folder}: {problem}, but {needed}. Use a smaller batch or more text.")
        self.rows, self.steps = rows, steps
        self._seed, self._shuffle, self._independent = seed, shuffle, independent
        share = rows // ranks
        self._own_rows = np.arange(rank * share, (rank + 1) * share)
        self._position = 0  # batches so far
        self._block_size = max(1, _TOKENS_AT_ONCE // (share * steps))  # K
        self._block: tuple[int, StreamBatch] | None = None  # number of the first batch, K batches as one (B, K T)
        self._orders: dict[tuple[int, int], _Order] = {}
        self._identity = {
            "rows": rows,
            "steps": steps,
            "split": split,
            "seed": seed,
            "shuffle": shuffle,
            "independent": independent,
            "corpus": _fingerprint(corpus, split),
        }

    @property
    def epoch(self) -> int:
        return self._position // self.batches_per_epoch

    @property
    def words_seen(self) -> int:
        """The number of targets so far in each direction, over all ranks."""
        return self._position * self.rows * self.steps

    def state(self) -> dict[str, Any]:
        """Return the position and the settings and corpus it belongs to, as plain values for JSON."""
        return {"batches": self._position, **self._identity}

    def restore(self, state: dict[str, Any]) -> None:
        """Go to a position that `state` returned, perhaps in a run with another number of ranks."""
        for key, value in self._identity.items():
            if state.get(key) != value:
                change = f"{key} was {state.get(key)!r}, is now {value!r}"
                problem = "the corpus is a different one" if key == "corpus" else change
                raise InputError(f"cannot resume from the saved position: {problem}. Use the same settings and corpus.")
        batches = state.get("batches")
        if not isinstance(batches, int) or not 0 <= batches < 2**53:
            raise InputError(f"cannot resume from the saved position: 'batches' is {batches!r}. Start again.")
        self._position = batches

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> StreamBatch:
        epoch, step = divmod(self._position, self.batches_per_epoch)
        index = step % self._block_size
        first = self._position - index
        if self._block is None or self._block[0] != first:
            count = min(self._block_size, self.batches_per_epoch - (step - index))
            self._block = (first, self._make(epoch, step - index, count))
        self._position += 1
        block = self._block[1]
        return StreamBatch(self._cut(block.forward, index), self._cut(block.backward, index))

    def _cut(self, window: Window, index: int) -> Window:
        columns = slice(index * self.steps, (index + 1) * self.steps)
        return Window(np.ascontiguousarray(window.inputs[:, columns]), np.ascontiguousarray(window.targets[:, columns]))

    def _make(self, epoch: int, step: int, count: int) -> StreamBatch:
        """Return `count` batches of an epoch, from `step` on, as one wide batch."""
        begin = self._own_rows * (self.batches_per_epoch * self.steps) + step * self.steps  # (B,)
        width = count * self.steps
        forward = self._order(epoch, 0)
        # The input is the target of the time step before, but a sentence begins with <S> instead of </S>.
        targets = forward.gather(begin, width)  # (B, K T)
        inputs = np.concatenate([forward.tokens_at(begin - 1)[:, None], targets[:, :-1]], axis=1)
        forward_window = Window(_with_begin(inputs), targets)
        backward = self._order(epoch, 1 if self._independent else 0)
        # Reversed sentences begin with </S>; the target is the input of the next time step, or <S> at the end.
        inputs = backward.gather(begin, width, reverse=True)
        targets = np.concatenate([inputs[:, 1:], backward.tokens_at(begin + width, reverse=True)[:, None]], axis=1)
        return StreamBatch(forward_window, Window(inputs, _with_begin(targets)))

    def _order(self, epoch: int, direction: int) -> _Order:
        if (epoch, direction) not in self._orders:
            self._orders = {key: order for key, order in self._orders.items() if key[0] == epoch}
            seeds = (self._seed, epoch, direction) if self._shuffle else None
            self._orders[epoch, direction] = _Order(self._sentences, seeds)
        return self._orders[epoch, direction]


def _with_begin(ids: Int32Array) -> Int32Array:
    """Replace </S> by <S> in place."""
    ids[ids == END_ID] = BEGIN_ID
    return ids


def _fingerprint(corpus: Corpus, split: str) -> str:
    checksums = [file.checksum for file in corpus.manifest.files if file.name.startswith(f"{split}-")]
    return hashlib.blake2b(" ".join([str(corpus.vocab_size), *checksums]).encode(), digest_size=8).hexdigest()


class _Sentences:
    """All sentences of a split, with sentences and tokens numbered across its shards."""

    def __init__(self, corpus: Corpus, split: str) -> None:
        self._shards = [np.asarray(shard) for shard in corpus.shards(split)]
        self._first_tokens = np.cumsum([0, *map(len, self._shards)])
        indexes = corpus.sentence_starts(split)
        self.tokens = int(self._first_tokens[-1])
        self.starts: _Offsets = np.concatenate(
            [
                np.zeros(0, np.int64),
                *(index[:-1] + first for index, first in zip(indexes, self._first_tokens, strict=False)),
            ]
        )
        self.lengths = np.diff(np.append(self.starts, self.tokens)).astype(np.int32)

    def __getitem__(self, tokens: _Offsets) -> Int32Array:
        if len(self._shards) == 1:
            return self._shards[0][tokens]
        ids = np.empty(tokens.shape, np.int32)
        shard_of = np.searchsorted(self._first_tokens, tokens, "right") - 1
        for shard in np.unique(shard_of):
            in_shard = shard_of == shard
            ids[in_shard] = self._shards[shard][tokens[in_shard] - self._first_tokens[shard]]
        return ids


class _Order:
    """The sentences of one epoch, concatenated: the i-th starts at position `starts[i]`, the last value is the end."""

    def __init__(self, sentences: _Sentences, seeds: tuple[int, int, int] | None) -> None:
        count = len(sentences.lengths)
        self._sentences = sentences
        self._order = np.arange(count, dtype=np.int32) if seeds is None else _permutation(count, *seeds)
        self._starts: _Offsets = np.zeros(count + 1, np.int64)
        np.cumsum(sentences.lengths[self._order], out=self._starts[1:])

    def gather(self, begin: _Offsets, width: int, *, reverse: bool = False) -> Int32Array:
        """Return the tokens at positions begin[r] to begin[r] + width for each row r (B, W).

        With `reverse` each sentence is read from its end to its start.
        """
        starts, end = self._starts, begin + width
        low = np.searchsorted(starts, begin, "right") - 1  # first sentence of each row
        high = np.searchsorted(starts, end, "left")  # one after the last sentence of each row
        counts = high - low
        row = np.repeat(np.arange(len(begin)), counts)
        index = np.arange(counts.sum()) + np.repeat(low - (np.cumsum(counts) - counts), counts)
        lengths = np.minimum(starts[index + 1], end[row]) - np.maximum(starts[index], begin[row])
        position = (begin[:, None] + np.arange(width)).ravel()  # (B W,)
        tokens = self._offset(index, reverse).repeat(lengths) + (-position if reverse else position)
        return self._sentences[tokens].reshape(len(begin), width)

    def tokens_at(self, position: _Offsets, *, reverse: bool = False) -> Int32Array:
        """Return the token at each position; </S> before the first and after the last position."""
        outside = (position < 0) | (position >= self._starts[-1])
        position = np.where(outside, 0, position)
        index = np.searchsorted(self._starts, position, "right") - 1
        tokens = self._sentences[self._offset(index, reverse) + (-position if reverse else position)]
        return np.where(outside, np.int32(END_ID), tokens)

    def _offset(self, index: npt.NDArray[np.intp], reverse: bool) -> _Offsets:
        """Return what to add to a position in the i-th sentence (or to its negative) to get its token number."""
        starts = self._sentences.starts[self._order[index]]
        offset: _Offsets = starts + self._starts[index + 1] - 1 if reverse else starts - self._starts[index]
        return offset


def _permutation(count: int, seed: int, epoch: int, direction: int) -> npt.NDArray[np.int32]:
    """Sort numbers by their hashes (SplitMix64); unlike numpy's shuffle this is the same in every version of numpy."""
    key = hashlib.blake2b(f"{seed} {epoch} {direction}".encode(), digest_size=8).digest()
    hashes = np.arange(count, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.frombuffer(key, "<u8")
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        hashes ^= hashes >> np.uint64(shift)
        hashes *= np.uint64(factor)
    hashes ^= hashes >> np.uint64(31)
    return np.argsort(hashes, kind="stable").astype(np.int32)
