"""The training step as a CUDA graph: recorded once for a shape, then replayed with one launch.

N directions, B rows, T steps, U distinct types, M = N * B * T places, S negatives, K touched rows of the softmax.

A step of a small model is thousands of short kernels, and launching them one by one takes the host longer than they
take the GPU. A graph needs shapes that stay the same. B and T do; U and K differ from batch to batch, so both are
padded: U with types that no place reads, K with rows of the table that are left as they are. The padded sizes are few
(an eighth of a power of two apart), and each pair of them has a graph of its own. What a graph cannot hold happens
before it, in the thread of the feed: moving the batch and drawing its negatives, whose number of rows the host must
know. Losses, weights and random numbers are those of `Trainer.step`, which stays as the plain reference.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias

import torch
from torch import Tensor

from pyelmo import kernels
from pyelmo.model.lstm import State
from pyelmo.model.softmax import Softmax
from pyelmo.training.feed import move
from pyelmo.training.trainer import Samples, StepBatch, Trainer

log = logging.getLogger("pyelmo")

GRAPHS = 12  # kept at most: each takes the host's time to record, and memory
LEAST = 256  # no padded size is smaller

Step: TypeAlias = Callable[[StepBatch, float], Tensor]


@dataclass(frozen=True)
class Stepper:
    """How a run takes its steps: what the feed's thread does with a batch, and the step itself."""

    prepare: Callable[[StepBatch], StepBatch] | None
    step: Step


def stepper(trainer: Trainer) -> Stepper:
    """The fastest way to take a trainer's steps: by graphs on one GPU, else the plain one."""
    on_gpu = trainer.processes.count == 1 and kernels.available(trainer.processes.device)
    if not on_gpu or trainer.config.loss == "adaptive":  # its clusters have sizes that the host must know
        return Stepper(None, trainer.step)
    steps = GraphSteps(trainer)
    return Stepper(steps.prepare, steps.step)


def padded(size: int, most: int | None = None) -> int:
    """The next size of the kind 8 to 15 times a power of two."""
    unit = max(LEAST // 8, 1 << max(0, (size - 1).bit_length() - 4))
    rounded = max(LEAST, -(-size // unit) * unit)
    return rounded if most is None else min(rounded, most)


class GraphSteps:
    """Takes the steps of a trainer by graphs. `prepare` runs ahead in one thread, `step` in another."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer
        self.device = trainer.processes.device
        self.graphs: dict[tuple[int, int], _Recorded | None] = {}  # None: seen once, and run without a graph
        self._number = trainer.optimiser.steps  # of the last batch prepared
        self._stream = torch.cuda.Stream(self.device) if self.device.type == "cuda" else None
        self._pool: Any = torch.cuda.graph_pool_handle() if self.device.type == "cuda" else None
        self._state: State | None = None
        self._recording = threading.Lock()  # the feed's thread rests while a graph is recorded

    def prepare(self, batch: StepBatch) -> StepBatch:
        """Move a batch to the device, draw its samples and pad it; waits for the device, beside the training."""
        self._number += 1
        with self._recording, torch.cuda.stream(self._stream):
            batch = move(batch, self.device)
            samples = self.trainer.draw(batch.targets, self._number)
            types = _filled(batch.types, padded(len(batch.types)))
            batch = replace(batch, types=types, samples=None if samples is None else self._pad(samples))
            if self._stream is not None:
                self._stream.synchronize()
        return batch

    def step(self, batch: StepBatch, lr: float) -> Tensor:
        """As `Trainer.step`, for a batch that `prepare` gave."""
        trainer = self.trainer
        number = trainer.seed()
        if batch.samples is not None and batch.samples.number != number:
            raise ValueError(f"a batch drawn for step {batch.samples.number} came to step {number}")
        rates = trainer.optimiser.rates(lr, number)
        state = self._own_state(batch)
        key = len(batch.types), 0 if batch.samples is None else len(batch.samples.rows)
        recorded = self.graphs.get(key)
        if recorded is None and key in self.graphs and self.device.type == "cuda":
            recorded = self.graphs[key] = self._record(batch, rates, state)
        if recorded is None:  # a step without a graph: it also compiles the kernels of these shapes
            means = self._compute(batch, rates.to(self.device), state)
            if len(self.graphs) < GRAPHS:
                self.graphs[key] = None
            elif key not in self.graphs:
                log.info("more than %d shapes of a step: one of %s runs without a graph", GRAPHS, key)
        else:
            means = recorded.replay(batch, rates)
        if self.device.type == "cuda":  # written by the feed's stream, read by this one
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
        """The carried state in memory that stays, which is also the trainer's."""
        current = self.trainer.state
        if self._state is None:
            self._state = self.trainer.bilm.lstm.zero_state(batch.inputs.shape[1])
        if current is not self._state:
            if current is not None:  # of a checkpoint, or of a step without a graph
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
        for mine, given in zip(_tensors(self.batch), _tensors(batch), strict=True):
            mine.copy_(given, non_blocking=True)
        self.rates.copy_(rates.pin_memory(), non_blocking=True)
        self.graph.replay()
        return self.means.clone()


def _filled(types: Tensor, size: int) -> Tensor:
    return torch.cat([types, types.new_zeros(size - len(types))])


def _tensors(batch: StepBatch) -> list[Tensor]:
    parts = [getattr(batch, part.name) for part in fields(batch)]
    if batch.samples is not None:
        parts += [getattr(batch.samples, part.name) for part in fields(batch.samples)]
    return [part for part in parts if isinstance(part, Tensor)]


def _map(batch: StepBatch, change: Callable[[Tensor], Tensor]) -> StepBatch:
    """The same with each tensor changed."""

    def changed(part: Any) -> Any:
        values = ((one.name, getattr(part, one.name)) for one in fields(part))
        return replace(part, **{name: change(value) for name, value in values if isinstance(value, Tensor)})

    samples = None if batch.samples is None else changed(batch.samples)
    result: StepBatch = changed(batch)
    return replace(result, samples=samples)
