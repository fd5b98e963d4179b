"""A corpus -> the batches of a run, made in a thread of their own while the device computes.

N directions, B rows of this process, T steps, U distinct types.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from pyelmo.corpus.corpus import Corpus
from pyelmo.corpus.stream import Stream, StreamBatch
from pyelmo.model.bilm import BiLM
from pyelmo.text.characters import encode_rows
from pyelmo.text.lexicon import Lexicon
from pyelmo.training.processes import Processes
from pyelmo.training.recipe import TrainingConfig
from pyelmo.training.trainer import StepBatch, TypeTables

AHEAD = 4  # batches made before they are asked for


def open_stream(corpus: Corpus, config: TrainingConfig, processes: Processes) -> Stream:
    return Stream(
        corpus, rows=config.batch, steps=config.steps, seed=config.seed, shuffle=config.streams != "ordered",
        independent=config.streams == "independent", rank=processes.rank, ranks=processes.count,
    )  # fmt: skip


def type_tables(corpus: Corpus, bilm: BiLM, lexicon: Lexicon, processes: Processes) -> TypeTables:
    """What the model reads and predicts for each type of the corpus, by its own alphabet and vocabulary."""
    vocab = lexicon.vocab
    assert vocab is not None, "a model in training has a vocabulary"
    # The corpus writes its marks in one way, a model perhaps in another.
    words = [lexicon.begin, lexicon.end, vocab.unknown, *corpus.types[3:]]
    numbers = torch.from_numpy(vocab.encode(words)).long()
    chars = None
    if bilm.chars is not None and lexicon.alphabet is not None:
        chars = torch.from_numpy(encode_rows(lexicon.alphabet, words).astype(np.int16)).to(processes.device)
    return TypeTables(
        chars, numbers.to(processes.device) if bilm.words is not None else None, numbers.to(processes.device)
    )


class Feed:
    """Iterates over (batch, the stream's state after it); closing it ends the thread."""

    def __init__(self, stream: Stream, directions: int, device: torch.device) -> None:
        self._stream, self._directions, self._device = stream, directions, device
        self._made: queue.Queue[tuple[StepBatch, dict[str, Any]] | BaseException] = queue.Queue(AHEAD)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="pyelmo-feed")
        self._thread.start()

    def __iter__(self) -> Iterator[tuple[StepBatch, dict[str, Any]]]:
        while True:
            made = self._made.get()
            if isinstance(made, BaseException):
                raise made
            batch, state = made
            moved = (part.to(self._device, non_blocking=True) for part in (batch.types, batch.inputs, batch.targets))
            yield StepBatch(*moved), state

    def close(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            for batch in self._stream:
                self._put((self._make(batch), self._stream.state()))
                if self._stop.is_set():
                    return
        except BaseException as error:
            self._put(error)

    def _put(self, made: tuple[StepBatch, dict[str, Any]] | BaseException) -> None:
        while not self._stop.is_set():
            try:
                self._made.put(made, timeout=0.1)
                return
            except queue.Full:
                continue

    def _make(self, batch: StreamBatch) -> StepBatch:
        windows = [batch.forward, batch.backward][: self._directions]
        inputs = np.stack([window.inputs for window in windows])  # (N, B, T)
        targets = np.stack([window.targets for window in windows])
        types, index = np.unique(inputs, return_inverse=True)
        parts = [torch.from_numpy(array.astype(np.int32)) for array in (types, index.reshape(inputs.shape), targets)]
        return StepBatch(*(part.pin_memory() if self._device.type == "cuda" else part for part in parts))
