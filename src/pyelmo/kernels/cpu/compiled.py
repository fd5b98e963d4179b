"""Python classes and functions around the compiled functions of cpu.c, which describes the layout of packed weights.

R rows of a weight matrix (its outputs), K columns (its inputs), M rows of inputs, C cells, P output of a direction.
plain.py has the same names and arguments in numpy.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.machinery
import logging
import os
from collections.abc import Sequence
from ctypes import c_float, c_int, c_int32, c_int64, c_void_p
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pyelmo.arrays import Float32Array
from pyelmo.kernels.cpu.quantise import Quantised

log = logging.getLogger("pyelmo")

INSTRUCTION_SETS = ("avx512", "avx2", "base")


class _Matrix(ctypes.Structure):
    _fields_ = (
        ("weights", c_void_p),
        ("scales", c_void_p),
        ("starts", c_void_p),
        ("depth", c_int64),
        ("columns", c_int64),
    )


class _Layer(ctypes.Structure):
    _fields_ = (
        ("input", _Matrix),
        ("recurrent", _Matrix),
        ("projection", _Matrix),
        ("bias", c_void_p),
        ("cells", c_int64),
        ("size", c_int64),
        ("projects", c_int32),
        ("cell_clip", c_float),
        ("projection_clip", c_float),
    )


@functools.cache
def library() -> ctypes.CDLL | None:
    """Return the compiled library, or None if the package was installed without a C compiler."""
    for suffix in importlib.machinery.EXTENSION_SUFFIXES:
        path = Path(__file__).with_name(f"_cpu{suffix}")
        if path.is_file():
            return ctypes.CDLL(str(path))
    return None


@functools.cache
def instruction_set() -> int | None:
    """Return the number of the best instruction set of this processor, or None for the plain functions.

    The environment variable PYELMO_CPU chooses another one, or "plain", for comparisons.
    """
    wanted = os.environ.get("PYELMO_CPU")
    functions = library()
    if wanted == "plain":
        return None
    if functions is None:
        log.warning(
            "pyelmo was installed without a C compiler, so embedding on a CPU is several times slower. "
            "Install a compiler, then pyelmo again."
        )
        return None
    for number, name in enumerate(INSTRUCTION_SETS):
        if functions.elmo_supported(number) and wanted in (None, name):
            return number
    log.warning(
        "this processor cannot run %s, so embedding on a CPU is several times slower",
        wanted or "the compiled functions",
    )
    return None


def available() -> bool:
    return instruction_set() is not None


@functools.cache
def warn_about_int8() -> None:
    """Log once if int8 makes a model smaller but not faster on this processor."""
    if instruction_set() == INSTRUCTION_SETS.index("base"):
        log.warning(
            "this processor has no int8 instructions that pyelmo supports: int8 needs less memory, but is slower"
        )


@functools.cache
def lanes() -> int:
    return int(_call("elmo_lanes"))


class Matrix:
    """A weight matrix (R, K), packed in panels; the original array is not kept.

    With `gates`, the rows are the four gates of C cells of an LSTM, and a panel has all gates of the same cells.
    """

    def __init__(self, weights: Float32Array | Quantised, *, gates: bool = False) -> None:
        values = weights.values if isinstance(weights, Quantised) else weights
        self.shape, self.gates = values.shape, gates
        panels = self._panels(values)  # (panels, 4 lanes, K)
        count, width, depth = panels.shape
        self.scales: Float32Array | None = None
        self.starts: npt.NDArray[np.int32] | None = None
        if isinstance(weights, Quantised):
            self.scales = np.ascontiguousarray(self._panels(weights.scales[:, None])[..., 0])
            self.starts = np.ascontiguousarray(-128 * panels.sum(-1, dtype=np.int32))
            fours = _padded(panels, 2, 4).reshape(count, width, -1, 4)
            self.values: np.ndarray = np.ascontiguousarray(fours.swapaxes(1, 2))
        else:
            self.values = np.ascontiguousarray(panels.swapaxes(1, 2))
        self.struct = _Matrix(
            self.values.ctypes.data, _address(self.scales), _address(self.starts), depth, count * width
        )

    def restore(self) -> Float32Array:
        """Return the matrix (R, K) in its original order, as floats."""
        if self.scales is None:
            return self._rows(self.values.swapaxes(1, 2))
        width = 4 * lanes()
        values = self.values.swapaxes(1, 2).reshape(len(self.values), width, -1)[..., : self.shape[1]]
        return Quantised(self._rows(values), self._rows(self.scales[..., None])[:, 0]).restore()

    def _panels(self, rows: np.ndarray) -> np.ndarray:
        """(R, K) -> (panels, 4 lanes, K); the last panel is filled with zero rows."""
        depth, wide = rows.shape[1], lanes()
        if not self.gates:
            return _padded(rows, 0, 4 * wide).reshape(-1, 4 * wide, depth)
        gates = _padded(rows.reshape(4, -1, depth), 1, wide).reshape(4, -1, wide, depth)
        return gates.swapaxes(0, 1).reshape(-1, 4 * wide, depth)

    def _rows(self, panels: np.ndarray) -> np.ndarray:
        """Undo `_panels`."""
        depth, wide = panels.shape[2], lanes()
        if not self.gates:
            return np.ascontiguousarray(panels.reshape(-1, depth)[: self.shape[0]])
        gates = panels.reshape(-1, 4, wide, depth).swapaxes(0, 1).reshape(4, -1, depth)
        return np.ascontiguousarray(gates[:, : self.shape[0] // 4].reshape(-1, depth))


class Lstm:
    """One direction of one LSTM layer."""

    def __init__(
        self,
        input: Matrix,
        recurrent: Matrix,
        bias: Float32Array,  # includes the constant of the forget gate
        projection: Matrix | None,
        cell_clip: float | None,
        projection_clip: float | None,
    ) -> None:
        self.size = recurrent.shape[1]
        self._matrices = input, recurrent, projection  # keeps their memory alive
        self._bias = np.ascontiguousarray(input._panels(bias[:, None])[..., 0])
        self._struct = _Layer(
            input.struct, recurrent.struct, projection.struct if projection else _Matrix(), self._bias.ctypes.data,
            len(self._bias) * lanes(), self.size, projection is not None,
            np.inf if cell_clip is None else cell_clip, np.inf if projection_clip is None else projection_clip,
        )  # fmt: skip

    def run(self, inputs: Float32Array, live: npt.NDArray[np.int64]) -> Float32Array:
        """(M, K) -> (M, P): the rows of all steps, one step after another.

        Step t has the first live[t] rows of step t - 1.
        """
        outputs = np.empty((len(inputs), self.size), dtype=np.float32)
        _check(inputs, live)
        assert inputs.shape == (live.sum(), self._struct.input.depth)
        _run(
            "elmo_lstm",
            ctypes.byref(self._struct),
            _address(inputs),
            _address(live),
            c_int64(len(live)),
            _address(outputs),
        )
        return outputs


def linear(matrix: Matrix, bias: Float32Array | None, inputs: Float32Array) -> Float32Array:
    """(R, K), (R,), (M, K) -> (M, R)."""
    outputs = np.empty((len(inputs), matrix.shape[0]), dtype=np.float32)
    _check(inputs)
    _run(
        "elmo_linear", ctypes.byref(matrix.struct), _address(bias), _address(inputs), c_int64(len(inputs)),
        c_int64(matrix.shape[0]), _address(outputs),
    )  # fmt: skip
    return outputs


def highway(transform: Float32Array, gate: Float32Array, features: Float32Array) -> None:
    """Set features to g relu(transform) + (1 - g) features, with g = sigmoid(gate)."""
    _check(transform, gate, features)
    _run("elmo_highway", _address(transform), _address(gate), _address(features), c_int64(features.size))


class CharFeatures:
    """The convolutions of the character CNN, their maximum over all positions, and the activation."""

    def __init__(
        self, table: Float32Array, filters: Sequence[Float32Array], biases: Sequence[Float32Array], activation: str
    ) -> None:
        """`table` is (symbols, E); each filter width has `filters` (count, width * E) and `biases` (count,)."""
        self._table = np.ascontiguousarray(table)
        self._filters = [Matrix(bank) for bank in filters]
        self._biases = [np.ascontiguousarray(_padded(bias, 0, 4 * lanes())) for bias in biases]
        self._counts = (c_int64 * len(filters))(*map(len, filters))
        self._matrices = (_Matrix * len(filters))(*(bank.struct for bank in self._filters))
        self._addresses = (c_void_p * len(filters))(*(bias.ctypes.data for bias in self._biases))
        self._tanh = activation == "tanh"

    def run(self, chars: npt.NDArray[np.int32]) -> Float32Array:  # (M, C) -> (M, features)
        features = np.empty((len(chars), sum(self._counts)), dtype=np.float32)
        _check(chars)
        assert not chars.size or (chars.min() >= 0 and chars.max() < len(self._table))
        _run(
            "elmo_char_features", _address(chars), c_int64(len(chars)), c_int64(chars.shape[1]), _address(self._table),
            c_int64(self._table.shape[1]), c_int64(len(self._filters)), self._matrices, self._addresses, self._counts,
            c_int(self._tanh), _address(features),
        )  # fmt: skip
        return features


def _padded(array: np.ndarray, axis: int, multiple: int) -> np.ndarray:
    """Append zeros up to a multiple; return the array itself if none are needed."""
    missing = -array.shape[axis] % multiple
    if not missing:
        return array
    return np.pad(array, [(0, missing if axis == number else 0) for number in range(array.ndim)])


def _check(*arrays: np.ndarray) -> None:
    assert all(array.flags.c_contiguous and array.dtype in (np.float32, np.int32, np.int64) for array in arrays)


def _address(array: np.ndarray | None) -> c_void_p | None:
    return None if array is None else c_void_p(array.ctypes.data)


def _call(name: str, *arguments: Any) -> int:
    functions, number = library(), instruction_set()
    assert functions is not None
    assert number is not None
    return int(getattr(functions, name)(c_int(number), *arguments))


def _run(name: str, *arguments: Any) -> None:
    if _call(name, *arguments):
        raise MemoryError(f"{name}: not enough memory for a batch. Use a smaller batch.")
