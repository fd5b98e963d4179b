"""The activation functions of the recurrent kernels, in float32."""

# Triton's decorator has no types.
# mypy: disable-error-code="untyped-decorator, no-any-return"

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl


@triton.jit
def sigmoid(x: tl.tensor) -> Any:
    return 1.0 / (1.0 + tl.exp(-x))


@triton.jit
def tanh(x: tl.tensor) -> Any:
    return 2.0 / (1.0 + tl.exp(-2.0 * x)) - 1.0
