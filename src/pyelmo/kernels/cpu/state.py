"""The state of one direction of one LSTM layer, which a run may begin with and leaves behind."""

from __future__ import annotations

from dataclasses import dataclass

from pyelmo.arrays import Float32Array


@dataclass
class LstmState:
    """The outputs and the cells of the last step: `run` replaces them."""

    hidden: Float32Array  # (rows, P)
    cell: Float32Array  # (rows, C)
