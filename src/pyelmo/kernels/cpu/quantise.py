"""Weights as int8 with a scale for each row: w = scale * q, |q| <= 127."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pyelmo.arrays import Float32Array

LEVELS = 127


@dataclass(frozen=True)
class Quantised:
    """Small numbers, and the scale of each row: `scales` has the leading axes of `values`."""

    values: npt.NDArray[np.int8]
    scales: Float32Array

    def restore(self) -> Float32Array:
        wide = self.scales.reshape(self.scales.shape + (1,) * (self.values.ndim - self.scales.ndim))
        restored: Float32Array = self.values * wide
        return restored


def quantise(weights: Float32Array, axes: int = 1) -> Quantised:
    """The last `axes` axes are a row; its largest weight becomes 127 or -127, and a row of zeros stays zero.

    A scale keeps 17 bits, so that its products with 127 and with every q are exact: quantising what `restore` gives
    changes nothing.
    """
    row = tuple(range(-axes, 0))
    scales = (np.abs(weights).max(row, keepdims=True, initial=0.0) / np.float32(LEVELS)).astype(np.float32)
    scales = ((scales.view(np.int32) + 0x40) & ~0x7F).view(np.float32)
    values = np.divide(weights, scales, out=np.zeros_like(weights), where=scales > 0)
    return Quantised(np.rint(values).clip(-LEVELS, LEVELS).astype(np.int8), scales.reshape(weights.shape[:-axes]))
