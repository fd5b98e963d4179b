"""What turns words into layers: one interface, on a CPU or a GPU.

U words, P size of one direction, B sentences, N all their tokens with the two marks, L layers, D vector.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from pyelmo.files import atomic_path
from pyelmo.text.lexicon import IntArray, Lexicon, Words

# Bytes of word vectors that are kept, so that a word seen before is not encoded again: 32,768 words at 512 floats.
TABLE_BYTES = 64 * 2**20

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

    def table(self, rows: int) -> Any:
        """Room for word vectors (rows, P), where this engine wants them."""

    def encode(self, words: Words) -> Any:
        """Word vectors (U, P), to be stored in the table."""

    def submit(self, table: Any, rows: IntArray, lengths: npt.NDArray[np.int64], pick: Pick, dtype: str) -> Pending:
        """Start on sentences given as rows of the table (N,) and lengths (B,) that never rise.

        The table may change as soon as this returns. `dtype` of the result is float32 or float16.
        """


class WordTable:
    """Each distinct word encoded once. Bounded: when it is full it starts again from nothing, and no result changes."""

    def __init__(self, engine: Engine, lexicon: Lexicon, capacity: int | None = None) -> None:
        self._engine, self._lexicon = engine, lexicon
        self._capacity = max(capacity or TABLE_BYTES // (4 * engine.size), 1)
        self._numbers: dict[str, int] = {}
        self.values: Any = None

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def capacity(self) -> int:
        return self._capacity

    def clear(self) -> None:
        self._numbers.clear()

    def rows(self, sentences: Sequence[Sequence[str]]) -> IntArray:
        """The row of every token, sentence after sentence with the marks around each (N,)."""
        begin, end = [self._lexicon.begin], [self._lexicon.end]
        words = list(chain.from_iterable(chain(begin, sentence, end) for sentence in sentences))
        rows = list(map(self._numbers.get, words))
        if None in rows:
            self.add(words)
            rows = list(map(self._numbers.get, words))
        return np.array(rows, dtype=np.int32)

    def add(self, words: Sequence[str]) -> None:
        """Encode those of the words that are not there yet."""
        missing = [word for word in dict.fromkeys(words) if word not in self._numbers]
        if len(self) + len(missing) > self._capacity:
            self.clear()
            missing = list(dict.fromkeys(words))
        start = len(self)
        if self.values is None or len(self.values) < start + len(missing):  # more distinct words at once than it holds
            assert start == 0 or self.values is None
            self.values = self._engine.table(max(self._capacity, len(missing)))
        self.values[start : start + len(missing)] = self._engine.encode(self._lexicon.encode(missing))
        self._numbers.update(zip(missing, range(start, start + len(missing)), strict=True))

    def save(self, path: str | Path) -> None:
        """Write the words and their vectors, for `load` in another process."""
        words = np.frombuffer(json.dumps(list(self._numbers)).encode("ascii"), np.uint8)
        values = torch.empty(0) if self.values is None else torch.as_tensor(self.values[: len(self)])
        with atomic_path(path) as part:
            save_file({"words": torch.from_numpy(words.copy()), "values": values.cpu().contiguous()}, part)

    def load(self, path: str | Path) -> None:
        """Take the words that a table of the same model saved, in place of those that are here."""
        tensors = load_file(path)
        words = json.loads(tensors["words"].numpy().tobytes())
        self.clear()
        if words:
            self.values = self._engine.table(max(self._capacity, len(words)))
            vectors = tensors["values"]
            self.values[: len(words)] = vectors if isinstance(self.values, Tensor) else vectors.numpy()
        self._numbers.update(zip(words, range(len(words)), strict=True))
