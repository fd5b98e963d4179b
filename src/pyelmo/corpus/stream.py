"""A corpus -> batches for truncated back-propagation, without end, from a position that can be saved.

    Corpus --shuffle sentences--> one long line of tokens --cut into B spans--> B rows, T steps at a time

B rows (of all ranks together), T steps, N tokens, K batches made at once.

    forward    inputs <S> w1 .. wn      targets w1 .. wn </S>
    backward   inputs </S> wn .. w1     targets wn .. w1 <S>

Each epoch lays all sentences end to end in a new order; row r reads the r-th of B equal spans of it, so that a row's
batches follow one another and its LSTM state may be carried on. Every token comes once in an epoch, but for the last
N mod (B T). A batch depends on the corpus, the seed and its number alone: two ranks see just what one would, and a run
that was killed goes on where it was, with as many ranks as it likes.
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

_MADE_AT_ONCE = 1 << 18  # tokens
_Offsets = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Window:
    """T steps of each row in one direction: the types to read (B, T) and those to predict (B, T).

    Both are types of the corpus; which of them a softmax knows is the model's affair.
    """

    inputs: Int32Array
    targets: Int32Array


@dataclass(frozen=True)
class StreamBatch:
    """One step of training."""

    forward: Window
    backward: Window


class Stream:
    """Iterates over the batches of one rank, epoch after epoch.

    `rows` counts the rows of all ranks together. With `independent` the two directions read different sentences at a
    time; without it they read the same ones, so that they have nearly all their word types in common.
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
            raise InputError(f"a batch of {rows} rows and {steps} steps: both must be at least 1")
        if not 0 <= rank < ranks or rows % ranks:
            raise InputError(f"rank {rank} of {ranks} with {rows} rows: the ranks must share the rows evenly")
        self._sentences = _Sentences(corpus, split)
        self.batches_per_epoch = self._sentences.tokens // (rows * steps)
        if not self.batches_per_epoch:
            size = f"{self._sentences.tokens:,} words and ends of sentences"
            wanted = f"one batch of {rows:,} rows of {steps:,} steps takes {rows * steps:,}"
            raise InputError(f"{corpus.folder}: {size} to {split} on; {wanted}. Use a smaller batch or more text.")
        self.rows, self.steps = rows, steps
        self._seed, self._shuffle, self._independent = seed, shuffle, independent
        share = rows // ranks
        self._own_rows = np.arange(rank * share, (rank + 1) * share)
        self._position = 0  # batches so far
        self._block = max(1, _MADE_AT_ONCE // (share * steps))  # K
        self._made: tuple[int, StreamBatch] | None = (
            None  # the first of K batches, and all of them side by side: (B, K T)
        )
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
        """Targets so far in each direction, over all ranks."""
        return self._position * self.rows * self.steps

    def state(self) -> dict[str, Any]:
        """The position, and what it is a position in; plain values for JSON."""
        return {"batches": self._position, **self._identity}

    def restore(self, state: dict[str, Any]) -> None:
        """Go to a position that `state` gave, perhaps in a run with another number of ranks."""
        for key, mine in self._identity.items():
            if state.get(key) != mine:
                what = "the corpus is another one" if key == "corpus" else f"{key} was {state.get(key)!r}, now {mine!r}"
                raise InputError(f"cannot go on from the saved position: {what}. Use the same settings and corpus.")
        self._position = int(state["batches"])

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> StreamBatch:
        epoch, step = divmod(self._position, self.batches_per_epoch)
        inside = step % self._block
        first = self._position - inside
        if self._made is None or self._made[0] != first:
            count = min(self._block, self.batches_per_epoch - (step - inside))
            self._made = (first, self._make(epoch, step - inside, count))
        self._position += 1
        made = self._made[1]
        return StreamBatch(self._cut(made.forward, inside), self._cut(made.backward, inside))

    def _cut(self, window: Window, index: int) -> Window:
        columns = slice(index * self.steps, (index + 1) * self.steps)
        return Window(np.ascontiguousarray(window.inputs[:, columns]), np.ascontiguousarray(window.targets[:, columns]))

    def _make(self, epoch: int, step: int, count: int) -> StreamBatch:
        """`count` batches of an epoch, from `step` on."""
        begin = self._own_rows * (self.batches_per_epoch * self.steps) + step * self.steps  # (B,)
        width = count * self.steps
        forward = self._order(epoch, 0)
        # What is read is what was to be predicted one step before; each sentence begins with <S> in place of </S>.
        targets = forward.gather(begin, width)  # (B, K T)
        inputs = np.concatenate([forward.tokens_at(begin - 1)[:, None], targets[:, :-1]], axis=1)
        ahead = Window(_begun(inputs), targets)
        backward = self._order(epoch, 1 if self._independent else 0)
        # The other way round: a sentence is read from its </S>, and what is to be predicted is read one step later.
        inputs = backward.gather(begin, width, reverse=True)
        targets = np.concatenate([inputs[:, 1:], backward.tokens_at(begin + width, reverse=True)[:, None]], axis=1)
        return StreamBatch(ahead, Window(inputs, _begun(targets)))

    def _order(self, epoch: int, direction: int) -> _Order:
        if (epoch, direction) not in self._orders:
            self._orders = {key: order for key, order in self._orders.items() if key[0] == epoch}
            mixed = (self._seed, epoch, direction) if self._shuffle else None
            self._orders[epoch, direction] = _Order(self._sentences, mixed)
        return self._orders[epoch, direction]


def _begun(ids: Int32Array) -> Int32Array:
    ids[ids == END_ID] = BEGIN_ID
    return ids


def _fingerprint(corpus: Corpus, split: str) -> str:
    checksums = [file.checksum for file in corpus.manifest.files if file.name.startswith(f"{split}-")]
    return hashlib.blake2b(" ".join([str(corpus.vocab_size), *checksums]).encode(), digest_size=8).hexdigest()


class _Sentences:
    """All sentences of a split over its shards, as one numbering of sentences and one of tokens."""

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
        found = np.empty(tokens.shape, np.int32)
        shard_of = np.searchsorted(self._first_tokens, tokens, "right") - 1
        for shard in np.unique(shard_of):
            here = shard_of == shard
            found[here] = self._shards[shard][tokens[here] - self._first_tokens[shard]]
        return found


class _Order:
    """The sentences of one epoch laid end to end: `places[i]` is where the i-th begins, and last where all end."""

    def __init__(self, sentences: _Sentences, mixed: tuple[int, int, int] | None) -> None:
        count = len(sentences.lengths)
        self._sentences = sentences
        self._order = np.arange(count, dtype=np.int32) if mixed is None else _permutation(count, *mixed)
        self._places: _Offsets = np.zeros(count + 1, np.int64)
        np.cumsum(sentences.lengths[self._order], out=self._places[1:])

    def gather(self, begin: _Offsets, width: int, *, reverse: bool = False) -> Int32Array:
        """The tokens from places begin[r] to begin[r] + width for each row r, perhaps with sentences back to front."""
        places, end = self._places, begin + width
        low = np.searchsorted(places, begin, "right") - 1  # first and last sentence of each row
        high = np.searchsorted(places, end, "left")
        counts = high - low
        row = np.repeat(np.arange(len(begin)), counts)
        index = np.arange(counts.sum()) + np.repeat(low - (np.cumsum(counts) - counts), counts)
        inside = np.minimum(places[index + 1], end[row]) - np.maximum(places[index], begin[row])  # tokens of each
        place = (begin[:, None] + np.arange(width)).ravel()  # (B W,)
        tokens = self._offset(index, reverse).repeat(inside) + (-place if reverse else place)
        return self._sentences[tokens].reshape(len(begin), width)

    def tokens_at(self, place: _Offsets, *, reverse: bool = False) -> Int32Array:
        """The token at each place; the end mark before the first and after the last."""
        outside = (place < 0) | (place >= self._places[-1])
        place = np.where(outside, 0, place)
        index = np.searchsorted(self._places, place, "right") - 1
        found = self._sentences[self._offset(index, reverse) + (-place if reverse else place)]
        return np.where(outside, np.int32(END_ID), found)

    def _offset(self, index: npt.NDArray[np.intp], reverse: bool) -> _Offsets:
        """What leads from a place within the i-th sentence to its token: added to the place, or to minus the place."""
        starts = self._sentences.starts[self._order[index]]
        offset: _Offsets = starts + self._places[index + 1] - 1 if reverse else starts - self._places[index]
        return offset


def _permutation(count: int, seed: int, epoch: int, direction: int) -> npt.NDArray[np.int32]:
    """An order of `count` sentences by hashes of their numbers (SplitMix64): the same with every version of numpy."""
    key = hashlib.blake2b(f"{seed} {epoch} {direction}".encode(), digest_size=8).digest()
    mixed = np.arange(count, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.frombuffer(key, "<u8")
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed ^= mixed >> np.uint64(shift)
        mixed *= np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return np.argsort(mixed, kind="stable").astype(np.int32)
