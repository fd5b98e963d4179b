"""The training step as a CUDA graph: recorded once for a shape, then replayed with one launch.

N directions, B rows, T time steps, U distinct word types, M = N * B * T positions, S negative samples, K rows of the
softmax table that a batch uses.

A step of a small model is thousands of short kernels, and the host needs longer to launch them than the GPU to run
them. A graph needs constant shapes. B and T are constant; U and K differ from batch to batch, so both are padded: U
with types that no position reads, K with rows of the table that are not updated. There are few padded sizes (an eighth
of a power of two apart), and each pair of them has its own graph. What a graph cannot contain is done before, in the
thread of the feed: copying the batch to the device, and drawing its negative samples, because the host must know how
many rows they use. `Trainer.step` is the plain reference: losses, weights and random numbers are the same.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias

import torch
from torch import Tensor

from pyelmo.kernels import choice
from pyelmo.model.lstm import State
from pyelmo.model.softmax import Softmax
from pyelmo.training.feed import move
from pyelmo.training.trainer import Samples, StepBatch, Trainer

log = logging.getLogger("pyelmo")

GRAPHS = 12  # at most: recording a graph takes time on the host, and memory
LEAST = 256  # no padded size is smaller

Step: TypeAlias = Callable[[StepBatch, float], Tensor]


@dataclass(frozen=True)
class Stepper:
    """How a run makes its steps: a function that the thread of the feed calls on each batch, and the step itself."""

    prepare: Callable[[StepBatch], StepBatch] | None
    step: Step


def stepper(trainer: Trainer) -> Stepper:
    """Return the fastest way to make the steps of a trainer: with graphs on one GPU, else the plain one."""
    on_gpu = trainer.processes.count == 1 and choice.available(trainer.processes.device)
    if not on_gpu or trainer.config.loss == "adaptive":  # the host must know the sizes of its clusters
        return Stepper(None, trainer.step)
    steps = GraphSteps(trainer)
    return Stepper(steps.prepare, steps.step)


def padded(size: int, most: int | None = None) -> int:
    """Return the next size that is 8 to 15 times a power of two."""
    unit = max(LEAST // 8, 1 << max(0, (size - 1).bit_length() - 4))
    rounded = max(LEAST, -(-size // unit) * unit)
    return rounded if most is None else min(rounded, most)


class GraphSteps:
    """The steps of a trainer with graphs. `prepare` runs ahead in one thread, `step` in another."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer
        self.device = trainer.processes.device
        self.graphs: dict[tuple[int, int], _Recorded | None] = {}  # None: seen once, without a graph
        self._number = trainer.optimiser.steps  # of the last batch prepared
        self._stream = torch.cuda.Stream(self.device) if self.device.type == "cuda" else None
        self._pool: Any = torch.cuda.graph_pool_handle() if self.device.type == "cuda" else None
        self._state: State | None = None
        self._recording = threading.Lock()  # the thread of the feed waits while a graph is recorded

    def prepare(self, batch: StepBatch) -> StepBatch:
        """Copy a batch to the device, draw its samples and pad it. Waits for the device, while training runs."""
        self._number += 1
        with self._recording, torch.cuda.stream(self._stream):
            batch = move(batch, self.device)
            samples = self.trainer.draw(batch.targets, self._number)
            types = _pad_types(batch.types, padded(len(batch.types)))
            batch = replace(batch, types=types, samples=None if samples is None else self._pad(samples))
            if self._stream is not None:
                self._stream.synchronize()
        return batch

    def step(self, batch: StepBatch, lr: float) -> Tensor:
        """Like `Trainer.step`, for a batch that `prepare` returned."""
        trainer = self.trainer
        number = trainer.seed()
        if batch.samples is not None and batch.samples.number != number:
            raise ValueError(f"the batch of step {batch.samples.number} was given to step {number}")
        rates = trainer.optimiser.rates(lr, number)
        state = self._own_state(batch)
        key = len(batch.types), 0 if batch.samples is None else len(batch.samples.rows)
        recorded = self.graphs.get(key)
        if recorded is None and key in self.graphs and self.device.type == "cuda":
            recorded = self.graphs[key] = self._record(batch, rates, state)
        if recorded is None:  # this step also compiles the kernels of these shapes
            means = self._compute(batch, rates.to(self.device), state)
            if len(self.graphs) < GRAPHS:
                self.graphs[key] = None
            elif key not in self.graphs:
                log.info("more than %d shapes: a step of shape %s runs without a graph", GRAPHS, key)
        else:
            means = recorded.replay(batch, rates)
        if self.device.type == "cuda":  # written by the stream of the feed, read by this one
            for part in _tensors(batch):
                part.record_stream(torch.cuda.current_stream(self.device))
        trainer.optimiser.steps = number
        return means

    def _compute(self, batch: StepBatch, rates: Tensor, state: State) -> Tensor:
        means, new = self.trainer.compute(batch, state, rates)
        state.hidden.copy_(new.hidden)
        state.cell.copy_(new.cell)
        return means

    def _own_state(self, batch: StepBatch) -> State:
        """Return the carried state in memory that graphs can refer to; it is the trainer's state, too."""
        current = self.trainer.state
        if self._state is None:
            self._state = self.trainer.bilm.lstm.zero_state(batch.inputs.shape[1])
        if current is not self._state:
            if current is not None:  # from a checkpoint, or from a plain step
                self._state.hidden.copy_(current.hidden)
                self._state.cell.copy_(current.cell)
            self.trainer.state = self._state
        return self._state

    def _pad(self, samples: Samples) -> Samples:
        softmax = self.trainer.bilm.softmax
        assert isinstance(softmax, Softmax)
        words = len(softmax.bias)
        count = len(samples.rows)
        missing = padded(count, words) - count
        untouched = torch.ones(words, dtype=torch.bool, device=self.device)
        untouched[samples.rows] = False
        rows = torch.cat([samples.rows, untouched.nonzero()[:missing, 0]])
        return replace(samples, rows=rows, count=torch.tensor(count, device=self.device))

    def _record(self, batch: StepBatch, rates: Tensor, state: State) -> _Recorded:
        graph = torch.cuda.CUDAGraph()
        own = _map(batch, torch.clone)
        own_rates = rates.to(self.device)
        own_means = torch.zeros(len(batch.inputs), device=self.device)
        with (
            self._recording,
            torch.cuda.device(self.device),
            torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"),
        ):
            own_means.copy_(self._compute(own, own_rates, state))
        self.trainer.bilm.zero_grad(set_to_none=True)
        return _Recorded(graph, own, own_rates, own_means)


@dataclass(frozen=True)
class _Recorded:
    """A graph and the memory that it reads and writes."""

    graph: torch.cuda.CUDAGraph
    batch: StepBatch
    rates: Tensor
    means: Tensor

    def replay(self, batch: StepBatch, rates: Tensor) -> Tensor:
        for recorded, tensor in zip(_tensors(self.batch), _tensors(batch), strict=True):
            recorded.copy_(tensor, non_blocking=True)
        self.rates.copy_(rates.pin_memory(), non_blocking=True)
        self.graph.replay()
        return self.means.clone()


def _pad_types(types: Tensor, size: int) -> Tensor:
    return torch.cat([types, types.new_zeros(size - len(types))])


def _tensors(batch: StepBatch) -> list[Tensor]:
    parts = [getattr(batch, part.name) for part in fields(batch)]
    if batch.samples is not None:
        parts += [getattr(batch.samples, part.name) for part in fields(batch.samples)]
    return [part for part in parts if isinstance(part, Tensor)]


def _map(batch: StepBatch, change: Callable[[Tensor], Tensor]) -> StepBatch:
    """Return the batch with each tensor replaced by `change(tensor)`."""

    def changed(part: Any) -> Any:
        values = ((one.name, getattr(part, one.name)) for one in fields(part))
        return replace(part, **{name: change(value) for name, value in values if isinstance(value, Tensor)})

    samples = None if batch.samples is None else changed(batch.samples)
    result: StepBatch = changed(batch)
    return replace(result, samples=samples)
