"""What turns words into layers: one interface, on a CPU or a GPU.

U words, P size of one direction, B sentences, N all their tokens with the two marks, L layers, D vector.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from pyelmo.arrays import Int32Array
from pyelmo.files import atomic_path
from pyelmo.text.lexicon import EncodedWords, Lexicon
from pyelmo.text.vocabulary import WordNumbers

# Bytes of word vectors that are kept, so that a word seen before is not encoded again: 32,768 words at 512 floats.
TABLE_BYTES = 64 * 2**20
TABLE_WORDS = 1 << 17  # at most, as their spelling takes memory, too


def table_rows(size: int) -> int:
    """Words whose vectors of `size` floats are kept."""
    return min(TABLE_WORDS, TABLE_BYTES // (4 * size))


Pick = Callable[[Tensor], Tensor]  # layers (L, .., D) -> those asked for, (L, .., D) or (.., D)


class Pending(Protocol):
    """A batch under way."""

    def result(self) -> np.ndarray:
        """Its vectors (.., N, D), sentence after sentence; waits until they are there."""


class Engine(Protocol):
    """Rows of a table of word vectors -> layers. Every sentence starts from a zero state and never sees another."""

    depth: int  # batches that should be under way at once
    batch_tokens: int  # of one batch at most, padding counted in
    batch_rows: int  # sentences of one batch at most
    size: int  # P
    table_rows: int  # words whose vectors are kept
    cuts: bool  # a sentence's vectors are copied out of its batch, which it would keep in memory otherwise

    def table(self, rows: int) -> Any:
        """Room for word vectors (rows, P), where this engine wants them."""

    def encode(self, words: EncodedWords) -> Any:
        """Word vectors (U, P), to be stored in the table."""

    def submit(self, table: Any, rows: Int32Array, lengths: npt.NDArray[np.int64], pick: Pick, dtype: str) -> Pending:
        """Start on sentences given as rows of the table (N,) and lengths (B,) that never rise.

        `dtype` of the result is float32 or float16.
        """


class WordTable:
    """Each distinct word encoded once. Bounded: when it is full it starts again from nothing, and no result changes."""

    def __init__(self, engine: Engine, lexicon: Lexicon, capacity: int | None = None) -> None:
        self._engine, self._lexicon = engine, lexicon
        self.capacity = capacity or engine.table_rows
        self._numbers = WordNumbers()
        self._values: Any = None
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._numbers)

    def clear(self) -> None:
        with self._lock:
            self._clear()

    def add(self, words: Sequence[str]) -> None:
        """Encode words ahead, those that are not there yet."""
        with self._lock:
            self._rows(words)

    def rows(self, sentences: Sequence[Sequence[str]]) -> tuple[Int32Array, Any]:
        """The row of every token, sentence after sentence with the marks around each (N,), and the vectors (.., P).

        Rows that were handed out never change, whatever is added or cleared later.
        """
        begin, end = (self._lexicon.begin,), (self._lexicon.end,)
        with self._lock:
            return self._rows([word for sentence in sentences for word in chain(begin, sentence, end)])

    def _rows(self, words: Sequence[str]) -> tuple[Int32Array, Any]:
        known, number = len(self), self._numbers.__getitem__
        rows = np.fromiter(map(number, words), dtype=np.int32, count=len(words))
        if known and len(self) > self.capacity:
            self._clear()
            known, rows = 0, np.fromiter(map(number, words), dtype=np.int32, count=len(words))
        if len(self) > known:
            self._encode(known)
        return rows, self._values

    def _encode(self, known: int) -> None:
        """The words after the first `known`."""
        words = list(islice(reversed(self._numbers), len(self) - known))[::-1]
        try:
            if self._values is None:
                self._values = self._engine.table(max(self.capacity, len(self)))
            self._values[known : len(self)] = self._engine.encode(self._lexicon.encode(words))
        except BaseException:
            self._clear()  # numbers without vectors
            raise

    def _clear(self) -> None:
        self._numbers.clear()
        self._values = None  # not filled again: who was given rows of it may still read them

    def save(self, path: str | Path) -> None:
        """Write the words and their vectors, for `load` in another process."""
        with self._lock:
            words = np.frombuffer(json.dumps(list(self._numbers)).encode("ascii"), np.uint8)
            values = torch.empty(0) if self._values is None else torch.as_tensor(self._values[: len(self)])
        with atomic_path(path) as part:
            save_file({"words": torch.from_numpy(words.copy()), "values": values.cpu().contiguous()}, part)

    def load(self, path: str | Path) -> None:
        """Take the words that a table of the same model saved, in place of those that are here."""
        tensors = load_file(path)
        words = json.loads(tensors["words"].numpy().tobytes())
        with self._lock:
            self._clear()
            if words:
                values = self._engine.table(max(self.capacity, len(words)))
                vectors = tensors["values"]
                values[: len(words)] = vectors if isinstance(values, Tensor) else vectors.numpy()
                self._values = values
            self._numbers.update(zip(words, range(len(words)), strict=True))
