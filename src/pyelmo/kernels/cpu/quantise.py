"""Weights as int8 with a scale for each row: w is about scale * q, with |q| <= 127."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pyelmo.arrays import Float32Array

LEVELS = 127
BLOCK = 128  # rows that are quantised at a time


@dataclass(frozen=True)
class Quantised:
    """An int8 array and the scale of each row; the shape of `scales` is the leading part of that of `values`."""

    values: npt.NDArray[np.int8]
    scales: Float32Array

    def __getitem__(self, rows: int | slice) -> Quantised:
        return Quantised(self.values[rows], self.scales[rows])

    def restore(self) -> Float32Array:
        """Return the weights as float32."""
        scales = self.scales.reshape(self.scales.shape + (1,) * (self.values.ndim - self.scales.ndim))
        restored: Float32Array = self.values * scales
        return restored


def quantise(weights: Float32Array, axes: int = 1) -> Quantised:
    """Quantise weights; the last `axes` axes are a row, whose largest absolute weight becomes 127.

    Scales are rounded to 17 bits, so that their product with every q is exact: quantising a restored matrix again gives
    the same result.
    """
    leading = weights.shape[:-axes]
    rows = weights.reshape(math.prod(leading), math.prod(weights.shape[-axes:]))
    values, scales = np.empty(rows.shape, np.int8), np.empty((len(rows), 1), np.float32)
    for start in range(0, len(rows), BLOCK):  # what is computed on the way stays small
        some = slice(start, start + BLOCK)
        largest = (np.abs(rows[some]).max(1, keepdims=True, initial=0.0) / np.float32(LEVELS)).astype(np.float32)
        scales[some] = ((largest.view(np.int32) + 0x40) & ~0x7F).view(np.float32)
        levels = np.divide(rows[some], scales[some], out=np.zeros_like(rows[some]), where=scales[some] > 0)
        values[some] = np.rint(levels, out=levels).clip(-LEVELS, LEVELS, out=levels)
    return Quantised(values.reshape(weights.shape), scales.reshape(leading))
