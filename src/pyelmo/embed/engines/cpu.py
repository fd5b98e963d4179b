"""The biLM on a CPU without gradients: weights packed once, only live rows multiplied, both directions at once.

U words, P size of one direction, B sentences, T steps, N all tokens with the marks, L layers, D vector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from pyelmo.arrays import Float32Array, Int32Array
from pyelmo.config import ModelConfig
from pyelmo.embed.engines.base import Pick, table_rows
from pyelmo.kernels.cpu import compiled, plain
from pyelmo.kernels.cpu.quantise import Quantised
from pyelmo.text.lexicon import EncodedWords

# Words encoded at once: bounds memory, and is enough for a product at full speed.
WORDS_AT_ONCE = 256

PackedWeight = Float32Array | Quantised


class CpuEngine:
    """The biLM's weights, float32 or int8, in the order in which products read them.

    `fetch` gives a weight by its name in `BiLM`. Each is packed before the next is asked for, and `weight` gives it
    back, so that no second copy of the model need exist.
    """

    batch_tokens = 4096
    batch_rows = 256
    cuts = True

    def __init__(self, config: ModelConfig, fetch: Callable[[str], PackedWeight], *, threads: int = 1) -> None:
        self.size = config.lstm.dim
        self.depth = threads
        self.table_rows = table_rows(self.size)
        self._config, self._fetch = config, fetch
        self._kernels: ModuleType = compiled if compiled.available() else plain
        self._packed: dict[str, list[Any]] = {}
        self._kept: dict[str, PackedWeight] = {}
        self._chars = self._char_features() if config.chars else None
        self._words = self._keep("words.weight") if config.words else None
        self._highways = [
            (self._linear(f"chars.highways.{number}.transform"), self._linear(f"chars.highways.{number}.gate"))
            for number in range(config.chars.highways if config.chars else 0)
        ]
        self._projection = self._linear("projection") if config.project else None
        self._layers = [self._lstm(f"lstm.layers.{number}") for number in range(config.lstm.layers)]
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="pyelmo") if threads > 1 else None
        del self._fetch

    @property
    def names(self) -> set[str]:
        """The weights that are in here."""
        return {*self._packed, *self._kept}

    def weight(self, name: str) -> PackedWeight:
        """A weight as it was given; a packed int8 one as the floats it stands for."""
        if name in self._kept:
            return self._kept[name]
        restored = [matrix.restore() for matrix in self._packed[name]]
        return np.stack(restored) if name.startswith("lstm.") else restored[0]

    def _keep(self, name: str) -> PackedWeight:
        self._kept[name] = self._fetch(name)
        return self._kept[name]

    def _floats(self, name: str) -> Float32Array:
        kept = self._keep(name)
        return np.ascontiguousarray(kept.restore() if isinstance(kept, Quantised) else kept)

    def _pack(self, name: str, *, gates: bool = False) -> list[Any]:
        """A matrix (R, K), or one for each direction of an LSTM's weight (N, R, K)."""
        given = self._fetch(name)
        parts = _directions(given) if name.startswith("lstm.") else [given]
        self._packed[name] = [self._kernels.Matrix(part, gates=gates) for part in parts]
        return self._packed[name]

    def _linear(self, name: str) -> tuple[Any, Float32Array]:
        return self._pack(f"{name}.weight")[0], self._floats(f"{name}.bias")

    def _char_features(self) -> Any:
        config = self._config.chars
        assert config is not None
        names = [f"chars.convolutions.{number}" for number in range(len(config.filters))]
        # A filter (E, width) meets windows of a word (width * E).
        filters = [self._floats(f"{name}.weight").swapaxes(1, 2) for name in names]
        filters = [np.ascontiguousarray(bank).reshape(len(bank), -1) for bank in filters]
        biases = [self._floats(f"{name}.bias") for name in names]
        return self._kernels.CharFeatures(self._floats("chars.embedding.weight"), filters, biases, config.activation)

    def _lstm(self, name: str) -> list[Any]:
        """The directions of a layer."""
        config = self._config.lstm
        inputs, recurrents = self._pack(f"{name}.input", gates=True), self._pack(f"{name}.recurrent", gates=True)
        biases = self._floats(f"{name}.bias").copy()  # (N, 4C)
        biases[:, config.cells : 2 * config.cells] += np.float32(config.forget_bias)
        projections = self._pack(f"{name}.projection") if config.projection else [None] * len(inputs)
        return [
            self._kernels.Lstm(*parts, config.cell_clip, config.projection_clip)
            for parts in zip(inputs, recurrents, biases, projections, strict=True)
        ]

    def table(self, rows: int) -> Float32Array:
        return np.empty((rows, self.size), dtype=np.float32)

    def encode(self, words: EncodedWords) -> Float32Array:
        count = len(words.words if words.chars is None else words.chars)  # type: ignore[arg-type]
        at_once = max(1, min(WORDS_AT_ONCE, -(-count // self.depth)))
        starts = range(0, count, at_once)
        vectors = np.empty((count, self.size), dtype=np.float32)

        def encode_some(start: int) -> None:
            part = slice(start, start + at_once)
            vectors[part] = self._encode(
                None if words.chars is None else words.chars[part], None if words.words is None else words.words[part]
            )

        for _ in self._pool.map(encode_some, starts) if self._pool else map(encode_some, starts):
            pass
        return vectors

    def _encode(self, chars: Int32Array | None, words: Int32Array | None) -> Float32Array:  # (U, C), (U,) -> (U, P)
        linear, parts = self._kernels.linear, []
        if self._words is not None:
            assert words is not None
            parts.append(
                Quantised(self._words.values[words], self._words.scales[words]).restore()
                if isinstance(self._words, Quantised)
                else self._words[words]
            )
        if self._chars is not None:
            assert chars is not None
            features = self._chars.run(np.ascontiguousarray(chars))
            for transform, gate in self._highways:
                self._kernels.highway(linear(*transform, features), linear(*gate, features), features)
            parts.append(features)
        features = np.concatenate(parts, -1) if len(parts) > 1 else parts[0]
        encoded: Float32Array = features if self._projection is None else linear(*self._projection, features)
        return encoded

    def submit(
        self, table: Float32Array, rows: Int32Array, lengths: npt.NDArray[np.int64], pick: Pick, dtype: str
    ) -> _CpuBatch:
        tokens = table[rows]  # (N, P)
        orders = list(_orders(lengths, self._config.directions))
        live = np.ascontiguousarray((np.arange(lengths.max(initial=0))[:, None] < lengths).sum(1))

        def run(direction: int) -> list[Float32Array]:
            """The layers of one direction, in its order."""
            inputs, outputs = tokens[orders[direction]], []
            for number, layer in enumerate(self._layers):
                output = layer[direction].run(inputs, live)
                inputs = output + inputs if self._config.lstm.skip and number > 0 else output
                outputs.append(inputs)
            return outputs

        directions = range(len(orders))
        running = [self._pool.submit(run, direction) for direction in directions] if self._pool else None
        return _CpuBatch(tokens, orders, pick, dtype, running or map(run, directions))


@dataclass
class _CpuBatch:
    """Both directions under way, or, with one thread, to be run when the result is asked for."""

    tokens: Float32Array
    orders: list[npt.NDArray[np.int64]]
    pick: Pick
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
            part = values[..., direction * size : (direction + 1) * size]
            part[0] = self.tokens
            for number, layer in enumerate(layers, 1):
                part[number, order] = layer
        with torch.inference_mode():
            picked: np.ndarray = self.pick(torch.from_numpy(values)).numpy()
        return picked.astype(self.dtype, copy=False)


def _orders(lengths: npt.NDArray[np.int64], directions: int) -> Iterator[npt.NDArray[np.int64]]:
    """Which token (N,) stands where in the order of steps: all first words, all second ones, ...; then from the end."""
    starts = np.cumsum(lengths) - lengths
    step, sentence = np.nonzero(np.arange(lengths.max(initial=0))[:, None] < lengths)
    yield starts[sentence] + step
    if directions == 2:
        yield starts[sentence] + lengths[sentence] - 1 - step


def _directions(weight: PackedWeight) -> list[PackedWeight]:
    if isinstance(weight, Quantised):
        return [Quantised(*part) for part in zip(weight.values, weight.scales, strict=True)]
    return list(weight)
