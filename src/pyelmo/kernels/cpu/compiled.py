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
from pyelmo.errors import InputError, PyelmoError
from pyelmo.kernels.cpu.quantise import Quantised
from pyelmo.kernels.cpu.state import LstmState

log = logging.getLogger("pyelmo")

NO_MEMORY, INVALID = 1, 2  # as in cpu.c
INSTRUCTION_SETS = ("avx512", "avx2", "i8mm", "dotprod", "neon", "base")  # as in cpu.c, the best first


class _Matrix(ctypes.Structure):
    _fields_ = (
        ("weights", c_void_p),
        ("scales", c_void_p),
        ("starts", c_void_p),
        ("depth", c_int64),
        ("columns", c_int64),
        ("passes", c_int64),
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
    """Return the compiled library, or None if the package was installed without a C compiler.

    One that was left by an older version would read the structures of this one wrongly, and is an error.
    """
    # First the file for every Python: an older build may have left one for a single version beside it.
    for suffix in reversed(importlib.machinery.EXTENSION_SUFFIXES):
        path = Path(__file__).with_name(f"_cpu{suffix}")
        if path.is_file():
            functions = ctypes.CDLL(str(path))
            if not hasattr(functions, "elmo_layer_size") or functions.elmo_layer_size() != ctypes.sizeof(_Layer):
                raise PyelmoError(
                    f"{path}: compiled from another version of pyelmo. Install pyelmo again, or in its source folder "
                    "run python setup.py build_ext --inplace"
                )
            return functions
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


@functools.cache
def group() -> int:
    """Return how many int8 weights of a row of the matrix lie together."""
    return int(_call("elmo_group"))


class Matrix:
    """A weight matrix (R, K), packed in panels; the original array is not kept.

    With `gates`, the rows are the four gates of C cells of an LSTM, and a panel has all gates of the same cells. With
    `fine`, the inputs of an int8 matrix are rounded to 16 bits instead of 8, which takes twice the time.
    """

    def __init__(self, weights: Float32Array | Quantised, *, gates: bool = False, fine: bool = False) -> None:
        values = weights.values if isinstance(weights, Quantised) else weights
        if isinstance(weights, Quantised):
            _check("scales", weights.scales, np.float32, values.shape[:1], contiguous=False)
        dtype = np.int8 if isinstance(weights, Quantised) else np.float32
        _check("weights", values, dtype, (None, None), contiguous=False)
        if gates and len(values) % 4:
            raise InputError(f"weights: {len(values)} rows are not four gates")
        self.shape, self.gates = values.shape, gates
        panels = self._panels(values)  # (panels, 4 lanes, K)
        count, width, depth = panels.shape
        self.scales: Float32Array | None = None
        self.starts: npt.NDArray[np.int32] | None = None
        if isinstance(weights, Quantised):
            self.scales = np.ascontiguousarray(self._panels(weights.scales[:, None])[..., 0])
            self.starts = np.ascontiguousarray(-128 * panels.sum(-1, dtype=np.int32))
            groups = _padded(panels, 2, group()).reshape(count, width, -1, group())
            self.values: np.ndarray = np.ascontiguousarray(groups.swapaxes(1, 2))
        else:
            self.values = np.ascontiguousarray(panels.swapaxes(1, 2))
        self.struct = _Matrix(
            _address(self.values), _address(self.scales), _address(self.starts), depth, count * width, 1 + fine
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
        rows = input.shape[0]
        fits = input.gates and recurrent.gates and recurrent.shape[0] == rows
        if not fits or (projection.shape if projection else (self.size, self.size)) != (self.size, rows // 4):
            shapes = [matrix and matrix.shape for matrix in (input, recurrent, projection)]
            raise InputError(f"the matrices of an LSTM do not fit together: input, recurrent, projection {shapes}")
        _check("bias", bias, np.float32, (rows,), contiguous=False)
        self._matrices = input, recurrent, projection  # keeps their memory alive
        self._bias = np.ascontiguousarray(input._panels(bias[:, None])[..., 0])
        self._struct = _Layer(
            input.struct, recurrent.struct, projection.struct if projection else _Matrix(), _address(self._bias),
            len(self._bias) * lanes(), self.size, projection is not None,
            np.inf if cell_clip is None else cell_clip, np.inf if projection_clip is None else projection_clip,
        )  # fmt: skip

    def zero_state(self, rows: int) -> LstmState:
        return LstmState(np.zeros((rows, self.size), np.float32), np.zeros((rows, self._struct.cells), np.float32))

    def run(self, inputs: Float32Array, live: npt.NDArray[np.int64], state: LstmState | None = None) -> Float32Array:
        """(M, K) -> (M, P): the rows of all steps, one step after another.

        Step t has the first live[t] rows of step t - 1. `state` is the one to begin with (default: zero) and becomes
        the one after the last step.
        """
        _check("live", live, np.int64, (None,))
        _check("inputs", inputs, np.float32, (int(live.sum()), self._struct.input.depth))
        hidden = cell = None
        if state is not None:
            rows = int(live[0]) if len(live) else 0
            hidden, cell = state.hidden[:rows], state.cell[:rows]
            _check("hidden state", hidden, np.float32, (rows, self.size))
            _check("cell state", cell, np.float32, (rows, self._struct.cells))
        outputs = np.empty((len(inputs), self.size), dtype=np.float32)
        _run(
            "elmo_lstm", ctypes.byref(self._struct), _address(inputs), _address(live), c_int64(len(live)),
            _address(outputs), c_int64(len(inputs)), _address(hidden), _address(cell),
        )  # fmt: skip
        if state is not None and len(live):
            rows = int(live[-1])
            state.hidden, state.cell = outputs[len(outputs) - rows :], state.cell[:rows]
        return outputs


def linear(matrix: Matrix, bias: Float32Array | None, inputs: Float32Array) -> Float32Array:
    """(R, K), (R,), (M, K) -> (M, R)."""
    _check("inputs", inputs, np.float32, (None, matrix.shape[1]))
    if bias is not None:
        _check("bias", bias, np.float32, matrix.shape[:1])
    outputs = np.empty((len(inputs), matrix.shape[0]), dtype=np.float32)
    _run(
        "elmo_linear", ctypes.byref(matrix.struct), _address(bias), _address(inputs), c_int64(len(inputs)),
        c_int64(matrix.shape[0]), _address(outputs),
    )  # fmt: skip
    return outputs


def highway(transform: Float32Array, gate: Float32Array, features: Float32Array) -> None:
    """Set features to g relu(transform) + (1 - g) features, with g = sigmoid(gate)."""
    for name, array in (("transform", transform), ("gate", gate), ("features", features)):
        _check(name, array, np.float32, features.shape)
    _run("elmo_highway", _address(transform), _address(gate), _address(features), c_int64(features.size))


class CharFeatures:
    """The convolutions of the character CNN, their maximum over all positions, and the activation."""

    def __init__(
        self, table: Float32Array, filters: Sequence[Float32Array], biases: Sequence[Float32Array], activation: str
    ) -> None:
        """`table` is (symbols, E); each filter width has `filters` (count, width * E) and `biases` (count,)."""
        _check("table", table, np.float32, (None, None), contiguous=False)
        for bank, bias in zip(filters, biases, strict=True):
            _check("bias of filters", bias, np.float32, (len(bank),), contiguous=False)
        self._table = np.ascontiguousarray(table)
        self._filters = [Matrix(bank) for bank in filters]
        self._biases = [np.ascontiguousarray(_padded(bias, 0, 4 * lanes())) for bias in biases]
        self._counts = (c_int64 * len(filters))(*map(len, filters))
        self._matrices = (_Matrix * len(filters))(*(bank.struct for bank in self._filters))
        self._addresses = (c_void_p * len(filters))(*map(_address, self._biases))
        self._tanh = activation == "tanh"

    def run(self, chars: npt.NDArray[np.int32]) -> Float32Array:  # (M, C) -> (M, features)
        _check("symbols", chars, np.int32, (None, None))
        features = np.empty((len(chars), sum(self._counts)), dtype=np.float32)
        _run(
            "elmo_char_features", _address(chars), c_int64(len(chars)), c_int64(chars.shape[1]), _address(self._table),
            c_int64(self._table.shape[1]), c_int64(len(self._filters)), self._matrices, self._addresses, self._counts,
            c_int(self._tanh), _address(features), c_int64(len(self._table)),
        )  # fmt: skip
        return features


def _padded(array: np.ndarray, axis: int, multiple: int) -> np.ndarray:
    """Append zeros up to a multiple; return the array itself if none are needed."""
    missing = -array.shape[axis] % multiple
    if not missing:
        return array
    return np.pad(array, [(0, missing if axis == number else 0) for number in range(array.ndim)])


def _check(
    name: str, array: np.ndarray, dtype: type[np.generic], shape: tuple[int | None, ...], *, contiguous: bool = True
) -> None:
    """Raise an InputError unless C can read the array, also with `python -O`; None stands for any size."""
    fits = array.ndim == len(shape) and all(want in (None, got) for got, want in zip(array.shape, shape, strict=True))
    if not fits or array.dtype != dtype or (contiguous and not array.flags.c_contiguous):
        sizes = ", ".join("any" if size is None else str(size) for size in shape)
        order = "" if array.flags.c_contiguous else ", not contiguous"
        raise InputError(
            f"{name}: expected an array ({sizes}) of {np.dtype(dtype)}, got {array.shape} of {array.dtype}{order}"
        )


def _address(array: np.ndarray | None) -> c_void_p | None:
    return None if array is None else c_void_p(array.ctypes.data)


def _call(name: str, *arguments: Any) -> int:
    functions, number = library(), instruction_set()
    if functions is None or number is None:
        raise RuntimeError("the compiled functions are not available; use those of plain.py")
    return int(getattr(functions, name)(c_int(number), *arguments))


def _run(name: str, *arguments: Any) -> None:
    status = _call(name, *arguments)
    if status == NO_MEMORY:
        raise MemoryError(f"{name}: not enough memory for a batch. Use a smaller batch.")
    if status == INVALID:
        raise InputError(f"{name}: symbols, rows or sizes that do not fit the weights")
