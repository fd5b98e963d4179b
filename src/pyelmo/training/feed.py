"""A corpus -> the batches of a run, made in a thread of their own while the device computes.

N directions, B rows of this process, T steps, U distinct types.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from pyelmo.model.bilm import BiLM
from pyelmo.text.characters import encode_rows
from pyelmo.text.corpus import Corpus
from pyelmo.text.lexicon import Lexicon
from pyelmo.text.pieces import Ids
from pyelmo.text.stream import Batch, Stream
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


def move(batch: StepBatch, device: torch.device) -> StepBatch:
    types, inputs, targets = (part.to(device, non_blocking=True) for part in (batch.types, batch.inputs, batch.targets))
    return replace(batch, types=types, inputs=inputs, targets=targets)


class _Distinct:
    """np.unique with the inverse, by a table of all types instead of sorting: a fifth of the time."""

    def __init__(self) -> None:
        self._number = np.zeros(0, np.int32)
        self._present = np.zeros(0, np.bool_)

    def __call__(self, ids: Ids) -> tuple[Ids, Ids]:
        size = int(ids.max()) + 1
        if size > len(self._number):
            self._number, self._present = np.zeros(2 * size, np.int32), np.zeros(2 * size, np.bool_)
        self._present[ids] = True
        types = np.flatnonzero(self._present).astype(np.int32)
        self._present[types] = False
        self._number[types] = np.arange(len(types), dtype=np.int32)
        return types, self._number[ids]


class Feed:
    """Iterates over (batch, the stream's state after it); closing it ends the thread."""

    def __init__(
        self,
        stream: Stream,
        directions: int,
        device: torch.device,
        prepare: Callable[[StepBatch], StepBatch] | None = None,
    ) -> None:
        """`prepare` is what the thread still does with a batch, in the order of the steps."""
        self._stream, self._directions, self._device = stream, directions, device
        self._prepare, self._distinct = prepare, _Distinct()
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
            yield move(batch, self._device), state

    def close(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            for batch in self._stream:
                made = self._make(batch)
                self._put((made if self._prepare is None else self._prepare(made), self._stream.state()))
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

    def _make(self, batch: Batch) -> StepBatch:
        windows = [batch.forward, batch.backward][: self._directions]
        inputs = np.stack([window.inputs for window in windows])  # (N, B, T)
        targets = np.stack([window.targets for window in windows])
        parts = [torch.from_numpy(array) for array in (*self._distinct(inputs), targets.astype(np.int32, copy=False))]
        return StepBatch(*((part.pin_memory() for part in parts) if self._device.type == "cuda" else parts))
