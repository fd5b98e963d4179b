"""A bounded cache of word vectors, so that each distinct word is normalised and encoded once.

P size of one direction, N words.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from pyelmo.arrays import Float32Array, Int32Array
from pyelmo.embed.engines.base import Engine
from pyelmo.files import atomic_path
from pyelmo.formats.tensor_file import read_tensors, write_tensors
from pyelmo.parallel import fork_safe_lock
from pyelmo.text.lexicon import Lexicon
from pyelmo.text.normalisation import normalise_words
from pyelmo.text.vocabulary import WordNumbers

# The vectors take at most TABLE_BYTES (32,768 words of 512 floats). There are at most TABLE_WORDS words, because their
# strings take memory, too.
TABLE_BYTES = 64 * 2**20
TABLE_WORDS = 1 << 17
LOOKUP_WORDS = 1 << 13


def table_words(size: int) -> int:
    """Return how many words' vectors of `size` floats to keep in main memory."""
    return min(TABLE_WORDS, TABLE_BYTES // (4 * size))


class WordTable:
    """The vectors of the words seen so far. A full table is emptied, which changes no result. Threads may share it.

    Words may come as they were written: their normal forms in `language` are encoded.
    """

    def __init__(
        self, engine: Engine, lexicon: Lexicon, capacity: int | None = None, *, language: str = "general"
    ) -> None:
        self.engine = engine
        self.capacity = capacity or engine.table_words
        self.language = language
        self._lexicon = lexicon
        self._numbers = WordNumbers()
        self._vectors: Any = None  # (capacity or more, P)
        self._lock = fork_safe_lock()

    def __len__(self) -> int:
        return len(self._numbers)

    def clear(self) -> None:
        """Forget all words."""
        with self._lock:
            self._clear()

    def add(self, words: Sequence[str]) -> None:
        """Encode words ahead of time, except those that the table holds."""
        self.look_up(words)

    @property
    def boundaries(self) -> tuple[str, str]:
        """The tokens before and after a sentence."""
        return self._lexicon.begin, self._lexicon.end

    def look_up(self, words: Sequence[str]) -> tuple[Int32Array, Any]:
        """Return the rows (N,) of words, and the vectors (.., P).

        The returned vectors never change, whatever is added or cleared later.
        """
        with self._lock:
            return self._look_up(words)

    def vectors(self, words: Sequence[str]) -> Float32Array:
        """Return the vectors of words (N, P), as a copy on the CPU."""
        rows, table = self.look_up(words)
        if table is None:
            return np.empty((0, self.engine.size), np.float32)
        return self.engine.download(table[rows])

    def _look_up(self, words: Sequence[str]) -> tuple[Int32Array, Any]:
        known = len(self)
        try:
            rows = self._rows(words)
            if known and len(self) > self.capacity:
                self._clear()
                known = 0
                rows = self._rows(words)
            if len(self) > known:
                self._encode_after(known)
        except BaseException:
            self._clear()  # new words have rows, but no vectors
            raise
        return rows, self._vectors

    def _rows(self, words: Sequence[str]) -> Int32Array:
        """Return the row of each word; new words get the next rows."""
        rows, numbers = np.empty(len(words), np.int32), map(self._numbers.__getitem__, words)
        # Some at a time, because no other thread can take its turn inside `fromiter`: downloads would wait.
        for start in range(0, len(rows), LOOKUP_WORDS):
            part = rows[start : start + LOOKUP_WORDS]
            part[:] = np.fromiter(numbers, np.int32, len(part))
        return rows

    def _encode_after(self, known: int) -> None:
        """Encode all words after the first `known`."""
        words = list(islice(reversed(self._numbers), len(self) - known))[::-1]
        normal = normalise_words(words, self.language)
        if self._vectors is None:
            self._vectors = self.engine.new_table(max(self.capacity, len(self)))
        self._vectors[known : len(self)] = self.engine.encode(self._lexicon.encode(normal))

    def _clear(self) -> None:
        self._numbers.clear()
        self._vectors = None  # not reused: callers of `look_up` may still read the old one

    def save(self, path: str | Path) -> None:
        """Write the words and their vectors to a file that another process can `load`."""
        with self._lock:
            words = np.frombuffer(json.dumps(list(self._numbers)).encode("ascii"), np.uint8)
            vectors = np.empty(0, np.float32)
            if self._vectors is not None:
                vectors = self.engine.download(self._vectors[: len(self)])
        with atomic_path(path) as part:
            write_tensors(part, {"words": words, "values": vectors})

    def load(self, path: str | Path) -> None:
        """Replace the content by the words that a table of the same model saved."""
        tensors = read_tensors(Path(path))
        words = json.loads(tensors["words"].tobytes())
        with self._lock:
            self._clear()
            if words:
                table = self.engine.new_table(max(self.capacity, len(words)))
                table[: len(words)] = self.engine.upload(tensors["values"])
                self._vectors = table
            self._numbers.update(zip(words, range(len(words)), strict=True))
