"""The plain reference of compiled.py in numpy, with the same names and arguments, used where that is not compiled.

R rows of a weight matrix (its outputs), K columns (its inputs), M rows of inputs, C cells, P output of a direction.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pyelmo.arrays import Float32Array
from pyelmo.kernels.cpu.quantise import LEVELS, Quantised
from pyelmo.kernels.cpu.state import LstmState

TINY = np.float32(1e-36)  # as in cpu.c
ROWS = 8


class Matrix:
    def __init__(self, weights: Float32Array | Quantised, *, gates: bool = False, fine: bool = False) -> None:
        self.weights, self.fine = weights, fine
        self.shape = weights.values.shape if isinstance(weights, Quantised) else weights.shape

    def restore(self) -> Float32Array:
        return self.weights.restore() if isinstance(self.weights, Quantised) else self.weights

    def product(self, inputs: Float32Array) -> Float32Array:
        """Return inputs times the transposed matrix; for int8 weights, each input row is rounded to int8, too.

        If the matrix is `fine`, what this rounding leaves is rounded to int8 again and multiplied, too. A row with NaN
        or infinity has products NaN in int8.
        """
        if not isinstance(self.weights, Quantised):
            # A matrix library rounds differently for other numbers of rows. In products of ROWS rows each, the result
            # of a row does not depend on the others.
            padded = np.pad(inputs, ((0, -len(inputs) % ROWS), (0, 0)))
            blocks = padded.reshape(len(padded) // ROWS, ROWS, inputs.shape[1]) @ self.weights.T
            outputs: Float32Array = blocks.reshape(len(padded), self.shape[0])[: len(inputs)]
            return outputs
        largest = np.abs(inputs).max(-1, keepdims=True, initial=0.0)
        inverse = np.divide(np.float32(LEVELS), largest, out=np.zeros_like(largest), where=largest >= TINY)
        largest = np.where(np.isfinite(largest), largest, np.float32(np.nan))
        inputs = np.where(np.isnan(largest), np.float32(0.0), inputs)
        scale: Float32Array = (largest / np.float32(LEVELS)).astype(np.float32)
        scaled = inputs * inverse
        rounded = np.rint(scaled)
        products: Float32Array = self._integers(rounded) * (self.weights.scales * scale)
        if self.fine:
            rest = np.rint((scaled - rounded) * np.float32(2 * LEVELS))
            products += self._integers(rest) * (self.weights.scales * (scale / np.float32(2 * LEVELS)))
        return products

    def _integers(self, inputs: Float32Array) -> Float32Array:
        """Return the product of integers, which is exact in float64 in any order."""
        assert isinstance(self.weights, Quantised)
        products = inputs.astype(np.float64) @ self.weights.values.T.astype(np.float64)
        return products.astype(np.float32)


class Lstm:
    def __init__(
        self,
        input: Matrix,
        recurrent: Matrix,
        bias: Float32Array,
        projection: Matrix | None,
        cell_clip: float | None,
        projection_clip: float | None,
    ) -> None:
        self.input, self.recurrent, self.bias, self.projection = input, recurrent, bias, projection
        self.cell_clip = np.inf if cell_clip is None else cell_clip
        self.projection_clip = np.inf if projection_clip is None else projection_clip
        self.size = recurrent.shape[1]

    def zero_state(self, rows: int) -> LstmState:
        return LstmState(np.zeros((rows, self.size), np.float32), np.zeros((rows, len(self.bias) // 4), np.float32))

    def run(self, inputs: Float32Array, live: npt.NDArray[np.int64], state: LstmState | None = None) -> Float32Array:
        outputs = np.empty((len(inputs), self.size), dtype=np.float32)
        begins = state is None
        state = state or self.zero_state(live[0] if len(live) else 0)
        hidden, cell = state.hidden, state.cell
        done = 0
        for rows in live:
            gates = self.bias + self.input.product(inputs[done : done + rows])
            if done or not begins:  # a zero state adds nothing
                gates += self.recurrent.product(hidden[:rows])
            in_gate, forget_gate, candidate, out_gate = np.split(gates, 4, -1)
            cell = _sigmoid(forget_gate) * cell[:rows] + _sigmoid(in_gate) * np.tanh(candidate)
            cell = cell.clip(-self.cell_clip, self.cell_clip)
            hidden = _sigmoid(out_gate) * np.tanh(cell)
            if self.projection is not None:
                hidden = self.projection.product(hidden).clip(-self.projection_clip, self.projection_clip)
            outputs[done : done + rows] = hidden
            done += rows
        state.hidden, state.cell = hidden, cell
        return outputs


def linear(matrix: Matrix, bias: Float32Array | None, inputs: Float32Array) -> Float32Array:
    outputs = matrix.product(inputs)
    return outputs if bias is None else outputs + bias


def highway(transform: Float32Array, gate: Float32Array, features: Float32Array) -> None:
    opened = _sigmoid(gate)
    features[:] = opened * np.maximum(transform, 0.0) + (1 - opened) * features


class CharFeatures:
    def __init__(
        self, table: Float32Array, filters: Sequence[Float32Array], biases: Sequence[Float32Array], activation: str
    ) -> None:
        self._table, self._filters, self._biases = table, filters, biases
        self._activation = np.tanh if activation == "tanh" else lambda values: np.maximum(values, 0.0)

    def run(self, chars: npt.NDArray[np.int32]) -> Float32Array:
        size = self._table.shape[1]
        embedded = self._table[chars].reshape(len(chars), -1)  # (M, C * E)
        maxima = []
        for bank, bias in zip(self._filters, self._biases, strict=True):
            windows = np.lib.stride_tricks.sliding_window_view(embedded, bank.shape[1], 1)[:, ::size]
            # One product for each word, so that its rounding does not depend on the others.
            maxima.append((np.ascontiguousarray(windows) @ bank.T).max(1) + bias)
        features: Float32Array = self._activation(np.concatenate(maxima, -1)).astype(np.float32)
        return features


def _sigmoid(values: Float32Array) -> Float32Array:
    result: Float32Array = np.float32(0.5) * np.tanh(np.float32(0.5) * values) + np.float32(0.5)
    return result
