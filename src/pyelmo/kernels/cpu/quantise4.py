"""Weights stored in four bits: 16 codes at quantiles of a normal distribution, and a scale per group of 32 weights.

They take 4.5 bits per weight and are converted to float32 when they are read; nothing computes with them. The codes
suit weights with a normal distribution: `en` loses 2.1 % perplexity with them, 3.6 % with evenly spaced codes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pyelmo.arrays import Float32Array

GROUP = 32
# Seven quantiles below zero, zero itself, eight above, of a normal distribution; the outermost on each side is 1.
CODES = np.array(
    [-1.0, -0.69349, -0.52256, -0.39287, -0.2829, -0.18375, -0.09054, 0.0,
     0.07913, 0.16004, 0.24477, 0.33612, 0.43848, 0.56002, 0.7203, 1.0], np.float32,
)  # fmt: skip
EDGES = (CODES[1:] + CODES[:-1]) / 2
# The outermost code of a group stands for one of these shares of its largest weight.
SEARCH = (0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)


@dataclass(frozen=True)
class Packed:
    """Two codes per byte, the first in the lower half (..., n / 2), and the scale of each group (..., n / GROUP)."""

    codes: npt.NDArray[np.uint8]
    scales: npt.NDArray[np.float16]

    def restore(self) -> Float32Array:  # (..., n)
        halves = np.stack([self.codes & 15, self.codes >> 4], -1)
        groups = CODES[halves.reshape(*self.scales.shape, GROUP)] * self.scales[..., None].astype(np.float32)
        restored: Float32Array = groups.reshape(*self.scales.shape[:-1], -1)
        return restored


def fits(shape: tuple[int, ...]) -> bool:
    """Return whether a matrix of this shape can be packed: its rows must be whole groups."""
    return len(shape) >= 2 and shape[-1] % GROUP == 0


def pack(weights: Float32Array) -> Packed:
    """Round each weight to a code of its group, with the scale that gives the least squared error."""
    if not fits(weights.shape):
        raise ValueError(f"a matrix of shape {weights.shape} has no rows of whole groups of {GROUP}")
    groups = weights.reshape(-1, GROUP)
    largest = np.abs(groups).max(1, keepdims=True)
    codes = np.zeros(groups.shape, np.uint8)
    scales = np.zeros(largest.shape, np.float16)
    least = np.full(largest.shape, np.inf, np.float32)
    for share in SEARCH:
        scale = np.maximum(largest * np.float32(share), np.float32(2**-24)).astype(np.float16)
        wide = scale.astype(np.float32)
        tried = np.searchsorted(EDGES, groups / wide).astype(np.uint8)
        error = np.square(CODES[tried] * wide - groups).sum(1, keepdims=True)
        better = error < least
        codes, scales = np.where(better, tried, codes), np.where(better, scale, scales)
        least = np.minimum(error, least)
    halves = codes.reshape(-1, 2)
    joined = (halves[:, 0] | halves[:, 1] << 4).astype(np.uint8)
    return Packed(joined.reshape(*weights.shape[:-1], -1), scales.astype(np.float16).reshape(*weights.shape[:-1], -1))
