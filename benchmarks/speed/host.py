"""What do lists of words cost on the host before and after a GPU computes? An engine that computes nothing shows it.

    python benchmarks/speed/host.py tokens.txt    # a sentence a line, tokenised

CPU nanoseconds per word of `Embedder.stream`, with an empty word cache and with a full one, least of three runs.
"""

from __future__ import annotations

import json
import sys
import time
from concurrent.futures import Future
from typing import Any

import numpy as np

import pyelmo
from pyelmo.embed.engines.base import PickLayers
from pyelmo.embed.engines.word_table import WordTable
from pyelmo.provenance import machine
from pyelmo.text.lexicon import EncodedWords


class NoEngine:
    """Implements `Engine` with the sizes of a GPU's batches, and results of one number."""

    size, batch_sentences, batch_tokens, window_tokens = 1, 8192, 262144, 262144
    max_pending, table_words, copy_sentences = 4, 1 << 19, False

    def new_table(self, rows: int) -> np.ndarray:
        return np.zeros((rows, 1), np.float32)

    def encode(self, words: EncodedWords) -> np.ndarray:
        assert words.chars is not None
        return np.zeros((len(words.chars), 1), np.float32)

    def submit(
        self, table: Any, rows: np.ndarray, lengths: np.ndarray, pick: PickLayers, dtype: str
    ) -> Future[np.ndarray]:
        done: Future[np.ndarray] = Future()
        done.set_result(np.empty((1, len(rows), 1), dtype))
        return done


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:
        sentences = [line.split() for line in file]
    embedder = pyelmo.load("en")
    embedder._table = table = WordTable(NoEngine(), embedder.lexicon, language=embedder.language)  # type: ignore
    spent: dict[str, list[float]] = {"cold": [], "warm": []}
    for _ in range(3):
        table.clear()
        for state in spent:
            start = time.process_time()
            words = sum(array.shape[1] for array in embedder.stream(sentences, dtype="float16"))
            spent[state].append(1e9 * (time.process_time() - start) / words)
    least = {state: round(min(times)) for state, times in spent.items()}
    print(json.dumps({"machine": machine(), "sentences": len(sentences), "words": words, "ns_per_word": least}))


if __name__ == "__main__":
    main()
