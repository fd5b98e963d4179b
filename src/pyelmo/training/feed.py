"""A corpus -> the batches of a training run, prepared in a background thread while the device computes.

N directions, B rows of this process, T time steps, U distinct word types.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from pyelmo.arrays import Int32Array
from pyelmo.corpus.corpus import Corpus
from pyelmo.corpus.stream import Stream, StreamBatch
from pyelmo.model.bilm import BiLM
from pyelmo.text.characters import encode_rows
from pyelmo.text.lexicon import Lexicon
from pyelmo.training.processes import Processes
from pyelmo.training.recipe import TrainingConfig
from pyelmo.training.trainer import StepBatch, TypeTables

AHEAD = 4  # batches that are prepared in advance


def open_stream(corpus: Corpus, config: TrainingConfig, processes: Processes) -> Stream:
    """Open the corpus for this process, in the order that the config asks for."""
    return Stream(
        corpus, rows=config.batch, steps=config.steps, seed=config.seed, shuffle=config.streams != "ordered",
        independent=config.streams == "independent", rank=processes.rank, ranks=processes.count,
    )  # fmt: skip


def type_tables(corpus: Corpus, bilm: BiLM, lexicon: Lexicon, processes: Processes) -> TypeTables:
    """Return the model's inputs and targets for each word type of the corpus."""
    vocab = lexicon.vocab
    assert vocab is not None, "training needs a vocabulary"
    # The model may spell its boundary and unknown tokens differently from the corpus.
    words = [lexicon.begin, lexicon.end, vocab.unknown, *corpus.types[3:]]
    ids = torch.from_numpy(vocab.encode(words)).long().to(processes.device)
    chars = None
    if bilm.chars is not None and lexicon.alphabet is not None:
        chars = torch.from_numpy(encode_rows(lexicon.alphabet, words).astype(np.int16)).to(processes.device)
    return TypeTables(chars, ids if bilm.words is not None else None, ids)


def move(batch: StepBatch, device: torch.device) -> StepBatch:
    """Copy a batch to the device, without its samples."""
    tensors = (batch.types, batch.inputs, batch.targets)
    types, inputs, targets = (tensor.to(device, non_blocking=True) for tensor in tensors)
    return replace(batch, types=types, inputs=inputs, targets=targets)


class _Distinct:
    """np.unique with the inverse, by a table of all word types instead of sorting: it takes a fifth of the time."""

    def __init__(self) -> None:
        self._index = np.zeros(0, np.int32)
        self._present = np.zeros(0, np.bool_)

    def __call__(self, ids: Int32Array) -> tuple[Int32Array, Int32Array]:
        size = int(ids.max()) + 1
        if size > len(self._index):
            self._index, self._present = np.zeros(2 * size, np.int32), np.zeros(2 * size, np.bool_)
        self._present[ids] = True
        types = np.flatnonzero(self._present).astype(np.int32)
        self._present[types] = False
        self._index[types] = np.arange(len(types), dtype=np.int32)
        return types, self._index[ids]


class Feed:
    """An iterator over pairs of a batch on the device and the position of the stream after it.

    A background thread makes the batches and calls `prepare` on each, in the order of the steps; `close` ends it.
    """

    def __init__(
        self,
        stream: Stream,
        directions: int,
        device: torch.device,
        prepare: Callable[[StepBatch], StepBatch] | None = None,
    ) -> None:
        self._stream, self._directions, self._device = stream, directions, device
        self._prepare, self._distinct = prepare, _Distinct()
        self._ready: queue.Queue[tuple[StepBatch, dict[str, Any]] | BaseException] = queue.Queue(AHEAD)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="pyelmo-feed")
        self._thread.start()

    def __iter__(self) -> Iterator[tuple[StepBatch, dict[str, Any]]]:
        while True:
            item = self._ready.get()
            if isinstance(item, BaseException):
                raise item
            batch, state = item
            yield move(batch, self._device), state

    def close(self) -> None:
        """End the background thread."""
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

    def _put(self, item: tuple[StepBatch, dict[str, Any]] | BaseException) -> None:
        while not self._stop.is_set():
            try:
                self._ready.put(item, timeout=0.1)
                return
            except queue.Full:
                continue

    def _make(self, batch: StreamBatch) -> StepBatch:
        windows = [batch.forward, batch.backward][: self._directions]
        inputs = np.stack([window.inputs for window in windows])  # (N, B, T)
        targets = np.stack([window.targets for window in windows])
        arrays = (*self._distinct(inputs), targets.astype(np.int32, copy=False))
        tensors = [torch.from_numpy(array) for array in arrays]
        if self._device.type == "cuda":
            tensors = [tensor.pin_memory() for tensor in tensors]
        types, index, target_types = tensors
        return StepBatch(types, index, target_types)
