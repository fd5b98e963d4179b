"""Weights as int8 with a scale for each row: w is about scale * q, with |q| <= 127."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pyelmo.arrays import Float32Array

LEVELS = 127


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
    row = tuple(range(-axes, 0))
    scales = (np.abs(weights).max(row, keepdims=True, initial=0.0) / np.float32(LEVELS)).astype(np.float32)
    scales = ((scales.view(np.int32) + 0x40) & ~0x7F).view(np.float32)
    values = np.divide(weights, scales, out=np.zeros_like(weights), where=scales > 0)
    return Quantised(np.rint(values).clip(-LEVELS, LEVELS).astype(np.int8), scales.reshape(weights.shape[:-axes]))
