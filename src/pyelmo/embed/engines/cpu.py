"""The biLM on a CPU without gradients.

The weights are packed once, a time step multiplies only the sentences that have not ended, and both directions run at
the same time.

U words, C characters of a word, P size of one direction, B sentences, T time steps, N tokens of all sentences with
boundary tokens, L layers, D vector, M directions.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from pyelmo.arrays import Float32Array, Int32Array
from pyelmo.config import ModelConfig
from pyelmo.embed.engines.base import PickLayers
from pyelmo.embed.engines.word_table import table_words
from pyelmo.formats.pretrained import StoredWeight
from pyelmo.kernels.cpu import compiled, plain
from pyelmo.kernels.cpu.quantise import Quantised
from pyelmo.kernels.cpu.state import LstmState
from pyelmo.text.lexicon import EncodedWords

# Words encoded at once: few enough to bound the memory, and enough for matrix products at full speed.
ENCODE_WORDS = 256

PackedWeight = Float32Array | Quantised


class CpuEngine:
    """Implements `Engine` with weights, float32 or int8, packed in the order in which matrix products read them.

    `fetch` returns a weight by its name in `BiLM`, as it is stored, and `convert` makes it what the kernels take. Each
    direction is converted and packed before the next one, and `weight` returns a weight again, so that a second copy of
    the model is never needed.
    """

    batch_tokens = 4096
    batch_sentences = 256
    window_tokens = 2 * batch_tokens
    copy_sentences = True

    def __init__(
        self,
        config: ModelConfig,
        fetch: Callable[[str], StoredWeight],
        convert: Callable[[str, StoredWeight], PackedWeight],
        *,
        threads: int = 1,
    ) -> None:
        self.size = config.lstm.dim
        self.max_pending = threads
        self.table_words = table_words(self.size)
        self._config, self._fetch, self._convert = config, fetch, convert
        self._kernels: ModuleType = compiled if compiled.available() else plain
        self._packed: dict[str, list[Any]] = {}
        self._unpacked: dict[str, PackedWeight] = {}
        self._chars = self._char_features() if config.chars else None
        self._words = self._keep("words.weight") if config.words else None
        self._highways = [
            (self._linear(f"chars.highways.{number}.transform"), self._linear(f"chars.highways.{number}.gate"))
            for number in range(config.chars.highways if config.chars else 0)
        ]
        self._projection = self._linear("projection") if config.project else None
        self._layers = [self._lstm(f"lstm.layers.{number}") for number in range(config.lstm.layers)]
        self._pool: ThreadPoolExecutor | None = None
        self._start_threads()
        _engines.add(self)
        del self._fetch, self._convert

    @property
    def names(self) -> set[str]:
        """The names of the weights that this engine holds."""
        return {*self._packed, *self._unpacked}

    def weight(self, name: str) -> PackedWeight:
        """Return a weight as it was fetched. A packed int8 matrix becomes the floats that it represents."""
        if name in self._unpacked:
            return self._unpacked[name]
        restored = [matrix.restore() for matrix in self._packed[name]]
        return np.stack(restored) if name.startswith("lstm.") else restored[0]

    def _keep(self, name: str) -> PackedWeight:
        self._unpacked[name] = self._convert(name, self._fetch(name))
        return self._unpacked[name]

    def _floats(self, name: str) -> Float32Array:
        weight = self._keep(name)
        return np.ascontiguousarray(weight.restore() if isinstance(weight, Quantised) else weight)

    def _pack(self, name: str, *, gates: bool = False) -> list[Any]:
        """Pack a matrix (R, K), or the matrix of each direction of an LSTM weight (M, R, K).

        Projections are `fine`: nearly all of the error of int8 came from rounding their inputs to 8 bits.
        """
        weight = self._fetch(name)
        parts = map(weight.__getitem__, range(self._config.directions)) if name.startswith("lstm.") else [weight]
        self._packed[name] = [
            self._kernels.Matrix(self._convert(name, part), gates=gates, fine="projection" in name) for part in parts
        ]
        return self._packed[name]

    def _linear(self, name: str) -> tuple[Any, Float32Array]:
        return self._pack(f"{name}.weight")[0], self._floats(f"{name}.bias")

    def _char_features(self) -> Any:
        config = self._config.chars
        assert config is not None
        names = [f"chars.convolutions.{number}" for number in range(len(config.filters))]
        # The kernel multiplies filters with windows of a word, (width * E), but torch stores filters as (E, width).
        filters = [self._floats(f"{name}.weight").swapaxes(1, 2) for name in names]
        filters = [np.ascontiguousarray(bank).reshape(len(bank), -1) for bank in filters]
        biases = [self._floats(f"{name}.bias") for name in names]
        return self._kernels.CharFeatures(self._floats("chars.embedding.weight"), filters, biases, config.activation)

    def _lstm(self, name: str) -> list[Any]:
        """Return the LSTMs of a layer, one for each direction."""
        config = self._config.lstm
        inputs, recurrents = self._pack(f"{name}.input", gates=True), self._pack(f"{name}.recurrent", gates=True)
        biases = self._floats(f"{name}.bias").copy()  # (M, 4 * cells)
        biases[:, config.cells : 2 * config.cells] += np.float32(config.forget_bias)
        projections = self._pack(f"{name}.projection") if config.projection else [None] * len(inputs)
        return [
            self._kernels.Lstm(*weights, config.cell_clip, config.projection_clip)
            for weights in zip(inputs, recurrents, biases, projections, strict=True)
        ]

    def new_table(self, rows: int) -> Float32Array:
        return np.empty((rows, self.size), dtype=np.float32)

    def encode(self, words: EncodedWords) -> Float32Array:
        count = len(words.words if words.chars is None else words.chars)  # type: ignore[arg-type]
        chunk = max(1, min(ENCODE_WORDS, -(-count // self.max_pending)))
        starts = range(0, count, chunk)
        vectors = np.empty((count, self.size), dtype=np.float32)

        def encode_chunk(start: int) -> None:
            some = slice(start, start + chunk)
            vectors[some] = self._encode(
                None if words.chars is None else words.chars[some], None if words.words is None else words.words[some]
            )

        for _ in self._pool.map(encode_chunk, starts) if self._pool else map(encode_chunk, starts):
            pass
        return vectors

    def _encode(self, chars: Int32Array | None, words: Int32Array | None) -> Float32Array:  # (U, C), (U,) -> (U, P)
        linear, inputs = self._kernels.linear, []
        if self._words is not None:
            assert words is not None
            inputs.append(
                Quantised(self._words.values[words], self._words.scales[words]).restore()
                if isinstance(self._words, Quantised)
                else self._words[words]
            )
        if self._chars is not None:
            assert chars is not None
            features = self._chars.run(np.ascontiguousarray(chars))
            for transform, gate in self._highways:
                self._kernels.highway(linear(*transform, features), linear(*gate, features), features)
            inputs.append(features)
        features = np.concatenate(inputs, -1) if len(inputs) > 1 else inputs[0]
        encoded: Float32Array = features if self._projection is None else linear(*self._projection, features)
        return encoded

    def download(self, vectors: Float32Array) -> Float32Array:
        return vectors

    def upload(self, vectors: Float32Array) -> Float32Array:
        return vectors

    def zero_states(self, rows: int) -> list[list[LstmState]]:
        """Return a state to begin with for each direction and layer."""
        return [[layer[number].zero_state(rows) for layer in self._layers] for number in range(self._config.directions)]

    def run_on(
        self, inputs: Sequence[Float32Array], live: npt.NDArray[np.int64], states: list[list[LstmState]]
    ) -> list[Float32Array]:
        """Run each direction over its own inputs (M, P), from `states` on; return the top layers (M, P).

        The states become those after the last step.
        """

        def run(direction: int) -> Float32Array:
            return self._run_direction(direction, inputs[direction], live, states[direction])[-1]

        directions = range(len(inputs))
        return list(self._pool.map(run, directions) if self._pool else map(run, directions))

    def _run_direction(
        self,
        direction: int,
        inputs: Float32Array,
        live: npt.NDArray[np.int64],
        states: Sequence[LstmState | None] | None = None,
    ) -> list[Float32Array]:
        """Return the layers of one direction, with the tokens in the order of its time steps."""
        outputs = []
        for number, layer in enumerate(self._layers):
            output = layer[direction].run(inputs, live, states[number] if states else None)
            inputs = output + inputs if self._config.lstm.skip and number > 0 else output
            outputs.append(inputs)
        return outputs

    def _start_threads(self) -> None:
        threads = self.max_pending
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="pyelmo") if threads > 1 else None

    def submit(
        self, table: Float32Array, rows: Int32Array, lengths: npt.NDArray[np.int64], pick: PickLayers, dtype: str
    ) -> _CpuBatch:
        tokens = table[rows]  # (N, P)
        orders = list(_orders(lengths, self._config.directions))
        # (T,) how many sentences have not ended at each time step
        live = np.ascontiguousarray((np.arange(lengths.max(initial=0))[:, None] < lengths).sum(1))

        def run(direction: int) -> list[Float32Array]:
            return self._run_direction(direction, tokens[orders[direction]], live)

        directions = range(len(orders))
        running = [self._pool.submit(run, direction) for direction in directions] if self._pool else None
        return _CpuBatch(tokens, orders, pick, dtype, running or map(run, directions))


@dataclass
class _CpuBatch:
    """Both directions, running on threads; with one thread they run when `result` is called."""

    tokens: Float32Array
    orders: list[npt.NDArray[np.int64]]
    pick: PickLayers
    dtype: str
    outputs: Iterable[list[Float32Array] | Future[list[Float32Array]]]

    def result(self) -> np.ndarray:
        size = self.tokens.shape[1]
        values: Float32Array | None = None
        for direction, (order, output) in enumerate(zip(self.orders, self.outputs, strict=True)):
            layers = output.result() if isinstance(output, Future) else output
            if values is None:
                shape = (len(layers) + 1, len(self.tokens), size * len(self.orders))
                values = np.empty(shape, dtype=np.float32)
            half = values[..., direction * size : (direction + 1) * size]
            half[0] = self.tokens
            for number, layer in enumerate(layers, 1):
                half[number, order] = layer
        picked: np.ndarray = self.pick(values)
        return picked.astype(self.dtype, copy=False)


def _orders(lengths: npt.NDArray[np.int64], directions: int) -> Iterator[npt.NDArray[np.int64]]:
    """Yield, for each direction, the tokens (N,) in the order of its time steps.

    Forwards these are the first tokens of all sentences, then the second tokens, and so on; backwards the last tokens
    come first.
    """
    starts = np.cumsum(lengths) - lengths
    step, sentence = np.nonzero(np.arange(lengths.max(initial=0))[:, None] < lengths)
    yield starts[sentence] + step
    if directions == 2:
        yield starts[sentence] + lengths[sentence] - 1 - step


_engines: weakref.WeakSet[CpuEngine] = weakref.WeakSet()


def _after_fork() -> None:
    """In a forked child: start new threads, because those of the parent do not exist here.

    The threads of OpenMP are gone, too. With one thread torch, if it is used beside, does not wait for them.
    """
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)
    for engine in _engines:
        engine._start_threads()


if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(after_in_child=_after_fork)
