"""What an engine does: words -> word vectors -> the layers of sentences, on a CPU or a GPU.

`encode` computes the vectors of distinct words, which a `WordTable` keeps. `submit` runs the LSTM layers over
sentences that are given as rows of such a table.

U words, P size of one direction, B sentences, N tokens of all sentences with boundary tokens, L layers, D vector.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pyelmo.arrays import Float32Array, Int32Array
from pyelmo.text.lexicon import EncodedWords

# Selects or mixes layers, an array or a tensor: (L, .., D) -> (L, .., D) for all of them, or (.., D).
PickLayers = Callable[[Any], Any]


class PendingBatch(Protocol):
    """A batch that an engine computes."""

    def result(self) -> np.ndarray:
        """Wait for the vectors of the batch and return them, sentence after sentence (.., N, D)."""


class Engine(Protocol):
    """Computes layers. Each sentence starts from a zero state, so the other sentences of a batch change nothing."""

    size: int  # P
    max_pending: int  # how many batches to submit before waiting for the first one
    batch_tokens: int  # the largest number of tokens in a batch, padding included
    batch_sentences: int  # the largest number of sentences in a batch
    window_tokens: int  # the least number of tokens to sort by the length of their sentences, before batches are cut
    table_words: int  # how many word vectors to keep
    # Whether to copy the vectors of each sentence out of the batch. Without a copy, one sentence that the caller keeps
    # holds the whole batch in memory.
    copy_sentences: bool

    def new_table(self, rows: int) -> Any:
        """Return an array or tensor for word vectors (rows, P), on the device of this engine."""

    def encode(self, words: EncodedWords) -> Any:
        """Return word vectors (U, P), to be stored in the table."""

    def download(self, vectors: Any) -> Float32Array:
        """Return word vectors of the table (U, P) as an array."""

    def upload(self, vectors: Float32Array) -> Any:
        """Return word vectors (U, P), to be stored in the table."""

    def submit(
        self, table: Any, rows: Int32Array, lengths: npt.NDArray[np.int64], pick: PickLayers, dtype: str
    ) -> PendingBatch:
        """Start to compute a batch.

        `rows` (N,) are the tokens as rows of the table. `lengths` (B,) are those of the sentences, longest first. The
        result has the `dtype` "float32" or "float16".
        """
